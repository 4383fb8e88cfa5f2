package authn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/outbound"

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
	// RefuseReferrals makes a search fail that is answered by a referral; they are passed over otherwise, and never followed.
	RefuseReferrals bool
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
	c, err := l.dial(ctx)
	if err != nil {
		return id, err
	}
	defer func() { _ = c.Close() }()
	if err := l.bindSearcher(c); err != nil {
		return id, err
	}
	user, err := l.find(c, name)
	if err != nil {
		return id, err
	}
	switch err := c.Bind(user.DN, password); {
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
	if id.Groups, err = l.groups(c, user, name); err != nil {
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
	c, err := l.dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	if err := l.bindSearcher(c); err != nil {
		return false, err
	}
	found, err := c.Search(ldap.NewSearchRequest(dn, ldap.ScopeBaseObject, aliases[l.Aliases], 1, int(AskTime.Seconds()), false,
		"(objectClass="+ldap.EscapeFilter(l.GroupClass)+")", []string{"1.1"}, nil))
	switch {
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax):
		return false, nil
	case err != nil:
		return false, away("looking for a group: %w", err)
	}
	return len(found.Entries) == 1, nil
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

// find looks for a user by its name; ErrWrong where there is none, or more than one.
func (l LDAP) find(c *ldap.Conn, name string) (*ldap.Entry, error) {
	filter := "(&(objectClass=" + ldap.EscapeFilter(l.UserClass) + ")(" + ldap.EscapeFilter(l.NameAttribute) + "=" +
		ldap.EscapeFilter(name) + "))"
	found, err := l.search(c, filter, []string{l.NameAttribute, l.EmailAttribute, l.GroupsAttribute}, 2)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(e *ldap.Entry) bool { // what matched by another rule than that the names are the same
		return !slices.ContainsFunc(e.GetEqualFoldAttributeValues(l.NameAttribute), func(v string) bool { return strings.EqualFold(v, name) })
	})
	if len(found) != 1 {
		return nil, ErrWrong
	}
	return found[0], nil
}

// search looks for entries, at most so many.
func (l LDAP) search(c *ldap.Conn, filter string, attributes []string, most int) ([]*ldap.Entry, error) {
	found, err := c.Search(ldap.NewSearchRequest(l.Base, ldap.ScopeWholeSubtree, aliases[l.Aliases], most, int(AskTime.Seconds()), false,
		filter,
		attributes, nil))
	var e *ldap.Error
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded):
	case ldap.IsErrorWithCode(err, ldap.LDAPResultReferral) && !l.RefuseReferrals:
		return nil, nil
	case errors.As(err, &e) || err != nil:
		return nil, away("searching: %w", err)
	}
	if l.RefuseReferrals && len(found.Referrals) > 0 {
		return nil, away("the directory answers with a referral to %s", cmp.Or(found.Referrals[0], "elsewhere"))
	}
	return found.Entries, nil
}

// mostGroups is how many groups of a user are looked at.
const mostGroups = 1000

// groups gives the groups of a user: those that it names itself, and those that name it.
func (l LDAP) groups(c *ldap.Conn, user *ldap.Entry, name string) ([]string, error) {
	groups := user.GetEqualFoldAttributeValues(l.GroupsAttribute)
	dn := ldap.EscapeFilter(user.DN)
	found, err := l.search(c, "(&(objectClass="+ldap.EscapeFilter(l.GroupClass)+")(|(member="+dn+")(uniqueMember="+dn+")(memberUid="+
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
