package authn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/manager/outbound"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// LDAP is a directory (RFC 4511), OpenLDAP or Active Directory.
type LDAP struct {
	// Host and Port are the address of the directory. TLS uses TLS from the start, StartTLS upgrades the connection (RFC 4511 section
	// 4.14).
	Host          string
	Port          int64
	TLS, StartTLS bool
	// Certificates are the CA certificates for the directory's certificate, in PEM; empty means those that the system trusts.
	Certificates string
	// BindDN and BindPassword are the credentials for searches, Base is the search base.
	BindDN, BindPassword, Base string
	// The object classes of users and groups, and the attributes with a user's name, mail address and groups.
	UserClass, GroupClass, NameAttribute, EmailAttribute, GroupsAttribute string
	// Aliases sets when aliases are dereferenced: NEVER, SEARCHING, FINDING or ALWAYS (RFC 4511 section 4.5.1.3).
	Aliases string
	// RefuseReferrals fails a search that is answered with a referral. FollowReferrals follows referrals to the same Host, at any port,
	// with the same certificates and encryption. All other referrals are ignored.
	RefuseReferrals, FollowReferrals bool
}

// aliases maps the settings to those of the library.
var aliases = map[string]int{"NEVER": ldap.NeverDerefAliases, "SEARCHING": ldap.DerefInSearching, "FINDING": ldap.DerefFindingBaseObj,
	"ALWAYS": ldap.DerefAlways}

// Check verifies a name and a password and returns the user. It returns ErrWrong if they are wrong, and ErrUnavailable if the directory
// cannot be asked.
func (l LDAP) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if password == "" { // a bind without a password is anonymous (RFC 4513 section 5.1.2)
		return id, ErrWrong
	}
	ctx, end := withAskTime(ctx)
	defer end()
	c, err := l.connect(ctx)
	if err != nil {
		return id, err
	}
	defer func() { _ = c.Close() }()
	user, at, err := l.find(ctx, c, name)
	if err != nil {
		return id, err
	}
	there := c
	if at != l { // found by a referral
		if there, err = at.connect(ctx); err != nil {
			return id, err
		}
		defer func() { _ = there.Close() }()
	}
	switch err := there.Bind(user.DN, password); {
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication,
		ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultConstraintViolation, ldap.LDAPResultInsufficientAccessRights):
		return id, ErrWrong
	case err != nil:
		return id, unavailable("signing in as %s: %w", user.DN, err)
	}
	if err := l.bindSearcher(c); err != nil {
		return id, err
	}
	id = Identity{Name: user.GetEqualFoldAttributeValue(l.NameAttribute), Email: user.GetEqualFoldAttributeValue(l.EmailAttribute)}
	if id.Groups, err = l.groups(ctx, c, user, name); err != nil {
		return id, err
	}
	return id, nil
}

// HasGroup reports whether the directory has a group with a distinguished name.
func (l LDAP) HasGroup(ctx context.Context, dn string) (there bool, err error) {
	if _, err := ldap.ParseDN(dn); err != nil {
		return false, nil
	}
	ctx, end := withAskTime(ctx)
	defer end()
	c, err := l.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	found, err := c.Search(ldap.NewSearchRequest(dn, ldap.ScopeBaseObject, aliases[l.Aliases], 1, int(AskTime.Seconds()), false,
		"(objectClass="+ldap.EscapeFilter(l.GroupClass)+")", []string{"1.1"}, nil))
	switch {
	case err == nil && len(found.Entries) == 1:
		return true, nil
	case err == nil || ldap.IsErrorAnyOf(err, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax, ldap.LDAPResultReferral):
		return l.referredGroup(ctx, c, dn)
	}
	return false, unavailable("looking for a group: %w", err)
}

// referredGroup reports whether a followed referral has the group.
func (l LDAP) referredGroup(ctx context.Context, c *ldap.Conn, dn string) (bool, error) {
	if !l.FollowReferrals {
		return false, nil
	}
	found, err := l.search(ctx, c, "(objectClass="+ldap.EscapeFilter(l.GroupClass)+")", []string{"1.1"}, maxGroups)
	return slices.ContainsFunc(found, func(f foundEntry) bool { return SameDN(f.DN, dn) }), err
}

