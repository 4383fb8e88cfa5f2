package identity

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerAuthenticators declares the collection of authenticators and seeds the manager's own authenticator.
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

// ownAuthenticator is the name of the manager's own authenticator, which always exists.
const ownAuthenticator = "Address Manager"

// AddressManagerAuthenticator is the manager's own authenticator, which always exists. It checks passwords that the manager stores.
type AddressManagerAuthenticator struct {
	schema.Head `head:"nonblank" post:"no"`
	Secondary
	// Hostname is null.
	Hostname string `api:"hostname,nonblank"`
}

// LDAPAuthenticator authenticates users against an LDAP directory.
type LDAPAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is the host name or address of the directory server.
	Hostname string `api:"hostname,required,nonblank"`
	// Port is the TCP port of the directory server.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"389"`
	// AdminDN is the distinguished name that the manager binds with to search the directory.
	AdminDN string `api:"adminDn,required,nonblank"`
	// AdminPassword is the bind password. It is write-only.
	AdminPassword schema.Secret `api:"adminPassword,post,nonblank,nullable"`
	// SSLEnabled enables LDAP over TLS.
	SSLEnabled bool `api:"sslEnabled,put"`
	// StartTLSEnabled upgrades the connection to TLS (StartTLS) before credentials are sent. Portolan extension.
	StartTLSEnabled bool `api:"startTlsEnabled"`
	// CACertificate is the CA certificate that must have issued the directory's certificate, in PEM or base64. Null means the trusted
	// certificates of the system. Portolan extension.
	CACertificate string `api:"caCertificate" length:"65535"`
	// SchemaType selects the default classes and attributes.
	SchemaType string `api:"schemaType,required" enum:"ACTIVE_DIRECTORY|OPENLDAP|OTHER_LDAP"`
	// SearchBase is the base DN of user searches.
	SearchBase string `api:"searchBase,required,nonblank"`
	// UserObjectClass is the object class of users.
	UserObjectClass string `api:"userObjectClass,put,nonblank,nullable"`
	// GroupObjectClass is the object class of groups.
	GroupObjectClass string `api:"groupObjectClass,put,nonblank,nullable"`
	// UserPrefix is the attribute that contains the user name.
	UserPrefix string `api:"userPrefix,put,nonblank,nullable"`
	// EmailPrefix is the attribute that contains the mail address.
	EmailPrefix string `api:"emailPrefix,put,nonblank,nullable"`
	// MemberOfPrefix is the attribute that contains the groups of a user.
	MemberOfPrefix string `api:"memberOfPrefix,put,nonblank,nullable"`
	// ReferralPolicy sets how referrals are handled.
	ReferralPolicy string `api:"referralPolicy,required" enum:"IGNORE|FOLLOW|THROW"`
	// AliasDereferencePolicy sets when aliases are dereferenced.
	AliasDereferencePolicy string `api:"aliasDereferencePolicy,required" enum:"ALWAYS|NEVER|FINDING|SEARCHING"`
}

// X509Authenticator authenticates users by client certificates and checks their revocation by OCSP.
type X509Authenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// PrimaryServerURL is the OCSP responder that is asked first.
	PrimaryServerURL string `api:"primaryServerUrl,required"`
	// SecondaryServerURL is the OCSP responder that is asked if the first does not answer.
	SecondaryServerURL string `api:"secondaryServerUrl"`
	// LDAPUserMatchOption sets how a certificate is matched to a directory user.
	LDAPUserMatchOption string `api:"ldapUserMatchOption,required" enum:"NONE|CUSTOM_USER_PREFIX_MATCH|STRICT_DN_MATCH"`
	// CACertificates are the CA certificates that client certificates must be issued by.
	CACertificates []string `api:"caCertificates,required" length:"65535"`
}

// KerberosAuthenticator authenticates users against a Kerberos realm.
type KerberosAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is the key distribution center, with a port if it is not 88.
	Hostname string `api:"hostname,required,nonblank"`
	// Realm is the Kerberos realm in its exact case, such as EXAMPLE.NET.
	Realm string `api:"realm,required,nonblank"`
	// Keytab is a base64 keytab with the key of a service in the realm. It verifies the answers of the key distribution center. It is
	// write-only. Portolan extension.
	Keytab schema.Secret `api:"keytab,nonblank,nullable"`
}

// RADIUSAuthenticator authenticates users against a RADIUS server.
type RADIUSAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is the host name or address of the server.
	Hostname string `api:"hostname,required,nonblank"`
	// Timeout is the time that the manager waits for an answer.
	Timeout string `api:"timeout,put,notNull,duration"`
	// Port is the UDP port of the server.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"1812"`
	// Retries is the number of times that a request is sent again.
	Retries int64 `api:"retries,put" min:"1" max:"10" default:"3"`
	// SharedSecret is the secret shared with the server. It is write-only.
	SharedSecret schema.Secret `api:"sharedSecret,post,nonblank,nullable"`
	// AuthenticationProtocol is the protocol that passwords are sent with.
	AuthenticationProtocol string `api:"authenticationProtocol,required" enum:"CHAP|PAP"`
	// MessageAuthenticatorRequired rejects answers without a Message-Authenticator, which can be forged in transit (CVE-2024-3596).
	// Portolan extension.
	MessageAuthenticatorRequired bool `api:"messageAuthenticatorRequired" default:"true"`
}

