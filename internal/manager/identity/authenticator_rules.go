package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/authz"
)

// authenticators is the name of the collection. ownType is the type of the manager's own authenticator.
const (
	authenticators = "authenticators"
	ownType        = "AddressManagerAuthenticator"
)

// BeforeWrite checks that the keytab can be parsed and belongs to the realm.
func (x *KerberosAuthenticator) BeforeWrite(c *resource.Change) error {
	if x.Keytab.Plain == "" && x.Keytab.Sealed == "" {
		p := problem.BadRequest("MissingRequiredField", "keytab: is required to verify the responses of the key distribution center. "+
			"Create a service key in the realm %s there (kadmin: ktadd) and send the file in base64", x.Realm)
		p.Fields = []string{"keytab"}
		return p
	}
	if x.Keytab.Plain != "" {
		keys, err := authn.ParseKeytab(x.Keytab.Plain)
		if err != nil {
			return problem.Invalid("keytab", "cannot be read: %v", err)
		}
		if keys.Realm() != x.Realm {
			return problem.Field("ConflictingResourceFieldValues", "keytab", "is for the realm %s, but realm is %s", keys.Realm(), x.Realm)
		}
	}
	if old, ok := c.Old.(*KerberosAuthenticator); ok && x.Keytab.Plain == "" && old.Realm != x.Realm {
		return requireAgain("keytab")
	}
	return x.checkSecondary(c, x.ID)
}

// BeforeWrite checks the timeout, the shared secret and the arguments.
func (x *TACACSPlusAuthenticator) BeforeWrite(c *resource.Change) error {
	x.Timeout = cmp.Or(x.Timeout, defaultServerTimeout)
	if err := checkTimeout(x.Timeout); err != nil {
		return err
	}
	if c.IsCreation() && x.SharedSecret.Plain == "" {
		return problem.Join(schema.MissingFields([]string{"sharedSecret"}))
	}
	if old, ok := c.Old.(*TACACSPlusAuthenticator); ok && x.SharedSecret.Plain == "" && (old.Hostname != x.Hostname || old.Port != x.Port) {
		return requireAgain("sharedSecret")
	}
	if len(x.Attributes) > 0 && x.GroupAttribute == "" {
		return problem.Invalid("attributes", "require groupAttribute: they are sent when the groups of a user are queried")
	}
	for i, a := range x.Attributes {
		if text := a.Name + "=" + a.Value; len(text) > 255 || strings.ContainsAny(a.Name, "=*") {
			return problem.Invalid("attributes", "entry %d: the name must not contain = or *; name and value together have at most 254 octets", i)
		}
	}
	return x.checkSecondary(c, x.ID)
}

// BeforeWrite rejects a second AddressManagerAuthenticator and changes of the existing one.
func (x *AddressManagerAuthenticator) BeforeWrite(c *resource.Change) error {
	x.Name = ownAuthenticator
	if c.IsRequested() && c.IsCreation() {
		return problem.Field("InvalidResourceType", "type", "there is only one AddressManagerAuthenticator: choose another type, such "+
			"as LDAPAuthenticator")
	}
	if c.IsRequested() && (x.SecondaryAuthenticator.ID != 0 || x.Hostname != "") {
		return problem.Invalid("secondaryAuthenticator", "and hostname must be null for the manager's own authenticator")
	}
	return nil
}

// BeforeDelete rejects the deletion of the manager's own authenticator.
func (x *AddressManagerAuthenticator) BeforeDelete(*resource.Change) error {
	return problem.BadRequest("DeleteAuthenticatorNotAllowed", "the manager's own authenticator cannot be deleted")
}

// passwordTypes are the types of authenticators that check passwords.
var passwordTypes = []string{"LDAPAuthenticator", "RADIUSAuthenticator", "TACACSPlusAuthenticator", "KerberosAuthenticator"}

// checkSecondary rejects a secondary authenticator that does not check passwords, or that is the authenticator itself.
func (x *Secondary) checkSecondary(c *resource.Change, id int64) error {
	if x.SecondaryAuthenticator.ID == 0 {
		return nil
	}
	if x.SecondaryAuthenticator.ID == id {
		return problem.Field("ResourceHasCircularReference", "secondaryAuthenticator", "is the authenticator itself")
	}
	head, err := c.Tx.Head(x.SecondaryAuthenticator.ID)
	if store.IsNotFound(err) {
		return nil // another rule rejects it
	}
	if err == nil && !slices.Contains(passwordTypes, head.Type) {
		err = problem.Invalid("secondaryAuthenticator", "must be one of %s: a %s cannot check passwords of these users",
			strings.Join(passwordTypes, ", "), head.Type)
	}
	return err
}

// presets are the default classes and attributes per schema type.
var presets = map[string]authn.LDAP{
	"ACTIVE_DIRECTORY": {UserClass: "person", GroupClass: "group", NameAttribute: "sAMAccountName", EmailAttribute: "userPrincipalName",
		GroupsAttribute: "memberOf"},
	"OPENLDAP": {UserClass: "inetOrgPerson", GroupClass: "groupOfNames", NameAttribute: "uid", EmailAttribute: "mail",
		GroupsAttribute: "memberOf"},
	"OTHER_LDAP": {UserClass: "person", GroupClass: "groupOfNames", NameAttribute: "uid", EmailAttribute: "mail", GroupsAttribute: "memberOf"},
}

