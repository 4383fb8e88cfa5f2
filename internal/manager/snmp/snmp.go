// Package snmp holds what is said of how something is asked by SNMP, wherever that is a part of a resource.
package snmp

import "portolan/internal/engine/schema"

// Settings are how something is asked by SNMP: versions 1 and 2c by communities, 3 by a user (RFC 3411 to 3418).
type Settings struct {
	// Version is the version of the protocol.
	Version string `api:"version,required,variant" enum:"v1|v2c|v3"`
	// Enabled says whether it is asked at all.
	Enabled *bool `api:"enabled"`
	// Port is the UDP port; null means 161.
	Port *int64 `api:"port" min:"1" max:"65535"`
	// Communities are tried in their order.
	Communities []string `api:"communities,nonblank" for:"v1|v2c"`
	// Usernames are tried in their order.
	Usernames []string `api:"usernames,nonblank" for:"v3"`
	// Context is the context of version 3.
	Context string `api:"context" for:"v3"`
	// SecurityLevel says whether messages are signed, and encrypted.
	SecurityLevel string `api:"securityLevel" enum:"NOAUTH_NOPRIV|AUTH_NOPRIV|AUTH_PRIV" for:"v3"`
	// AuthenticationProtocol is the hash that messages are signed by.
	AuthenticationProtocol string `api:"authenticationProtocol" enum:"MD5|SHA" for:"v3"`
	// AuthenticationPassphrase is what they are signed with; it is never shown.
	AuthenticationPassphrase schema.Secret `api:"authenticationPassphrase" for:"v3"`
	// PrivacyProtocol is the cipher that messages are encrypted by.
	PrivacyProtocol string `api:"privacyProtocol" enum:"DES|AES128" for:"v3"`
	// PrivacyPassphrase is what they are encrypted with; it is never shown.
	PrivacyPassphrase schema.Secret `api:"privacyPassphrase" for:"v3"`
}

// Check refuses a level of security without the protocols that it needs. Passphrases may be left out where they stay as they are.
func (x *Settings) Check() error {
	switch {
	case x.Version != "v3" && x.Enabled != nil && *x.Enabled && len(x.Communities) == 0:
		return schema.At("communities", "is needed with %s", x.Version)
	case x.Version != "v3":
		return nil
	case x.SecurityLevel != "" && x.SecurityLevel != "NOAUTH_NOPRIV" && x.AuthenticationProtocol == "":
		return schema.At("authenticationProtocol", "is needed with %s", x.SecurityLevel)
	case x.SecurityLevel == "AUTH_PRIV" && x.PrivacyProtocol == "":
		return schema.At("privacyProtocol", "is needed with AUTH_PRIV")
	}
	return nil
}
