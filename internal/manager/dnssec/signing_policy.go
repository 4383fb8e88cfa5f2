package dnssec

import (
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerSigningPolicies declares the collection of signing policies, and the rule that creates the keys of signed zones.
func registerSigningPolicies(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "signingPolicies", Parents: []string{""}}, &DNSSECSigningPolicy{})
	r.Rule(resource.Rule{Types: []string{"Zone", "IPv4Block", "IPv4Network"}, AfterWrite: syncKeys})
}

// DNSSECSigningPolicy defines the keys and signatures of signed zones: algorithms, validity periods and key rollover.
type DNSSECSigningPolicy struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	// KeyProvider is the system that creates and stores the keys.
	KeyProvider string `api:"keyProvider,required" enum:"ADDRESS_MANAGER|ENTRUST_HSM"`
	// SignatureDigestAlgorithm is the digest algorithm of DS records.
	SignatureDigestAlgorithm string `api:"signatureDigestAlgorithm,required" enum:"SHA1|SHA256|SHA384"`
	// SignatureValidityPeriod is the validity period of a signature.
	SignatureValidityPeriod string `api:"signatureValidityPeriod,required,duration"`
	// SignatureResigningPeriod is the time before its expiration at which a signature is renewed.
	SignatureResigningPeriod string `api:"signatureResigningPeriod,required,duration"`
	// ZoneSigningKeyAlgorithm is the algorithm of zone signing keys.
	ZoneSigningKeyAlgorithm string `api:"zoneSigningKeyAlgorithm,required" enum:"ECDSAP256SHA256|ECDSAP384SHA384|ED25519|ED448|RSAMD5|RSANSEC3SHA256|RSANSEC3SHA512|RSASHA1|RSASHA1NSEC3SHA1|RSASHA256|RSASHA512"`
	// ZoneSigningKeyLength is the length of zone signing keys in bits. It has no effect for elliptic curves.
	ZoneSigningKeyLength int64 `api:"zoneSigningKeyLength,required"`
	// ZoneSigningKeyOverrideTTL is the TTL of the DNSKEY records of zone signing keys; null uses the TTL of the zone.
	ZoneSigningKeyOverrideTTL string `api:"zoneSigningKeyOverrideTtl,duration"`
	// ZoneSigningKeyValidityPeriod is the validity period of a zone signing key.
	ZoneSigningKeyValidityPeriod string `api:"zoneSigningKeyValidityPeriod,required,duration"`
	// ZoneSigningKeyOverlapPeriod is the time during which a zone signing key and its successor both exist.
	ZoneSigningKeyOverlapPeriod string `api:"zoneSigningKeyOverlapPeriod,required,duration"`
	// ZoneSigningKeyRolloverMethod is the rollover method of zone signing keys (RFC 6781 section 4.1).
	ZoneSigningKeyRolloverMethod string `api:"zoneSigningKeyRolloverMethod,required" enum:"DOUBLE_SIGNING|PRE_PUBLISH"`
	// ZoneSigningKeySigningPeriod is, with PRE_PUBLISH, the time before the expiration of a zone signing key at which its successor starts
	// to sign.
	ZoneSigningKeySigningPeriod string `api:"zoneSigningKeySigningPeriod,duration"`
	// ZoneSigningKeyProtectionType is the protection of zone signing keys in a hardware security module.
	ZoneSigningKeyProtectionType string `api:"zoneSigningKeyProtectionType" enum:"MODULE"`
	// KeySigningKeyAlgorithm is the algorithm of key signing keys.
	KeySigningKeyAlgorithm string `api:"keySigningKeyAlgorithm,required" enum:"ECDSAP256SHA256|ECDSAP384SHA384|ED25519|ED448|RSAMD5|RSANSEC3SHA256|RSANSEC3SHA512|RSASHA1|RSASHA1NSEC3SHA1|RSASHA256|RSASHA512"`
	// KeySigningKeyLength is the length of key signing keys in bits. It has no effect for elliptic curves.
	KeySigningKeyLength int64 `api:"keySigningKeyLength,required"`
	// KeySigningKeyOverrideTTL is the TTL of the DNSKEY records of key signing keys; null uses the TTL of the zone.
	KeySigningKeyOverrideTTL string `api:"keySigningKeyOverrideTtl,duration"`
	// KeySigningKeyValidityPeriod is the validity period of a key signing key.
	KeySigningKeyValidityPeriod string `api:"keySigningKeyValidityPeriod,required,duration"`
	// KeySigningKeyOverlapPeriod is the time during which a key signing key and its successor both exist.
	KeySigningKeyOverlapPeriod string `api:"keySigningKeyOverlapPeriod,required,duration"`
	// KeySigningKeyRolloverMethod is the rollover method of key signing keys (RFC 6781 section 4.1).
	KeySigningKeyRolloverMethod string `api:"keySigningKeyRolloverMethod,required" enum:"DOUBLE_SIGNING|PRE_PUBLISH"`
	// KeySigningKeySigningPeriod is, with PRE_PUBLISH, the time before the expiration of a key signing key at which its successor starts to
	// sign.
	KeySigningKeySigningPeriod string `api:"keySigningKeySigningPeriod,duration"`
	// KeySigningKeyProtectionType is the protection of key signing keys in a hardware security module.
	KeySigningKeyProtectionType string `api:"keySigningKeyProtectionType" enum:"MODULE"`
}

