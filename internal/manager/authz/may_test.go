package authz

import (
	"testing"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// TestPermissions checks actions and visibility by role, privilege and pending password reset.
func TestPermissions(t *testing.T) {
	admin := resource.Caller{User: 7, Session: 8, Administrator: true, History: "ADMINISTRATOR", Security: "ADMINISTRATOR"}
	analyst := resource.Caller{User: 7, Session: 8, History: "HIDE", Security: "NO_ACCESS"}
	reading, resetting := admin, admin
	reading.ReadOnly, resetting.MustReset = true, true
	lister := resource.Caller{User: 7, History: "VIEW_HISTORY_LIST"}
	guarded := func(g resource.Guard) *resource.Collection { return &resource.Collection{Name: "some", Guard: g} }
	plain, accounts, sessions := guarded(resource.AnyCaller), guarded(resource.Accounts), guarded(resource.Sessions)
	for _, c := range []struct {
		who    resource.Caller
		action resource.Action
		on     resource.Subject
		want   string // the error code; empty for none
	}{
		{admin, resource.ActionMake, resource.Subject{Collection: plain}, ""},
		{admin, resource.ActionDelete, resource.Subject{Collection: accounts, ID: 9}, ""},
		{analyst, resource.ActionSee, resource.Subject{Collection: plain, ID: 9}, ""},
		{analyst, resource.ActionMake, resource.Subject{Collection: plain}, "AccessDenied"},
		{analyst, resource.ActionChange, resource.Subject{Collection: accounts, ID: 7}, ""}, // only the password, by a rule of users
		{analyst, resource.ActionChange, resource.Subject{Collection: accounts, ID: 9}, "AccessDenied"},
		{analyst, resource.ActionDelete, resource.Subject{Collection: accounts, ID: 7}, "AccessDenied"},
		{analyst, resource.ActionMake, resource.Subject{Collection: accounts}, "AccessDenied"},
		{analyst, resource.ActionMake, resource.Subject{Collection: accounts, Sub: &resource.Sub{}, ID: 7}, "AccessDenied"},
		{analyst, resource.ActionMake, resource.Subject{Collection: guarded(resource.HistoryList)}, "AccessDenied"},
		{reading, resource.ActionChange, resource.Subject{Collection: plain, ID: 9}, "ReadOnlySession"},
		{reading, resource.ActionChange, resource.Subject{Collection: sessions, ID: 8}, ""},
		{reading, resource.ActionChange, resource.Subject{Collection: sessions, ID: 9}, "ReadOnlySession"},
		{resetting, resource.ActionSee, resource.Subject{Collection: plain, ID: 9}, "PasswordResetRequired"},
		{resetting, resource.ActionSee, resource.Subject{}, "PasswordResetRequired"},
		{resetting, resource.ActionChange, resource.Subject{Collection: accounts, ID: 7, Plain: true}, ""},
		{resetting, resource.ActionChange, resource.Subject{Collection: accounts, ID: 7}, "PasswordResetRequired"},
		{resetting, resource.ActionChange, resource.Subject{Collection: accounts, ID: 9, Plain: true}, "PasswordResetRequired"},
		{resetting, resource.ActionReplace, resource.Subject{Collection: accounts, ID: 7, Plain: true}, "PasswordResetRequired"},
		{resetting, resource.ActionChange, resource.Subject{Collection: sessions, ID: 8, Plain: true}, ""},
	} {
		if _, err := May(c.who, c.action, c.on); err == nil != (c.want == "") || err != nil && !problem.Is(err, c.want) {
			t.Errorf("%+v doing %d to %+v: %v, want %q", c.who, c.action, c.on, err, c.want)
		}
	}
	for _, c := range []struct {
		who            resource.Caller
		guard          resource.Guard
		all, something bool
	}{
		{admin, resource.Accounts, true, true}, {analyst, resource.Accounts, false, true},
		{admin, resource.Sessions, true, true}, {analyst, resource.Sessions, false, true}, {resetting, resource.Sessions, true, true},
		{admin, resource.HistoryImages, true, true}, {analyst, resource.HistoryList, false, false},
		{lister, resource.HistoryList, true, true}, {lister, resource.HistoryImages, false, false}, {analyst, resource.AnyCaller, true, true},
	} {
		seen, err := May(c.who, resource.ActionFind, resource.Subject{Collection: guarded(c.guard)})
		if err != nil || (seen == nil) != c.all || (seen != store.False) != c.something {
			t.Errorf("%+v sees of %d: %v, %v", c.who, c.guard, seen, err)
		}
	}
}
