package identity

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerGlobalSettings declares the global settings and the check for mandatory comments.
func registerGlobalSettings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "settings"}, &GlobalSettings{})
	r.DeclareCheck(&comments{})
}

// GlobalSettings are settings that apply to all users.
type GlobalSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// MandatoryCommentsEnabled requires a comment on every change (x-bcn-change-control-comment).
	MandatoryCommentsEnabled bool `api:"mandatoryCommentsEnabled,put"`
	// RememberLastAddressEnabled assigns a hardware address its previous IP address again.
	RememberLastAddressEnabled bool `api:"rememberLastAddressEnabled,put"`
	// SessionTimeout is the time without a request after which a session ends, at most PT24H. The use of a session is recorded once per
	// tenth of it.
	SessionTimeout string `api:"sessionTimeout,put,notNull,duration" default:"PT24H"`
	// DisclaimerEnabled shows disclaimerText at the console sign-in.
	DisclaimerEnabled bool `api:"disclaimerEnabled,put"`
	// DisclaimerText is the text of the disclaimer.
	DisclaimerText string `api:"disclaimerText,nonblank" length:"4000"`
	// CustomReverseZoneFormatsAllowed allows names of reverse zones other than those of RFC 2317.
	CustomReverseZoneFormatsAllowed bool `api:"customReverseZoneFormatsAllowed,put"`
}

// Validate rejects settings that are not implemented yet, and a session timeout outside of 1 min to 24 h.
func (x *GlobalSettings) Validate(*resource.Change) error {
	switch {
	case x.RememberLastAddressEnabled:
		return problem.NotYet("rememberLastAddressEnabled: the manager does not assign DHCP addresses yet")
	case x.CustomReverseZoneFormatsAllowed:
		return problem.NotYet("customReverseZoneFormatsAllowed: only the RFC 2317 format of reverse zones is supported yet")
	case schema.LengthOf(x.SessionTimeout) < minTimeout || schema.LengthOf(x.SessionTimeout) > SessionLife:
		return problem.Field("DurationValueOutsideRange", "sessionTimeout",
			"must be PT1M to PT24H: a session ends 24 hours after its login, no matter how "+
				"much it is used")
	case x.DisclaimerEnabled && x.DisclaimerText == "":
		return problem.Missing("disclaimerText")
	}
	return nil
}

// AfterWrite applies a changed timeout to open sessions.
func (x *GlobalSettings) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*GlobalSettings); !ok || old.SessionTimeout == x.SessionTimeout {
		return nil
	}
	return limitTokenLife(c.Tx, schema.LengthOf(x.SessionTimeout))
}

// comments checks whether changes require a comment.
type comments struct {
	policies *policyCache
}

// Open sets the policy cache. s is nil if only the declarations are read.
func (d *comments) Open(s *store.Store) {
	if s != nil {
		d.policies = ServiceOf(s).policies
	}
}

// Ask rejects a change without a comment if comments are mandatory. Signing in and out requires none.
func (d *comments) Ask(tx *store.Tx, _ *resource.API, collection, comment string) error {
	if comment != "" || collection == "sessions" {
		return nil
	}
	if policy, err := d.policies.get(tx); err != nil || !policy.comments {
		return err
	}
	return problem.BadRequest("MissingMandatoryChangeControlComment",
		"every change requires a comment in the header x-bcn-change-control-comment")
}