// directory returns the client of the directory. password is the bind password.
func (x *LDAPAuthenticator) directory(password string) authn.LDAP {
	preset := presets[x.SchemaType]
	return authn.LDAP{Host: x.Hostname, Port: x.Port, TLS: x.SSLEnabled, StartTLS: x.StartTLSEnabled, Certificates: x.CACertificate,
		BindDN: x.AdminDN, BindPassword: password, Base: x.SearchBase, UserClass: cmp.Or(x.UserObjectClass, preset.UserClass),
		GroupClass: cmp.Or(x.GroupObjectClass, preset.GroupClass), NameAttribute: cmp.Or(x.UserPrefix, preset.NameAttribute),
		EmailAttribute: cmp.Or(x.EmailPrefix, preset.EmailAttribute), GroupsAttribute: cmp.Or(x.MemberOfPrefix, preset.GroupsAttribute),
		Aliases: x.AliasDereferencePolicy, RefuseReferrals: x.ReferralPolicy == "THROW", FollowReferrals: x.ReferralPolicy == "FOLLOW"}
}

// securePort is the port of LDAP over TLS.
const securePort = 636

// BeforeWrite sets the default port and validates the settings.
func (x *LDAPAuthenticator) BeforeWrite(c *resource.Change) error {
	if c.IsCreation() && x.SSLEnabled && !c.SetFields["port"] {
		x.Port = securePort
	}
	if x.SSLEnabled && x.StartTLSEnabled {
		return problem.Field("ConflictingResourceFieldValues", "startTlsEnabled",
			"cannot be combined with sslEnabled, which uses TLS from the start")
	}
	if err := checkCertificates("caCertificate", x.CACertificate); err != nil {
		return err
	}
	if old, ok := c.Old.(*LDAPAuthenticator); ok && x.AdminPassword.Plain == "" && (old.Hostname != x.Hostname || old.Port != x.Port ||
		old.SSLEnabled && !x.SSLEnabled || old.StartTLSEnabled && !x.StartTLSEnabled || old.CACertificate != x.CACertificate ||
		old.AdminDN != x.AdminDN) {
		return requireAgain("adminPassword")
	}
	return x.checkSecondary(c, x.ID)
}

// requireAgain returns the error that a secret has to be sent again. It is required when the secret would go to another server or over a
// less protected connection: otherwise a caller who does not know the secret could capture it.
func requireAgain(field string) error {
	p := problem.BadRequest("MissingRequiredField", "%s: must be sent again when its destination or protocol changes", field)
	p.Fields = []string{field}
	return p
}

// checkCertificates rejects a text that does not contain certificates. The empty text is valid.
func checkCertificates(field, text string) error {
	if text == "" {
		return nil
	}
	if _, err := authn.ParseCertificates(text); err != nil {
		return problem.Field("InvalidX509CertificateValue", field, "has no certificate in PEM or base64: %v", err)
	}
	return nil
}

// Bounds and default of the timeout of a server.
const (
	minServerTimeout     = 100 * time.Millisecond
	maxServerTimeout     = time.Minute
	defaultServerTimeout = "PT5S"
)

// checkTimeout requires a timeout of 0.1 s to 1 min.
func checkTimeout(text string) error {
	if d := schema.LengthOf(text); d < minServerTimeout || d > maxServerTimeout {
		return problem.Field("DurationValueOutsideRange", "timeout", "must be PT0.1S to PT1M")
	}
	return nil
}

// BeforeWrite sets the default timeout and validates the settings.
func (x *RADIUSAuthenticator) BeforeWrite(c *resource.Change) error {
	x.Timeout = cmp.Or(x.Timeout, defaultServerTimeout)
	if err := checkTimeout(x.Timeout); err != nil {
		return err
	}
	if c.IsCreation() && x.SharedSecret.Plain == "" {
		return problem.Join(schema.MissingFields([]string{"sharedSecret"}))
	}
	if old, ok := c.Old.(*RADIUSAuthenticator); ok && x.SharedSecret.Plain == "" && (old.Hostname != x.Hostname || old.Port != x.Port) {
		return requireAgain("sharedSecret")
	}
	if d := schema.LengthOf(x.Timeout); time.Duration(x.Retries+1)*d > maxServerTimeout {
		return problem.Field("DurationValueOutsideRange", "timeout", "times retries plus one must not exceed one minute")
	}
	return x.checkSecondary(c, x.ID)
}

// localValidation is the validation method of tokens that the manager verifies itself.
const localValidation = "LOCAL"

// tokens returns the verifier of the server's tokens. secret is the client secret.
func (x *OAuthAuthorizationServer) tokens(secret string, now func() time.Time) *authn.Tokens {
	t := &authn.Tokens{Issuer: x.Issuer, Audience: x.Audience, UserClaim: x.UserClaim, GroupClaim: x.GroupClaim, EmailClaim: x.EmailClaim,
		Trusted: x.CACertificate, Now: now}
	t.ClientID, t.ClientSecret, t.InForm = x.ClientID, secret, x.AuthorizationOption == "POST"
	if x.ValidationMethod == localValidation {
		t.Certificates = x.SigningCertificate
		return t
	}
	t.IntrospectionURL, t.UserInfoURL = x.IntrospectionURL, x.UserInfoURL
	return t
}

