package identity

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerAuthenticators declares the collection of authenticators, with the one that is always there.
func registerAuthenticators(r *resource.Registry) {
	r.Collection(resource.Collection{Name: authenticators, Parents: []string{""}, Guard: resource.Managed},
		&AddressManagerAuthenticator{}, &LDAPAuthenticator{}, &KerberosAuthenticator{}, &RADIUSAuthenticator{}, &TACACSPlusAuthenticator{},
		&SAMLIdentityProvider{}, &OAuthAuthorizationServer{}, &X509Authenticator{})
	r.Seed(func(c *resource.Change) error {
		found, err := c.Tx.ByName(authenticators, 0, ownAuthenticator)
		if err != nil || len(found) > 0 {
			return err
		}
		x := &AddressManagerAuthenticator{}
		x.Type, x.Name = "AddressManagerAuthenticator", ownAuthenticator
		_, err = c.Following().Create(c.API.TypeNamed(x.Type), x)
		return err
	})
}

// ownAuthenticator is the name of the authenticator that is always there.
const ownAuthenticator = "Address Manager"

// AddressManagerAuthenticator is the one that is always there: the manager itself knows the passwords.
type AddressManagerAuthenticator struct {
	schema.Head `head:"nonblank" post:"no"`
	Secondary
	// Hostname is null.
	Hostname string `api:"hostname,nonblank"`
}

// LDAPAuthenticator knows users from a directory.
type LDAPAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is where it is.
	Hostname string `api:"hostname,required,nonblank"`
	// Port is the port it listens on.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"389"`
	// AdminDN is who searches in the directory.
	AdminDN string `api:"adminDn,required,nonblank"`
	// AdminPassword is the password for it; it is never shown.
	AdminPassword schema.Secret `api:"adminPassword,post,nonblank,nullable"`
	// SSLEnabled says whether the connection is encrypted.
	SSLEnabled bool `api:"sslEnabled,put"`
	// StartTLSEnabled says whether it becomes encrypted before anything is sent (StartTLS). It is ours.
	StartTLSEnabled bool `api:"startTlsEnabled"`
	// CACertificate is what the directory's certificate must be issued by, in PEM or base64; null: what the machine trusts. It is ours.
	CACertificate string `api:"caCertificate" length:"65535"`
	// SchemaType says which attributes it has.
	SchemaType string `api:"schemaType,required" enum:"ACTIVE_DIRECTORY|OPENLDAP|OTHER_LDAP"`
	// SearchBase is where users are searched.
	SearchBase string `api:"searchBase,required,nonblank"`
	// UserObjectClass is the class of users.
	UserObjectClass string `api:"userObjectClass,put,nonblank,nullable"`
	// GroupObjectClass is the class of groups.
	GroupObjectClass string `api:"groupObjectClass,put,nonblank,nullable"`
	// UserPrefix is the attribute with the name of a user.
	UserPrefix string `api:"userPrefix,put,nonblank,nullable"`
	// EmailPrefix is the attribute with the mail address of a user.
	EmailPrefix string `api:"emailPrefix,put,nonblank,nullable"`
	// MemberOfPrefix is the attribute with the groups of a user.
	MemberOfPrefix string `api:"memberOfPrefix,put,nonblank,nullable"`
	// ReferralPolicy says what is done with referrals.
	ReferralPolicy string `api:"referralPolicy,required" enum:"IGNORE|FOLLOW|THROW"`
	// AliasDereferencePolicy says what is done with aliases.
	AliasDereferencePolicy string `api:"aliasDereferencePolicy,required" enum:"ALWAYS|NEVER|FINDING|SEARCHING"`
}

// X509Authenticator knows users by certificates that it asks a server about.
type X509Authenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// PrimaryServerURL is the server that is asked whether a certificate is still good.
	PrimaryServerURL string `api:"primaryServerUrl,required"`
	// SecondaryServerURL is the one that is asked where the first does not answer.
	SecondaryServerURL string `api:"secondaryServerUrl"`
	// LDAPUserMatchOption says how a certificate leads to a user of a directory.
	LDAPUserMatchOption string `api:"ldapUserMatchOption,required" enum:"NONE|CUSTOM_USER_PREFIX_MATCH|STRICT_DN_MATCH"`
	// CACertificates are those that certificates are issued by.
	CACertificates []string `api:"caCertificates,required" length:"65535"`
}

// KerberosAuthenticator knows users from a realm of Kerberos.
type KerberosAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is the key distribution center, with a port where that is not 88.
	Hostname string `api:"hostname,required,nonblank"`
	// Realm is the realm, as the center writes it: EXAMPLE.NET.
	Realm string `api:"realm,required,nonblank"`
	// Keytab is a keytab in base64 with the key of a service in the realm, by which the center's answers are verified; it is never shown.
	// It is ours.
	Keytab schema.Secret `api:"keytab,nonblank,nullable"`
}

