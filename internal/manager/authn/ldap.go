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
	// Host and Port are where it is. TLS says that it speaks TLS from the beginning, StartTLS that it is asked to (RFC 4511 section 4.14).
	Host          string
	Port          int64
	TLS, StartTLS bool
	// Certificates are those that its own must be issued by, in PEM; empty: those that the machine trusts.
	Certificates string
	// BindDN and BindPassword are who searches, Base where.
	BindDN, BindPassword, Base string
	// What users and groups are, and the attributes with a user's name, mail address and groups.
	UserClass, GroupClass, NameAttribute, EmailAttribute, GroupsAttribute string
	// Aliases says when aliases are followed: NEVER, SEARCHING, FINDING or ALWAYS (RFC 4511 section 4.5.1.3).
	Aliases string
	// RefuseReferrals makes a search fail that is answered by a referral. FollowReferrals goes on at those that name Host, whatever the port,
	// by the same certificates and as encrypted as here; others are passed over, as all are without it.
	RefuseReferrals, FollowReferrals bool
}

// aliases are the ways to follow aliases.
var aliases = map[string]int{"NEVER": ldap.NeverDerefAliases, "SEARCHING": ldap.DerefInSearching, "FINDING": ldap.DerefFindingBaseObj,
	"ALWAYS": ldap.DerefAlways}

// Check asks whether a name and a password are right, and who that is. ErrWrong says that they are not, ErrAway that nobody could be asked.
func (l LDAP) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if password == "" { // which a directory takes for somebody who does not say who it is (RFC 4513 section 5.1.2)
		return id, ErrWrong
	}
	ctx, end := asking(ctx)
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
	if at != l { // behind a referral
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
		return id, away("signing in as %s: %w", user.DN, err)
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

// HasGroup asks whether the directory has a group of a distinguished name.
func (l LDAP) HasGroup(ctx context.Context, dn string) (there bool, err error) {
	if _, err := ldap.ParseDN(dn); err != nil {
		return false, nil
	}
	ctx, end := asking(ctx)
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
	return false, away("looking for a group: %w", err)
}

// referredGroup reports whether a group is behind a referral that is followed.
func (l LDAP) referredGroup(ctx context.Context, c *ldap.Conn, dn string) (bool, error) {
	if !l.FollowReferrals {
		return false, nil
	}
	found, err := l.search(ctx, c, "(objectClass="+ldap.EscapeFilter(l.GroupClass)+")", []string{"1.1"}, mostGroups)
	return slices.ContainsFunc(found, func(f foundEntry) bool { return SameDN(f.DN, dn) }), err
}

// connect connects, and signs in as who searches.
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

// dial connects, encrypted where that is asked for.
func (l LDAP) dial(ctx context.Context) (*ldap.Conn, error) {
	address := net.JoinHostPort(l.Host, strconv.FormatInt(l.Port, 10))
	config, err := trusting(l.Host, l.Certificates)
	if err != nil {
		return nil, away("%w", err)
	}
	plain, err := outbound.Dialer().DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, away("connecting: %w", err)
	}
	if until, ok := ctx.Deadline(); ok {
		if err := plain.SetDeadline(until); err != nil {
			return nil, away("connecting: %w", err)
		}
	}
	plain = &boundedConn{Conn: plain, left: mostDirectoryBytes}
	if l.TLS {
		secure := tls.Client(plain, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, away("speaking TLS: %w", err)
		}
		plain = secure
	}
	c := ldap.NewConn(plain, l.TLS)
	c.SetTimeout(AskTime)
	c.Start()
	if l.StartTLS && !l.TLS {
		if err := c.StartTLS(config); err != nil {
			_ = c.Close()
			return nil, away("speaking TLS: %w", err)
		}
	}
	return c, nil
}

// mostDirectoryBytes bounds what a directory sends over one connection: a user with its groups has some hundred KiB.
const mostDirectoryBytes = 8 << 20

// boundedConn is a connection that fails when more bytes than left have come.
type boundedConn struct {
	net.Conn
	left int
}

// Read reads, and fails behind the last byte that may come.
func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the directory sends more than %d bytes", mostDirectoryBytes)
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// bindSearcher signs in as who searches.
func (l LDAP) bindSearcher(c *ldap.Conn) error {
	err := c.Bind(l.BindDN, l.BindPassword)
	if l.BindPassword == "" {
		err = c.UnauthenticatedBind(l.BindDN)
	}
	if err != nil {
		return away("signing in as %s, who searches: %w", l.BindDN, err)
	}
	return nil
}

// find looks for a user by its name, and says where it is: l, or, where it is not there, what a referral leads to. ErrWrong where there is
// none, or more than one.
func (l LDAP) find(ctx context.Context, c *ldap.Conn, name string) (*ldap.Entry, LDAP, error) {
	filter := "(&(objectClass=" + ldap.EscapeFilter(l.UserClass) + ")(" + ldap.EscapeFilter(l.NameAttribute) + "=" +
		ldap.EscapeFilter(name) + "))"
	attributes := []string{l.NameAttribute, l.EmailAttribute, l.GroupsAttribute}
	entries, referrals, err := l.searchHere(c, filter, attributes, 2)
	if err != nil {
		return nil, l, err
	}
	named := func(found []foundEntry) []foundEntry { // without what matched by another rule than that the names are the same
		return slices.DeleteFunc(found, func(f foundEntry) bool {
			return !slices.ContainsFunc(f.GetEqualFoldAttributeValues(l.NameAttribute), func(v string) bool { return strings.EqualFold(v, name) })
		})
	}
	found := named(l.at(entries))
	if len(found) == 0 {
		behind, failed := l.behind(ctx, referrals, filter, attributes, 2)
		if found = named(behind); len(found) == 0 && failed != nil { // the user may be there
			return nil, l, failed
		}
	}
	if len(found) != 1 {
		return nil, l, ErrWrong
	}
	return found[0].Entry, found[0].at, nil
}