// connect opens a connection and binds for searches.
func (l LDAP) connect(ctx context.Context) (*ldap.Conn, error) {
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.bindSearcher(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// dial opens a connection, encrypted if configured.
func (l LDAP) dial(ctx context.Context) (*ldap.Conn, error) {
	address := net.JoinHostPort(l.Host, strconv.FormatInt(l.Port, 10))
	config, err := tlsConfig(l.Host, l.Certificates)
	if err != nil {
		return nil, unavailable("%w", err)
	}
	plain, err := outbound.Dialer().DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, unavailable("connecting: %w", err)
	}
	if until, ok := ctx.Deadline(); ok {
		if err := plain.SetDeadline(until); err != nil {
			return nil, unavailable("connecting: %w", err)
		}
	}
	plain = &boundedConn{Conn: plain, remaining: maxDirectoryBytes}
	if l.TLS {
		secure := tls.Client(plain, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, unavailable("speaking TLS: %w", err)
		}
		plain = secure
	}
	c := ldap.NewConn(plain, l.TLS)
	c.SetTimeout(AskTime)
	c.Start()
	if l.StartTLS && !l.TLS {
		if err := c.StartTLS(config); err != nil {
			_ = c.Close()
			return nil, unavailable("speaking TLS: %w", err)
		}
	}
	return c, nil
}

// maxDirectoryBytes limits the bytes that a directory sends over one connection. A user with its groups has a few hundred KiB.
const maxDirectoryBytes = 8 << 20

// boundedConn is a connection that fails after remaining bytes have been received.
type boundedConn struct {
	net.Conn
	remaining int
}

// Read reads from the connection and fails after the last allowed byte.
func (c *boundedConn) Read(b []byte) (int, error) {
	if c.remaining <= 0 {
		return 0, fmt.Errorf("the directory sends more than %d bytes", maxDirectoryBytes)
	}
	n, err := c.Conn.Read(b[:min(len(b), c.remaining)])
	c.remaining -= n
	return n, err
}

// bindSearcher binds for searches.
func (l LDAP) bindSearcher(c *ldap.Conn) error {
	err := c.Bind(l.BindDN, l.BindPassword)
	if l.BindPassword == "" {
		err = c.UnauthenticatedBind(l.BindDN)
	}
	if err != nil {
		return unavailable("sign in as the search user %s: %w", l.BindDN, err)
	}
	return nil
}

// find searches a user by its name. It also returns the directory that has the user: l, or the target of a referral. It returns ErrWrong if
// there is no such user, or more than one.
func (l LDAP) find(ctx context.Context, c *ldap.Conn, name string) (*ldap.Entry, LDAP, error) {
	filter := "(&(objectClass=" + ldap.EscapeFilter(l.UserClass) + ")(" + ldap.EscapeFilter(l.NameAttribute) + "=" +
		ldap.EscapeFilter(name) + "))"
	attributes := []string{l.NameAttribute, l.EmailAttribute, l.GroupsAttribute}
	entries, referrals, err := l.searchHere(c, filter, attributes, 2)
	if err != nil {
		return nil, l, err
	}
	named := func(found []foundEntry) []foundEntry { // keep only exact matches of the name
		return slices.DeleteFunc(found, func(f foundEntry) bool {
			return !slices.ContainsFunc(f.GetEqualFoldAttributeValues(l.NameAttribute), func(v string) bool { return strings.EqualFold(v, name) })
		})
	}
	found := named(l.asFound(entries))
	if len(found) == 0 {
		behind, failed := l.searchReferrals(ctx, referrals, filter, attributes, 2)
		if found = named(behind); len(found) == 0 && failed != nil { // the user may be there
			return nil, l, failed
		}
	}
	if len(found) != 1 {
		return nil, l, ErrWrong
	}
	return found[0].Entry, found[0].server, nil
}

// asFound returns entries as entries of this directory.
func (l LDAP) asFound(entries []*ldap.Entry) (all []foundEntry) {
	for _, e := range entries {
		all = append(all, foundEntry{e, l})
	}
	return all
}

// foundEntry is an entry and the directory that returned it.
type foundEntry struct {
	*ldap.Entry
	server LDAP
}

// maxReferrals is the maximum number of referrals that one search follows.
const maxReferrals = 8

// search returns the entries that match, at most limit per directory, here and from followed referrals, without duplicates. A failed
// referral is ignored: an unreachable server must not block users that are found elsewhere.
func (l LDAP) search(ctx context.Context, c *ldap.Conn, filter string, attributes []string, limit int) ([]foundEntry, error) {
	entries, referrals, err := l.searchHere(c, filter, attributes, limit)
	if err != nil {
		return nil, err
	}
	all := l.asFound(entries)
	behind, _ := l.searchReferrals(ctx, referrals, filter, attributes, limit)
	for _, f := range behind {
		if !slices.ContainsFunc(all, func(o foundEntry) bool { return SameDN(o.DN, f.DN) }) {
			all = append(all, f)
		}
	}
	return all, nil
}

// searchReferrals searches the targets of followed referrals and returns their entries without duplicates. failed is the last error; the
// other targets are still searched.
func (l LDAP) searchReferrals(ctx context.Context, referrals []string, filter string, attributes []string, limit int) (
	all []foundEntry, failed error,
) {
	if !l.FollowReferrals {
		return nil, nil
	}
	visited := []LDAP{l}
	for ; len(referrals) > 0 && len(visited) <= maxReferrals; referrals = referrals[1:] {
		at, ok := l.referredTo(referrals[0])
		if !ok || slices.Contains(visited, at) {
			continue
		}
		visited = append(visited, at)
		entries, more, err := at.searchAlone(ctx, filter, attributes, limit)
		if err != nil {
			failed = err
			continue
		}
		for _, f := range at.asFound(entries) {
			if !slices.ContainsFunc(all, func(o foundEntry) bool { return SameDN(o.DN, f.DN) }) {
				all = append(all, f)
			}
		}
		referrals = append(referrals, more...)
	}
	return all, failed
}

// searchAlone searches over a new connection.
func (l LDAP) searchAlone(ctx context.Context, filter string, attributes []string, limit int) ([]*ldap.Entry, []string, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = c.Close() }()
	return l.searchHere(c, filter, attributes, limit)
}

