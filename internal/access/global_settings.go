package access

import (
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
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
	// SessionTimeout is how long a session lasts.
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
	case !x.lastsAsEver():
		return problem.NotYet("sessionTimeout: a session lasts PT24H from its login, and nothing else can be set yet")
	case x.DisclaimerEnabled && x.DisclaimerText == "":
		return problem.Missing("disclaimerText")
	}
	return nil
}

// lastsAsEver reports whether sessions are to last as long as they do.
func (x *GlobalSettings) lastsAsEver() bool {
	d, err := schema.ParseDuration(x.SessionTimeout)
	return err == nil && d == SessionLife
}

// comments knows whether every change needs a comment.
type comments struct {
	known *store.Cache[struct{}, bool]
}

// Open lets it be remembered.
func (d *comments) Open(s *store.Store) {
	d.known = store.NewCache[struct{}](s, store.CacheOptions[bool]{Topics: []string{"settings"}, Late: true, Max: 1})
}

// Ask refuses a change without a comment where every change needs one; to sign in and out none is needed.
func (d *comments) Ask(tx *store.Tx, a *resource.API, collection, comment string) error {
	if comment != "" || collection == "sessions" {
		return nil
	}
	needed, ok := d.known.Get(tx, struct{}{})
	if !ok {
		o, err := a.Only(tx, "GlobalSettings")
		if err != nil {
			return err
		}
		x, there := o.(*GlobalSettings)
		needed = there && x.MandatoryCommentsEnabled
		d.known.Put(tx, struct{}{}, needed)
	}
	if !needed {
		return nil
	}
	return problem.BadRequest("MissingMandatoryChangeControlComment",
		"every change needs a comment, in the header x-bcn-change-control-comment")
}