// RADIUSAuthenticator asks a RADIUS server.
type RADIUSAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is where it is.
	Hostname string `api:"hostname,required,nonblank"`
	// Timeout is how long it is waited for.
	Timeout string `api:"timeout,put,notNull,duration"`
	// Port is the port it listens on.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"1812"`
	// Retries is how often it is asked.
	Retries int64 `api:"retries,put" min:"1" max:"10" default:"3"`
	// SharedSecret is what messages are signed with; it is never shown.
	SharedSecret schema.Secret `api:"sharedSecret,post,nonblank,nullable"`
	// AuthenticationProtocol is how passwords travel.
	AuthenticationProtocol string `api:"authenticationProtocol,required" enum:"CHAP|PAP"`
	// MessageAuthenticatorRequired says that answers without a Message-Authenticator are not taken: those can be forged on the way
	// (CVE-2024-3596). It is ours.
	MessageAuthenticatorRequired bool `api:"messageAuthenticatorRequired" default:"true"`
}

// TACACSPlusAuthenticator asks a TACACS+ server.
type TACACSPlusAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is where it is.
	Hostname string `api:"hostname,required,nonblank"`
	// Timeout is how long it is waited for.
	Timeout string `api:"timeout,put,notNull,duration"`
	// Port is the port it listens on.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"49"`
	// SharedSecret is what messages are signed with; it is never shown.
	SharedSecret schema.Secret `api:"sharedSecret,post,nonblank,nullable"`
	// AuthenticationProtocol is how passwords travel.
	AuthenticationProtocol string `api:"authenticationProtocol,required" enum:"CHAP|PAP"`
	// GroupAttribute is the argument of an authorization that holds the groups of a user, such as group; null: groups are not asked for.
	GroupAttribute string `api:"groupAttribute,nonblank"`
	// Attributes are the arguments that are sent with the question for groups, such as service=shell.
	Attributes []Attribute `api:"attributes,put,notNull"`
}

// SAMLIdentityProvider signs users in by SAML.
type SAMLIdentityProvider struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Description says what it is.
	Description string `api:"description" length:"4000"`
	// Enabled says whether users may come from it.
	Enabled bool `api:"enabled,put"`
	// GroupAttribute is the attribute with the groups of a user.
	GroupAttribute string `api:"groupAttribute,put,nonblank"`
	// EmailAttribute is the attribute with the mail address of a user.
	EmailAttribute string `api:"emailAttribute,put,nonblank"`
	// SignOnURL is where users sign in.
	SignOnURL string `api:"signOnUrl,required,nonblank"`
	// LogoutURL is where they sign out.
	LogoutURL string `api:"logoutUrl"`
	// EntityID is what it calls itself.
	EntityID string `api:"entityId,required,nonblank"`
	// SigningCertificate is what its messages are verified by.
	SigningCertificate string `api:"signingCertificate,required" length:"65535"`
}

// OAuthAuthorizationServer signs users in by OAuth 2.0.
type OAuthAuthorizationServer struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Description says what it is.
	Description string `api:"description" length:"4000"`
	// Enabled says whether its tokens are taken.
	Enabled bool `api:"enabled,put"`
	// UserClaim is the claim with the name of a user.
	UserClaim string `api:"userClaim,required,nonblank"`
	// GroupClaim is the claim with the groups of a user.
	GroupClaim string `api:"groupClaim,required,nonblank"`
	// EmailClaim is the claim with the mail address of a user.
	EmailClaim string `api:"emailClaim,required,nonblank"`
	// ValidationMethod says who verifies tokens.
	ValidationMethod string `api:"validationMethod,required" enum:"AUTHORIZATION_SERVER|LOCAL"`
	// ClientID is what the manager calls itself there.
	ClientID string `api:"clientId,nonblank"`
	// ClientSecret is its password; it is never shown.
	ClientSecret schema.Secret `api:"clientSecret,nonblank"`
	// IntrospectionURL is where tokens are verified.
	IntrospectionURL string `api:"introspectionUrl"`
	// UserInfoURL is where users are asked for.
	UserInfoURL string `api:"userInfoUrl"`
	// AuthorizationOption says how the password travels.
	AuthorizationOption string `api:"authorizationOption" enum:"BASIC|POST"`
	// Audience is whom tokens must be for.
	Audience string `api:"audience,nonblank"`
	// Issuer is who must have made them.
	Issuer string `api:"issuer,nonblank"`
	// SigningCertificate is what they are verified by; null: the keys that the issuer publishes (OpenID Connect Discovery).
	SigningCertificate string `api:"signingCertificate" length:"65535"`
	// CACertificate is what the certificates of the server must be issued by, in PEM or base64; null: what the machine trusts. It is ours.
	CACertificate string `api:"caCertificate" length:"65535"`
}

// Secondary is what every authenticator has: another one behind it.
type Secondary struct {
	// SecondaryAuthenticator is asked when this one cannot be reached.
	SecondaryAuthenticator schema.Ref `api:"secondaryAuthenticator" ref:"AddressManagerAuthenticator|LDAPAuthenticator|KerberosAuthenticator|RADIUSAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer" onDelete:"refuse"`
}

// Attribute is one that is asked along.
type Attribute struct {
	// Name is its name.
	Name string `api:"name,required,nonblank"`
	// Value is its value.
	Value string `api:"value"`
}
