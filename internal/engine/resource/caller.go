package resource

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode"

	"portolan/internal/engine/store"
)

// Caller is who sends a request, as identity established it.
type Caller struct {
	// User is the id of the user resource.
	User int64
	Name string
	// Administrator may do everything.
	Administrator bool
	// Rights are what a user may do who is no administrator; nil for all others: those read everything.
	Rights Rights
	// ReadOnly is a session or a token that may not change anything, whoever's it is.
	ReadOnly bool
	// Session is the id of the session resource; 0 outside of one.
	Session int64
	// Token is the id of a bearer token or key set; empty for a user's password or session.
	Token string
	// Scopes say what a token or key set is good for, with a blank between; empty: everything.
	Scopes string
	// Credential is what was shown that is neither a session, nor such a token, nor a password here, as the history names it.
	Credential string
	// History and Security are the privileges of the user about the history and about users.
	History, Security string
	// MustReset says that the user may do nothing but set a new password.
	MustReset bool
	// Remote is the address that the request came from, without its port.
	Remote string
	// Console says that a sign-in begins a session whose token the browser keeps as a cookie.
	Console bool
	// Client is the program that sent the request, as it says itself (User-Agent).
	Client string
}

// Cookie stands among what is extra in an answer (Change.Extra) for what a browser is to keep as its cookie.
const Cookie = "\x00cookie"

// maxClient is how much of a program's name the history keeps, in bytes.
const maxClient = 200

// Author is the caller as the history keeps it, with what it says of a change.
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

// Owner tells callers apart whose requests are remembered: users by their numbers, tokens by numbers below 0.
func (c Caller) Owner() int64 {
	if c.Token == "" {
		return c.User
	}
	sum := sha256.Sum256([]byte(c.Token))
	return -1 - int64(binary.BigEndian.Uint64(sum[:8])>>1) //nolint:gosec // shifted, so that it fits
}

// Limited reports whether there are resources that a caller may not see because of where they lie.
func (c Caller) Limited() bool { return c.Rights != nil && !c.Administrator && !c.Rights.Everything() }