// Validate rejects unsupported keys and inconsistent periods.
func (x *DNSSECSigningPolicy) Validate(c *resource.Change) error {
	if x.KeyProvider != "ADDRESS_MANAGER" {
		return problem.Field("NoHsmConfiguration", "keyProvider", "no hardware security module is configured; use ADDRESS_MANAGER")
	}
	if notShorter(x.SignatureResigningPeriod, x.SignatureValidityPeriod) {
		return problem.Field("ConflictingResourceFieldValues", "signatureResigningPeriod", "must be shorter than signatureValidityPeriod")
	}
	for _, k := range x.kinds() {
		if err := k.check(); err != nil {
			return err
		}
	}
	if algorithms[x.ZoneSigningKeyAlgorithm].number != algorithms[x.KeySigningKeyAlgorithm].number {
		return problem.Field("ConflictingResourceFieldValues", "keySigningKeyAlgorithm",
			"must equal zoneSigningKeyAlgorithm: each key algorithm must sign the whole zone (RFC 4035 section 2.2)")
	}
	return x.checkAlgorithmUnchanged(c)
}

// checkAlgorithmUnchanged rejects another key algorithm if the policy is in use.
func (x *DNSSECSigningPolicy) checkAlgorithmUnchanged(c *resource.Change) error {
	old, ok := c.Old.(*DNSSECSigningPolicy)
	if !ok || old.ZoneSigningKeyAlgorithm == x.ZoneSigningKeyAlgorithm && old.KeySigningKeyAlgorithm == x.KeySigningKeyAlgorithm {
		return nil
	}
	used, err := x.findUse(c)
	if err == nil && used != nil {
		err = problem.InUse("zoneSigningKeyAlgorithm: %s %d uses the policy; assign it another policy to change the algorithm",
			used.Type, used.ID)
	}
	return err
}

// findUse returns a resource that the policy signs; nil if there is none.
func (x *DNSSECSigningPolicy) findUse(c *resource.Change) (*store.Resource, error) {
	return c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.Any{store.LinksTo{Targets: []int64{x.ID}, Field: "signingPolicy"},
		store.LinksTo{Targets: []int64{x.ID}, Field: "reverseZoneSigningPolicy"}}})
}

// BeforeBelowDelete rejects the deletion of a policy that is in use.
func (x *DNSSECSigningPolicy) BeforeBelowDelete(c *resource.Change) error {
	used, err := x.findUse(c)
	if err == nil && used != nil {
		err = problem.BadRequest("SigningPolicyInUse", "%s %s (%d) uses the policy", used.Type, used.Name, used.ID)
	}
	return err
}

// notShorter reports whether one duration is at least as long as the other.
func notShorter(one, other string) bool { return schema.LengthOf(one) >= schema.LengthOf(other) }

// keyKind contains the settings of a policy for one kind of key.
type keyKind struct {
	prefix, algorithm, validity, overlap, method, signing, ttl, protection string
	length, flags                                                          int64
	newKey                                                                 func() (schema.Object, *ZoneKey)
}