// BeforeWrite checks that the fields that the validation method needs are set.
func (x *OAuthAuthorizationServer) BeforeWrite(c *resource.Change) error {
	if x.SecondaryAuthenticator.ID != 0 {
		return problem.Invalid("secondaryAuthenticator", "must be null: tokens are only verified by their issuer")
	}
	var missing []string
	need := func(field, value string) {
		if value == "" {
			missing = append(missing, field)
		}
	}
	if x.ValidationMethod == localValidation { // without a certificate, the issuer publishes the keys
		need("issuer", x.Issuer)
		need("audience", x.Audience)
	} else {
		need("clientId", x.ClientID)
		need("introspectionUrl", x.IntrospectionURL)
		if x.ClientSecret.Plain == "" && x.ClientSecret.Sealed == "" {
			missing = append(missing, "clientSecret")
		}
	}
	if len(missing) > 0 {
		return problem.Join(schema.MissingFields(missing))
	}
	if old, ok := c.Old.(*OAuthAuthorizationServer); ok && x.ClientSecret.Plain == "" && x.ClientSecret.Sealed != "" &&
		(old.IntrospectionURL != x.IntrospectionURL || old.Issuer != x.Issuer || old.CACertificate != x.CACertificate) {
		return requireAgain("clientSecret")
	}
	for field, text := range map[string]string{"introspectionUrl": x.IntrospectionURL, "userInfoUrl": x.UserInfoURL} {
		if err := checkURL(field, text); err != nil {
			return err
		}
	}
	if x.ValidationMethod == localValidation && x.SigningCertificate == "" || x.Issuer != "" && x.ClientID != "" { // browsers go there
		if err := checkURL("issuer", x.Issuer); err != nil {
			return err
		}
	}
	return errors.Join(checkCertificates("signingCertificate", x.SigningCertificate), checkCertificates("caCertificate", x.CACertificate))
}

// Validate rejects a second enabled server that verifies tokens of the same issuer locally: the owner of a token would be ambiguous.
func (x *OAuthAuthorizationServer) Validate(c *resource.Change) error {
	if x.ValidationMethod != localValidation || !x.Enabled {
		return nil
	}
	return c.Each(store.All{store.InCollection(authenticators), authz.OfType(x.Type)}, func(_ *store.Resource, o schema.Object) error {
		other, ok := o.(*OAuthAuthorizationServer)
		if ok && other.ID != x.ID && other.Enabled && other.ValidationMethod == localValidation && other.Issuer == x.Issuer {
			return problem.Conflict("ResourceConflictsWithOther", "issuer: authenticator %s (%d) already verifies its tokens", other.Name, other.ID)
		}
		return nil
	})
}

// checkURL requires an https URL. http is allowed to the local host only, because secrets are sent there. The empty text is valid.
func checkURL(field, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return problem.Field("InvalidUrlValue", field, "must be a URL such as https://sso.example.net/, not %q", text)
	case u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost" || u.Hostname() == "::1"):
		return nil
	}
	return problem.Field("InvalidUrlScheme", field, "must be https because it transmits secrets and tokens")
}

// groupKinds maps the group types to the types of authenticators that can own such groups.
var groupKinds = map[string][]string{"LDAP": {"LDAPAuthenticator"}, "TACACS_PLUS": {"TACACSPlusAuthenticator"},
	"SSO": {"OAuthAuthorizationServer", "SAMLIdentityProvider"}}

// checkGroupExists checks with the directory that the LDAP group in a request exists. It runs before the transaction.
func checkGroupExists(ctx context.Context, a *resource.API, members map[string]json.RawMessage) (any, error) {
	var wanted struct {
		Name, GroupType string
		Authenticator   struct{ ID int64 }
	}
	text, err := json.Marshal(members)
	if err != nil || json.Unmarshal(text, &wanted) != nil || wanted.GroupType != "LDAP" || wanted.Authenticator.ID == 0 || a.Store == nil {
		return nil, err
	}
	var at *external
	if err := a.Store.View(ctx, func(tx *store.Tx) error {
		all, err := ServiceOf(a.Store).loadExternals(tx)
		for _, e := range all {
			if e.id == wanted.Authenticator.ID {
				at = e
			}
		}
		return err
	}); err != nil || at == nil {
		return nil, err
	}
	directory, ok := at.checks.(authn.LDAP)
	if !ok {
		return nil, nil
	}
	there, err := directory.HasGroup(ctx, wanted.Name)
	switch {
	case err != nil:
		return nil, problem.Field("CannotFetchGroupsFromLdapAuthenticator", "authenticator", "querying the group failed: %v", err)
	case !there:
		return nil, problem.Field("InvalidLdapGroupName", "name", "group %q does not exist there: use its distinguished name", wanted.Name)
	}
	return nil, nil
}