// searchHere returns the entries that match, at most limit, and the referrals in the answer.
func (l LDAP) searchHere(c *ldap.Conn, filter string, attributes []string, limit int) ([]*ldap.Entry, []string, error) {
	found, err := c.Search(ldap.NewSearchRequest(l.Base, ldap.ScopeWholeSubtree, aliases[l.Aliases], limit, int(AskTime.Seconds()), false,
		filter,
		attributes, nil))
	var e *ldap.Error
	var referrals []string
	if found != nil {
		referrals = found.Referrals
	}
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded):
	case ldap.IsErrorWithCode(err, ldap.LDAPResultReferral) && errors.As(err, &e):
		referrals = append(referrals, referralsOf(e)...)
		if len(referrals) == 0 {
			referrals = []string{"elsewhere"}
		}
	case err != nil:
		return nil, nil, unavailable("searching: %w", err)
	}
	if l.RefuseReferrals && len(referrals) > 0 {
		return nil, nil, unavailable("the directory answers with a referral to %s", cmp.Or(referrals[0], "elsewhere"))
	}
	if found == nil {
		return nil, referrals, nil
	}
	return found.Entries[:min(len(found.Entries), limit)], referrals, nil // the directory may ignore the limit
}

// referralTag is the tag of the referral in an LDAPResult (RFC 4511 section 4.1.9).
const referralTag = 3

// referralsOf returns the URLs of an answer with the result code referral.
func referralsOf(e *ldap.Error) (urls []string) {
	if e.Packet == nil || len(e.Packet.Children) < 2 {
		return nil
	}
	for _, part := range e.Packet.Children[1].Children {
		if part.ClassType != ber.ClassContext || part.Tag != referralTag {
			continue
		}
		for _, one := range part.Children {
			if text, ok := one.Value.(string); ok {
				urls = append(urls, text)
			}
		}
	}
	return urls
}

// referredTo returns the target of an LDAP URL (RFC 4516) in a referral. It must have the same host name, at any port, and must be
// encrypted if this connection is.
func (l LDAP) referredTo(text string) (LDAP, bool) {
	u, err := url.Parse(text)
	if parts := strings.Split(text, "?"); len(parts) > 3 && parts[3] != "" || len(parts) > 2 && parts[2] != "" && parts[2] != "sub" {
		return l, false // the URL has a scope or filter that would replace that of this search (RFC 4511 section 4.1.10)
	}
	if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" || u.Hostname() != "" && !strings.EqualFold(u.Hostname(), l.Host) {
		return l, false
	}
	at, secure := l, l.TLS || l.StartTLS
	at.TLS = u.Scheme == "ldaps"
	at.StartTLS = secure && !at.TLS
	switch port, err := strconv.ParseInt(u.Port(), 10, 64); {
	case err == nil:
		at.Port = port
	case u.Hostname() == "":
		at.Port, at.TLS, at.StartTLS = l.Port, l.TLS, l.StartTLS
	case at.TLS:
		at.Port = 636
	default:
		at.Port = 389
	}
	if base := strings.TrimPrefix(u.Path, "/"); base != "" {
		at.Base = base
	}
	return at, true
}

// maxGroups is the maximum number of groups of a user that a search returns.
const maxGroups = 1000

// groups returns the groups of a user: those in its attribute, and those that have it as a member.
func (l LDAP) groups(ctx context.Context, c *ldap.Conn, user *ldap.Entry, name string) ([]string, error) {
	groups := user.GetEqualFoldAttributeValues(l.GroupsAttribute)
	dn := ldap.EscapeFilter(user.DN)
	found, err := l.search(ctx, c, "(&(objectClass="+ldap.EscapeFilter(l.GroupClass)+")(|(member="+dn+")(uniqueMember="+dn+")(memberUid="+
		ldap.EscapeFilter(name)+")))", []string{"1.1"}, maxGroups)
	for _, e := range found {
		groups = append(groups, e.DN)
	}
	return groups, err
}

// SameDN reports whether two distinguished names are equal in any notation (RFC 4514).
func SameDN(one, other string) bool {
	a, err := ldap.ParseDN(one)
	b, e := ldap.ParseDN(other)
	return err == nil && e == nil && a.EqualFold(b)
}