// TACACSPlusAuthenticator authenticates users against a TACACS+ server.
type TACACSPlusAuthenticator struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Hostname is the host name or address of the server.
	Hostname string `api:"hostname,required,nonblank"`
	// Timeout is the time that the manager waits for an answer.
	Timeout string `api:"timeout,put,notNull,duration"`
	// Port is the TCP port of the server.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"49"`
	// SharedSecret is the secret shared with the server. It is write-only.
	SharedSecret schema.Secret `api:"sharedSecret,post,nonblank,nullable"`
	// AuthenticationProtocol is the protocol that passwords are sent with.
	AuthenticationProtocol string `api:"authenticationProtocol,required" enum:"CHAP|PAP"`
	// GroupAttribute is the authorization argument that contains the groups of a user, such as group. Null means that groups are not
	// requested.
	GroupAttribute string `api:"groupAttribute,nonblank"`
	// Attributes are the arguments sent with the authorization request for groups, such as service=shell.
	Attributes []Attribute `api:"attributes,put,notNull"`
}

// SAMLIdentityProvider authenticates users by SAML 2.0.
type SAMLIdentityProvider struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Description is free text.
	Description string `api:"description" length:"4000"`
	// Enabled allows sign-in with this provider.
	Enabled bool `api:"enabled,put"`
	// GroupAttribute is the attribute that contains the groups of a user.
	GroupAttribute string `api:"groupAttribute,put,nonblank"`
	// EmailAttribute is the attribute that contains the mail address of a user.
	EmailAttribute string `api:"emailAttribute,put,nonblank"`
	// SignOnURL is the provider's sign-in URL.
	SignOnURL string `api:"signOnUrl,required,nonblank"`
	// LogoutURL is the provider's sign-out URL.
	LogoutURL string `api:"logoutUrl"`
	// EntityID is the entity ID of the provider.
	EntityID string `api:"entityId,required,nonblank"`
	// SigningCertificate is the certificate that verifies the provider's messages.
	SigningCertificate string `api:"signingCertificate,required" length:"65535"`
}

// OAuthAuthorizationServer authenticates users by OAuth 2.0 tokens.
type OAuthAuthorizationServer struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	Secondary
	// Description is free text.
	Description string `api:"description" length:"4000"`
	// Enabled accepts tokens of this server.
	Enabled bool `api:"enabled,put"`
	// UserClaim is the claim that contains the user name.
	UserClaim string `api:"userClaim,required,nonblank"`
	// GroupClaim is the claim that contains the groups of a user.
	GroupClaim string `api:"groupClaim,required,nonblank"`
	// EmailClaim is the claim that contains the mail address of a user.
	EmailClaim string `api:"emailClaim,required,nonblank"`
	// ValidationMethod sets whether tokens are verified by the authorization server or locally.
	ValidationMethod string `api:"validationMethod,required" enum:"AUTHORIZATION_SERVER|LOCAL"`
	// ClientID is the manager's client ID at the server.
	ClientID string `api:"clientId,nonblank"`
	// ClientSecret is the manager's client secret. It is write-only.
	ClientSecret schema.Secret `api:"clientSecret,nonblank"`
	// IntrospectionURL is the token introspection endpoint.
	IntrospectionURL string `api:"introspectionUrl"`
	// UserInfoURL is the user info endpoint.
	UserInfoURL string `api:"userInfoUrl"`
	// AuthorizationOption sets how the client secret is sent: BASIC in the Authorization header, POST in the form.
	AuthorizationOption string `api:"authorizationOption" enum:"BASIC|POST"`
	// Audience is the required audience of tokens.
	Audience string `api:"audience,nonblank"`
	// Issuer is the required issuer of tokens.
	Issuer string `api:"issuer,nonblank"`
	// SigningCertificate is the certificate that verifies tokens. Null means the keys that the issuer publishes (OpenID Connect Discovery).
	SigningCertificate string `api:"signingCertificate" length:"65535"`
	// CACertificate is the CA certificate that must have issued the server's certificates, in PEM or base64. Null means the trusted
	// certificates of the system. Portolan extension.
	CACertificate string `api:"caCertificate" length:"65535"`
}

// Secondary is the fallback authenticator, a field of every authenticator.
type Secondary struct {
	// SecondaryAuthenticator is used when this authenticator cannot be reached.
	SecondaryAuthenticator schema.Ref `api:"secondaryAuthenticator" ref:"AddressManagerAuthenticator|LDAPAuthenticator|KerberosAuthenticator|RADIUSAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer" onDelete:"refuse"`
}

// Attribute is an argument of an authorization request.
type Attribute struct {
	// Name is the name of the argument.
	Name string `api:"name,required,nonblank"`
	// Value is the value of the argument.
	Value string `api:"value"`
}
