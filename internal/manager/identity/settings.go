package identity

import (
	"strings"
	"time"
	"unicode"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerAccessSettings declares the settings of sign-ins, passwords and SAML.
func registerAccessSettings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "settings"}, &LoginPolicySettings{}, &PasswordPolicySettings{}, &SSOEnforcementSettings{},
		&SAMLServiceProviderSettings{})
}

// LoginPolicySettings sets how repeated failed sign-ins are delayed.
type LoginPolicySettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Enabled applies these values to failures of one user from one address. Otherwise the defaults apply: five failures, then a delay of
	// PT1S that doubles up to PT15M.
	Enabled bool `api:"enabled,put"`
	// FailureLimit is the number of failures that are allowed.
	FailureLimit int64 `api:"failureLimit,put" min:"1" max:"100" default:"5"`
	// FailureLimitPeriod is the period of time for counting failures.
	FailureLimitPeriod string `api:"failureLimitPeriod,put,notNull,duration" default:"PT1H"`
	// DelayDuration is the delay of further sign-ins.
	DelayDuration string `api:"delayDuration,put,notNull,duration" default:"PT15M"`
}

// PasswordPolicySettings sets the requirements for passwords.
type PasswordPolicySettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Enabled applies the policy to new passwords.
	Enabled bool `api:"enabled,put"`
	// MinLength is the minimum number of characters.
	MinLength *int64 `api:"minLength" min:"1"`
	// MaxLength is the maximum number of characters.
	MaxLength *int64 `api:"maxLength" min:"1"`
	// DigitRequired requires a digit.
	DigitRequired bool `api:"digitRequired,put"`
	// MixedCaseRequired requires lower and upper case letters.
	MixedCaseRequired bool `api:"mixedCaseRequired,put"`
	// SpecialCharacterRequired requires a character that is neither a letter nor a digit.
	SpecialCharacterRequired bool `api:"specialCharacterRequired,put"`
}

// SSOEnforcementSettings restricts sign-in to SAML.
type SSOEnforcementSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Enabled restricts sign-in to SAML. Enabling it is rejected.
	Enabled bool `api:"enabled,put"`
	// SAMLIdentityProviderEnabled is true if a SAML identity provider is enabled.
	SAMLIdentityProviderEnabled bool `api:"samlIdentityProviderEnabled,readOnly"`
	// NonSSOAuthenticatorCount is the number of other authenticators.
	NonSSOAuthenticatorCount *int64 `api:"nonSsoAuthenticatorCount,readOnly"`
	// NonSSOGroupCount is the number of groups from other sources.
	NonSSOGroupCount *int64 `api:"nonSsoGroupCount,readOnly"`
	// LocalAdminUserCount is the number of administrators with a local password.
	LocalAdminUserCount *int64 `api:"localAdminUserCount,readOnly"`
	// LocalNonAdminUserCount is the number of other users with a local password.
	LocalNonAdminUserCount *int64 `api:"localNonAdminUserCount,readOnly"`
}

// SAMLServiceProviderSettings describes the manager to SAML identity providers.
type SAMLServiceProviderSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AddressManagerFQDN is the host name of the manager.
	AddressManagerFQDN string `api:"addressManagerFqdn,put,notNull" also:"addressManagerAbsoluteName" default:"localhost"`
	// KeyStore is a PKCS #12 file in base64 with the manager's key and certificate.
	KeyStore string `api:"keyStore,writeOnly,nonblank" length:"65535"`
	// KeyStorePassword is the password of keyStore.
	KeyStorePassword string `api:"keyStorePassword,writeOnly,nonblank"`
	// ServiceKey is the key and certificate from keyStore or pkcs12. It is never shown. Portolan extension.
	ServiceKey schema.Secret `api:"serviceKey"`
	// MetadataURL is the URL of the manager's SAML metadata.
	MetadataURL string `api:"metadataUrl,readOnly"`
	// ConsumeURL is the URL that receives the provider's answers.
	ConsumeURL string `api:"consumeUrl,readOnly"`
	// LogoutURL is the URL that receives sign-out messages.
	LogoutURL string `api:"logoutUrl,readOnly"`
	// NameIDFormat is the format of the user's name in assertions.
	NameIDFormat string `api:"nameIdFormat,put,notNull" enum:"UNSPECIFIED|EMAIL_ADDRESS|ENTITY|TRANSIENT|PERSISTENT|ENCRYPTED|X509_SUBJECTNAME|WIN_QUALIFIED_NAME|KERBEROS" default:"UNSPECIFIED"`
	// SigningEnabled signs the manager's messages.
	SigningEnabled bool `api:"signingEnabled,put"`
	// EncryptionEnabled requests encrypted messages.
	EncryptionEnabled bool `api:"encryptionEnabled,put"`
	// PKCS12 is a PKCS #12 file in base64 with the manager's key and certificate.
	PKCS12 string `api:"pkcs12,writeOnly,nonblank" length:"65535"`
	// Password is the password of pkcs12.
	Password string `api:"password,writeOnly,nonblank"`
	// OrganizationName is the name of the organization.
	OrganizationName string `api:"organizationName,put,nonblank"`
	// OrganizationURL is the website of the organization.
	OrganizationURL string `api:"organizationUrl,put,nonblank"`
	// ContactName is the name of the contact person.
	ContactName string `api:"contactName"`
	// ContactEmail is the mail address of the contact person.
	ContactEmail string `api:"contactEmail"`
}

// Validate requires durations of 1 s to 24 h.
func (x *LoginPolicySettings) Validate(*resource.Change) error {
	for _, one := range []struct{ field, length string }{{"failureLimitPeriod", x.FailureLimitPeriod}, {"delayDuration", x.DelayDuration}} {
		if d := schema.LengthOf(one.length); d < time.Second || d > 24*time.Hour {
			return problem.Field("DurationValueOutsideRange", one.field, "must be PT1S to PT24H")
		}
	}
	return nil
}

// Validate rejects contradictory lengths, and lengths outside of MinPassword and MaxPassword.
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

// checkPolicy rejects a new password that does not meet the PasswordPolicySettings.
func checkPolicy(c *resource.Change, password string) error {
	o, err := c.API.FindSingle(c.Tx, "PasswordPolicySettings")
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

// Validate rejects enabled, which is not implemented yet.
func (x *SSOEnforcementSettings) Validate(*resource.Change) error {
	if x.Enabled {
		return problem.Field("CannotEnableSso", "enabled",
			"is not supported as a global setting: set an authenticator for each user except a local administrator")
	}
	return nil
}
