package resource

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode"

	"portolan/internal/engine/store"
)

// Caller is the authenticated sender of a request.
type Caller struct {
	User int64
	Name string
	// Administrator says that the caller may do everything.
	Administrator bool
	// Rights are the rights of a user who is not an administrator. nil for all other callers, which may read everything.
	Rights Rights
	// ReadOnly says that the session or token may not change anything, whatever rights its user has.
	ReadOnly bool
	// Session is the id of the session resource; 0 without a session.
	Session int64
	// Token is the id of a bearer token or key set; empty for a password or a session.
	Token string
	// Scopes are the scopes of a token or key set, separated by blanks; empty: unlimited.
	Scopes string
	// Credential names any other credential for the history: one that is neither a session, a token of this manager nor a password of
	// this manager.
	Credential string
	// History and Security are the user's privileges for the history and for user management.
	History, Security string
	// MustReset says that the user may only set a new password.
	MustReset bool
	// Remote is the address of the client, without its port.
	Remote string
	// Console says that a sign-in starts a session whose token the browser stores as a cookie.
	Console bool
	// Client is the program that sent the request, as it names itself (User-Agent).
	Client string
}

// Cookie is the key in Change.Extra for the value that the browser stores as its cookie.
const Cookie = "\x00cookie"

// maxClient is the maximum length of a client's name in the history, in bytes.
const maxClient = 200

// Author returns the caller as the history records it, with the comment of a change.
func (c Caller) Author(comment string) store.Author {
	a := store.Author{User: c.User, Name: c.Name, Comment: comment, Remote: c.Remote}
	a.Client = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(c.Client[:min(len(c.Client), maxClient)], ""))
	switch {
	case c.Credential != "":
		a.Credential = c.Credential
	case c.Token != "":
		a.Credential = "token " + c.Token
	case c.Session != 0:
		a.Credential = "session " + strconv.FormatInt(c.Session, 10)
	case c.User != 0:
		a.Credential = "password"
	}
	return a
}

// Owner identifies callers whose requests are remembered: users by their ids, tokens by negative numbers.
func (c Caller) Owner() int64 {
	if c.Token == "" {
		return c.User
	}
	sum := sha256.Sum256([]byte(c.Token))
	return -1 - int64(binary.BigEndian.Uint64(sum[:8])>>1) //nolint:gosec // shifted, so that it fits
}

// Limited reports whether some resources are hidden from the caller.
func (c Caller) Limited() bool {
	return c.Rights != nil && !c.Administrator && !c.Rights.SeesEverything()
}
