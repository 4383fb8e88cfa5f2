// Package snmp defines the SNMP settings of a monitored device: a type that several resources embed.
package snmp

import "portolan/internal/engine/schema"

// Settings are the SNMP access data of a device: communities for versions 1 and 2c, users for version 3 (RFC 3411 to 3418).
type Settings struct {
	// Version is the version of the protocol.
	Version string `api:"version,required,variant" enum:"v1|v2c|v3"`
	// Enabled controls whether the device is queried by SNMP.
	Enabled *bool `api:"enabled"`
	// Port is the UDP port; null means 161.
	Port *int64 `api:"port" min:"1" max:"65535"`
	// Communities are tried in their order.
	Communities []string `api:"communities,nonblank" for:"v1|v2c"`
	// Usernames are tried in their order.
	Usernames []string `api:"usernames,nonblank" for:"v3"`
	// Context is the context name of version 3.
	Context string `api:"context" for:"v3"`
	// SecurityLevel controls whether messages are authenticated and encrypted.
	SecurityLevel string `api:"securityLevel" enum:"NOAUTH_NOPRIV|AUTH_NOPRIV|AUTH_PRIV" for:"v3"`
	// AuthenticationProtocol is the hash algorithm that authenticates messages.
	AuthenticationProtocol string `api:"authenticationProtocol" enum:"MD5|SHA" for:"v3"`
	// AuthenticationPassphrase is the passphrase for authentication; it is never shown.
	AuthenticationPassphrase schema.Secret `api:"authenticationPassphrase" for:"v3"`
	// PrivacyProtocol is the cipher that encrypts messages.
	PrivacyProtocol string `api:"privacyProtocol" enum:"DES|AES128" for:"v3"`
	// PrivacyPassphrase is the passphrase for encryption; it is never shown.
	PrivacyPassphrase schema.Secret `api:"privacyPassphrase" for:"v3"`
}

// Check returns an error for a missing field that the version or the security level requires. Passphrases are optional, because a client
// leaves them out to keep the stored ones.
func (x *Settings) Check() error {
	switch {
	case x.Version != "v3" && x.Enabled != nil && *x.Enabled && len(x.Communities) == 0:
		return schema.MemberError("communities", "is needed with %s", x.Version)
	case x.Version != "v3":
		return nil
	case x.SecurityLevel != "" && x.SecurityLevel != "NOAUTH_NOPRIV" && x.AuthenticationProtocol == "":
		return schema.MemberError("authenticationProtocol", "is needed with %s", x.SecurityLevel)
	case x.SecurityLevel == "AUTH_PRIV" && x.PrivacyProtocol == "":
		return schema.MemberError("privacyProtocol", "is needed with AUTH_PRIV")
	}
	return nil
}
