package identity

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerGlobalSettings declares the settings of how the manager behaves towards everybody, and asks for comments where they say so.
func registerGlobalSettings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "settings"}, &GlobalSettings{})
	r.Demand(&comments{})
}

// GlobalSettings says how the manager behaves towards everybody.
type GlobalSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// MandatoryCommentsEnabled says whether every change needs a comment (x-bcn-change-control-comment).
	MandatoryCommentsEnabled bool `api:"mandatoryCommentsEnabled,put"`
	// RememberLastAddressEnabled says whether a hardware address gets the address again that it had.
	RememberLastAddressEnabled bool `api:"rememberLastAddressEnabled,put"`
	// SessionTimeout is how long a session lasts without a request, of the day that it lasts at most. That it was used is noted once in a
	// tenth of that time.
	SessionTimeout string `api:"sessionTimeout,put,notNull,duration" default:"PT24H"`
	// DisclaimerEnabled says whether who signs in on the console is shown a text.
	DisclaimerEnabled bool `api:"disclaimerEnabled,put"`
	// DisclaimerText is the text.
	DisclaimerText string `api:"disclaimerText,nonblank" length:"4000"`
	// CustomReverseZoneFormatsAllowed says whether reverse zones may be named otherwise than RFC 2317 has them.
	CustomReverseZoneFormatsAllowed bool `api:"customReverseZoneFormatsAllowed,put"`
}

// Validate refuses what nothing acts upon yet.
func (x *GlobalSettings) Validate(*resource.Change) error {
	switch {
	case x.RememberLastAddressEnabled:
		return problem.NotYet("rememberLastAddressEnabled: addresses are not given out by the manager yet")
	case x.CustomReverseZoneFormatsAllowed:
		return problem.NotYet("customReverseZoneFormatsAllowed: reverse zones are named as RFC 2317 has them, and not otherwise yet")
	case schema.LengthOf(x.SessionTimeout) < minTimeout || schema.LengthOf(x.SessionTimeout) > SessionLife:
		return problem.Field("DurationValueOutsideRange", "sessionTimeout",
			"must be PT1M to PT24H: a session ends a day after its login, however "+
				"much it is used")
	case x.DisclaimerEnabled && x.DisclaimerText == "":
		return problem.Missing("disclaimerText")
	}
	return nil
}

// AfterWrite lets another time-out count for the sessions that are open, too.
func (x *GlobalSettings) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*GlobalSettings); !ok || old.SessionTimeout == x.SessionTimeout {
		return nil
	}
	return boundTokens(c.Tx, schema.LengthOf(x.SessionTimeout))
}

// comments knows whether every change needs a comment.
type comments struct {
	manners *manners
}

// Open lets it be remembered; s is nil where the declarations alone are read.
func (d *comments) Open(s *store.Store) {
	if s != nil {
		d.manners = ServiceOf(s).manners
	}
}

// Ask refuses a change without a comment where every change needs one; to sign in and out none is needed.
func (d *comments) Ask(tx *store.Tx, _ *resource.API, collection, comment string) error {
	if comment != "" || collection == "sessions" {
		return nil
	}
	if said, err := d.manners.get(tx); err != nil || !said.comments {
		return err
	}
	return problem.BadRequest("MissingMandatoryChangeControlComment",
		"every change needs a comment, in the header x-bcn-change-control-comment")
}
