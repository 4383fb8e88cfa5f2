package identity

import (
	"strings"
	"time"
	"unicode"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerAccessSettings declares the settings of how users sign in.
func registerAccessSettings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "settings"}, &LoginPolicySettings{}, &PasswordPolicySettings{}, &SSOEnforcementSettings{},
		&SAMLServiceProviderSettings{})
}

// LoginPolicySettings says how long who guesses passwords is made to wait.
type LoginPolicySettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Enabled says whether these numbers count for who guesses the password of one user from one address, or those that the manager has
	// by itself: five, and then a second that doubles up to PT15M.
	Enabled bool `api:"enabled,put"`
	// FailureLimit is how many failures there may be.
	FailureLimit int64 `api:"failureLimit,put" min:"1" max:"100" default:"5"`
	// FailureLimitPeriod is the time within which they are counted.
	FailureLimitPeriod string `api:"failureLimitPeriod,put,notNull,duration" default:"PT1H"`
	// DelayDuration is how long they make one wait.
	DelayDuration string `api:"delayDuration,put,notNull,duration" default:"PT15M"`
}

// PasswordPolicySettings says how passwords look.
type PasswordPolicySettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Enabled says whether it is asked of new passwords.
	Enabled bool `api:"enabled,put"`
	// MinLength is how many characters they have at least.
	MinLength *int64 `api:"minLength" min:"1"`
	// MaxLength is how many they have at most.
	MaxLength *int64 `api:"maxLength" min:"1"`
	// DigitRequired says whether one of them is a digit.
	DigitRequired bool `api:"digitRequired,put"`
	// MixedCaseRequired says whether there are small and capital letters.
	MixedCaseRequired bool `api:"mixedCaseRequired,put"`
	// SpecialCharacterRequired says whether one of them is neither.
	SpecialCharacterRequired bool `api:"specialCharacterRequired,put"`
}

// SSOEnforcementSettings says whether users may sign in by SAML alone.
type SSOEnforcementSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Enabled says whether they may.
	Enabled bool `api:"enabled,put"`
	// SAMLIdentityProviderEnabled says whether there is somebody who signs them in.
	SAMLIdentityProviderEnabled bool `api:"samlIdentityProviderEnabled,readOnly"`
	// NonSSOAuthenticatorCount is how many other authenticators there are.
	NonSSOAuthenticatorCount *int64 `api:"nonSsoAuthenticatorCount,readOnly"`
	// NonSSOGroupCount is how many groups are known otherwise.
	NonSSOGroupCount *int64 `api:"nonSsoGroupCount,readOnly"`
	// LocalAdminUserCount is how many administrators are known here.
	LocalAdminUserCount *int64 `api:"localAdminUserCount,readOnly"`
	// LocalNonAdminUserCount is how many other users are known here.
	LocalNonAdminUserCount *int64 `api:"localNonAdminUserCount,readOnly"`
}

// SAMLServiceProviderSettings says what the manager calls itself towards SAML identity providers.
type SAMLServiceProviderSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AddressManagerFQDN is the name of the manager.
	AddressManagerFQDN string `api:"addressManagerFqdn,put,notNull" also:"addressManagerAbsoluteName" default:"localhost"`
	// KeyStore is its key and certificate.
	KeyStore string `api:"keyStore,writeOnly,nonblank" length:"65535"`
	// KeyStorePassword is the password for them.
	KeyStorePassword string `api:"keyStorePassword,writeOnly,nonblank"`
	// ServiceKey is the key and the certificate that were given by either; it is never shown. It is ours.
	ServiceKey schema.Secret `api:"serviceKey"`
	// MetadataURL is where it says so.
	MetadataURL string `api:"metadataUrl,readOnly"`
	// ConsumeURL is where users come back to.
	ConsumeURL string `api:"consumeUrl,readOnly"`
	// LogoutURL is where they are signed out.
	LogoutURL string `api:"logoutUrl,readOnly"`
	// NameIDFormat is how users are named.
	NameIDFormat string `api:"nameIdFormat,put,notNull" enum:"UNSPECIFIED|EMAIL_ADDRESS|ENTITY|TRANSIENT|PERSISTENT|ENCRYPTED|X509_SUBJECTNAME|WIN_QUALIFIED_NAME|KERBEROS" default:"UNSPECIFIED"`
	// SigningEnabled says whether its messages are signed.
	SigningEnabled bool `api:"signingEnabled,put"`
	// EncryptionEnabled says whether messages to it are encrypted.
	EncryptionEnabled bool `api:"encryptionEnabled,put"`
	// PKCS12 is its key and certificate.
	PKCS12 string `api:"pkcs12,writeOnly,nonblank" length:"65535"`
	// Password is the password for them.
	Password string `api:"password,writeOnly,nonblank"`
	// OrganizationName is the name of the organisation.
	OrganizationName string `api:"organizationName,put,nonblank"`
	// OrganizationURL is its site.
	OrganizationURL string `api:"organizationUrl,put,nonblank"`
	// ContactName is who looks after it.
	ContactName string `api:"contactName"`
	// ContactEmail is their mail address.
	ContactEmail string `api:"contactEmail"`
}