// at gives entries that were found here.
func (l LDAP) at(entries []*ldap.Entry) (all []foundEntry) {
	for _, e := range entries {
		all = append(all, foundEntry{e, l})
	}
	return all
}

// foundEntry is an entry, and where it was found.
type foundEntry struct {
	*ldap.Entry
	at LDAP
}

// mostReferrals is how many referrals one search follows.
const mostReferrals = 8

// search looks for entries, at most so many, here and behind the referrals that are followed, each once. A referral that fails is passed
// over: one server that is away keeps nobody out who is known elsewhere.
func (l LDAP) search(ctx context.Context, c *ldap.Conn, filter string, attributes []string, most int) ([]foundEntry, error) {
	entries, referrals, err := l.searchHere(c, filter, attributes, most)
	if err != nil {
		return nil, err
	}
	all := l.at(entries)
	behind, _ := l.behind(ctx, referrals, filter, attributes, most)
	for _, f := range behind {
		if !slices.ContainsFunc(all, func(o foundEntry) bool { return SameDN(o.DN, f.DN) }) {
			all = append(all, f)
		}
	}
	return all, nil
}

// behind looks for entries behind referrals that are followed, each once. failed is why one of them could not be asked; the others are.
func (l LDAP) behind(ctx context.Context, referrals []string, filter string, attributes []string, most int) (
	all []foundEntry, failed error,
) {
	if !l.FollowReferrals {
		return nil, nil
	}
	been := []LDAP{l}
	for ; len(referrals) > 0 && len(been) <= mostReferrals; referrals = referrals[1:] {
		at, ok := l.referredTo(referrals[0])
		if !ok || slices.Contains(been, at) {
			continue
		}
		been = append(been, at)
		entries, more, err := at.searchAlone(ctx, filter, attributes, most)
		if err != nil {
			failed = err
			continue
		}
		for _, f := range at.at(entries) {
			if !slices.ContainsFunc(all, func(o foundEntry) bool { return SameDN(o.DN, f.DN) }) {
				all = append(all, f)
			}
		}
		referrals = append(referrals, more...)
	}
	return all, failed
}

// searchAlone searches over a connection of its own.
func (l LDAP) searchAlone(ctx context.Context, filter string, attributes []string, most int) ([]*ldap.Entry, []string, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = c.Close() }()
	return l.searchHere(c, filter, attributes, most)
}

// searchHere looks for entries, at most so many, and gives the referrals of the answer.
func (l LDAP) searchHere(c *ldap.Conn, filter string, attributes []string, most int) ([]*ldap.Entry, []string, error) {
	found, err := c.Search(ldap.NewSearchRequest(l.Base, ldap.ScopeWholeSubtree, aliases[l.Aliases], most, int(AskTime.Seconds()), false,
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
		return nil, nil, away("searching: %w", err)
	}
	if l.RefuseReferrals && len(referrals) > 0 {
		return nil, nil, away("the directory answers with a referral to %s", cmp.Or(referrals[0], "elsewhere"))
	}
	if found == nil {
		return nil, referrals, nil
	}
	return found.Entries[:min(len(found.Entries), most)], referrals, nil // whatever the directory sends
}

// referralTag is that of the referral in an LDAPResult (RFC 4511 section 4.1.9).
const referralTag = 3

// referralsOf gives the URLs of an answer with the result code referral.
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

// referredTo gives where an LDAP URL (RFC 4516) of a referral leads, as far as the directory's own host is meant: the same host name, at
// any port, encrypted where this connection is.
func (l LDAP) referredTo(text string) (LDAP, bool) {
	u, err := url.Parse(text)
	if parts := strings.Split(text, "?"); len(parts) > 3 && parts[3] != "" || len(parts) > 2 && parts[2] != "" && parts[2] != "sub" {
		return l, false // a scope or a filter of its own, which would take the place of this search's (RFC 4511 section 4.1.10)
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

// mostGroups is how many groups of a user are looked at.
const mostGroups = 1000

// groups gives the groups of a user: those that it names itself, and those that name it.
func (l LDAP) groups(ctx context.Context, c *ldap.Conn, user *ldap.Entry, name string) ([]string, error) {
	groups := user.GetEqualFoldAttributeValues(l.GroupsAttribute)
	dn := ldap.EscapeFilter(user.DN)
	found, err := l.search(ctx, c, "(&(objectClass="+ldap.EscapeFilter(l.GroupClass)+")(|(member="+dn+")(uniqueMember="+dn+")(memberUid="+
		ldap.EscapeFilter(name)+")))", []string{"1.1"}, mostGroups)
	for _, e := range found {
		groups = append(groups, e.DN)
	}
	return groups, err
}

// SameDN reports whether two distinguished names are the same, however they are written (RFC 4514).
func SameDN(one, other string) bool {
	a, err := ldap.ParseDN(one)
	b, e := ldap.ParseDN(other)
	return err == nil && e == nil && a.EqualFold(b)
}