// kinds returns the settings of the policy for zone signing keys and for key signing keys.
func (x *DNSSECSigningPolicy) kinds() []keyKind {
	return []keyKind{
		{"zoneSigningKey", x.ZoneSigningKeyAlgorithm, x.ZoneSigningKeyValidityPeriod, x.ZoneSigningKeyOverlapPeriod,
			x.ZoneSigningKeyRolloverMethod, x.ZoneSigningKeySigningPeriod, x.ZoneSigningKeyOverrideTTL, x.ZoneSigningKeyProtectionType,
			x.ZoneSigningKeyLength, wire.ZONE, func() (schema.Object, *ZoneKey) {
				k := &ZoneSigningKey{}
				k.Type, k.Name = "ZoneSigningKey", "ZSK"
				return k, &k.ZoneKey
			}},
		{"keySigningKey", x.KeySigningKeyAlgorithm, x.KeySigningKeyValidityPeriod, x.KeySigningKeyOverlapPeriod,
			x.KeySigningKeyRolloverMethod, x.KeySigningKeySigningPeriod, x.KeySigningKeyOverrideTTL, x.KeySigningKeyProtectionType,
			x.KeySigningKeyLength, wire.ZONE | wire.SEP, func() (schema.Object, *ZoneKey) {
				k := &KeySigningKey{}
				k.Type, k.Name = "KeySigningKey", "KSK"
				return k, &k.ZoneKey
			}},
	}
}

// check rejects unsupported or inconsistent settings.
func (k keyKind) check() error {
	a := algorithms[k.algorithm]
	switch {
	case a.number == 0:
		return problem.Field("UnsupportedResourceFieldValue", k.prefix+"Algorithm", "keys of %s are not supported", k.algorithm)
	case a.minBits != a.maxBits && (k.length < int64(a.minBits) || k.length > int64(a.maxBits)):
		return problem.Field("ValueOutsideRange", k.prefix+"Length", "keys of %s must have %d to %d bits", k.algorithm, a.minBits, a.maxBits)
	case k.protection != "":
		return problem.Field("NoHsmConfiguration", k.prefix+"ProtectionType", "no hardware security module is configured")
	case schema.LengthOf(k.validity) < time.Hour:
		return problem.Field("DurationValueOutsideRange", k.prefix+"ValidityPeriod", "must be at least one hour")
	case notShorter(k.overlap, k.validity):
		return problem.Field("ConflictingResourceFieldValues", k.prefix+"OverlapPeriod", "must be shorter than %sValidityPeriod", k.prefix)
	case k.method == "PRE_PUBLISH" && k.signing == "":
		return problem.Field("MissingRequiredField", k.prefix+"SigningPeriod", "is required with PRE_PUBLISH")
	case k.method == "PRE_PUBLISH" && notShorter(k.signing, k.validity):
		return problem.Field("ConflictingResourceFieldValues", k.prefix+"SigningPeriod", "must be shorter than %sValidityPeriod", k.prefix)
	case k.method != "PRE_PUBLISH" && k.signing != "":
		return problem.Field("ConflictingResourceFieldValues", k.prefix+"SigningPeriod", "is only allowed with PRE_PUBLISH")
	}
	return nil
}

// createKeys creates the keys of a zone, or of the reverse zone of a block or network.
func (x *DNSSECSigningPolicy) createKeys(c *resource.Change, zone *schema.Head) error {
	for _, kind := range x.kinds() {
		if err := x.createKey(c, kind, zone); err != nil {
			return err
		}
	}
	return nil
}

// createKey creates a key of a kind for a zone.
func (x *DNSSECSigningPolicy) createKey(c *resource.Change, kind keyKind, zone *schema.Head) error {
	o, k := kind.newKey()
	h := schema.HeadOf(o)
	h.Parent, h.Config = zone.ID, zone.Config
	flags := kind.flags
	k.Flags, k.TTL, k.Configuration = &flags, kind.ttl, schema.Ref{ID: zone.Config}
	if err := k.generate(c, zone.ID, kind.algorithm, &kind.length, schema.LengthOf(kind.validity)); err != nil {
		return err
	}
	_, err := c.Following().Create(c.API.TypeNamed(h.Type), o)
	return err
}