// Validate refuses times that make nobody wait, or for ever.
func (x *LoginPolicySettings) Validate(*resource.Change) error {
	for _, one := range []struct{ field, length string }{{"failureLimitPeriod", x.FailureLimitPeriod}, {"delayDuration", x.DelayDuration}} {
		if d := schema.LengthOf(one.length); d < time.Second || d > 24*time.Hour {
			return problem.Field("DurationValueOutsideRange", one.field, "must be PT1S to PT24H")
		}
	}
	return nil
}

// Validate refuses lengths that leave nothing, or that the manager does not take.
func (x *PasswordPolicySettings) Validate(*resource.Change) error {
	switch {
	case x.MinLength != nil && x.MaxLength != nil && *x.MinLength > *x.MaxLength:
		return problem.Field("ConflictingResourceFieldValues", "maxLength", "is below minLength")
	case x.MaxLength != nil && (*x.MaxLength > MaxPassword || *x.MaxLength < MinPassword):
		return problem.Field("ValueOutsideRange", "maxLength", "must be %d to %d", MinPassword, MaxPassword)
	case x.MinLength != nil && *x.MinLength > MaxPassword:
		return problem.Field("ValueOutsideRange", "minLength", "must be at most %d", MaxPassword)
	}
	return nil
}

// meetsPolicy refuses a new password that is not as the settings ask for.
func meetsPolicy(c *resource.Change, password string) error {
	o, err := c.API.Only(c.Tx, "PasswordPolicySettings")
	if err != nil {
		return err
	}
	x, there := o.(*PasswordPolicySettings)
	if !there || !x.Enabled {
		return nil
	}
	long := int64(len([]rune(password)))
	var digit, small, capital, other bool
	for _, r := range password {
		switch {
		case unicode.IsDigit(r):
			digit = true
		case unicode.IsLower(r):
			small = true
		case unicode.IsUpper(r):
			capital = true
		case !unicode.IsLetter(r):
			other = true
		}
	}
	var wants []string
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{x.MinLength != nil && long < *x.MinLength, "more characters"},
		{x.MaxLength != nil && long > *x.MaxLength, "fewer characters"},
		{x.DigitRequired && !digit, "a digit"},
		{x.MixedCaseRequired && (!small || !capital), "small and capital letters"},
		{x.SpecialCharacterRequired && !other, "a character that is neither a letter nor a digit"},
	} {
		if rule.broken {
			wants = append(wants, rule.text)
		}
	}
	if wants == nil {
		return nil
	}
	return problem.Field("PasswordFailedRequirements", "password", "needs %s", strings.Join(wants, ", "))
}

// Validate refuses what nothing acts upon yet.
func (x *SSOEnforcementSettings) Validate(*resource.Change) error {
	if x.Enabled {
		return problem.Field("CannotEnableSso", "enabled",
			"is not kept: who has an authenticator signs in there alone, and has no password here; give every user one, but a local administrator")
	}
	return nil
}
