package dnssec

import (
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerSigningPolicies declares the collection of signing policies, and what they make of what is signed.
func registerSigningPolicies(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "signingPolicies", Parents: []string{""}}, &DNSSECSigningPolicy{})
	r.Rule(resource.Rule{Types: []string{"Zone", "IPv4Block", "IPv4Network"}, AfterWrite: syncKeys})
}

// DNSSECSigningPolicy says how zones are signed: with which keys, for how long, and how keys follow each other.
type DNSSECSigningPolicy struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	// KeyProvider is what makes and keeps the keys.
	KeyProvider string `api:"keyProvider,required" enum:"ADDRESS_MANAGER|ENTRUST_HSM"`
	// SignatureDigestAlgorithm is the hash of DS records.
	SignatureDigestAlgorithm string `api:"signatureDigestAlgorithm,required" enum:"SHA1|SHA256|SHA384"`
	// SignatureValidityPeriod is how long a signature holds.
	SignatureValidityPeriod string `api:"signatureValidityPeriod,required,duration"`
	// SignatureResigningPeriod is how long before its end a signature is made anew.
	SignatureResigningPeriod string `api:"signatureResigningPeriod,required,duration"`
	// ZoneSigningKeyAlgorithm is the algorithm of keys that sign records.
	ZoneSigningKeyAlgorithm string `api:"zoneSigningKeyAlgorithm,required" enum:"ECDSAP256SHA256|ECDSAP384SHA384|ED25519|ED448|RSAMD5|RSANSEC3SHA256|RSANSEC3SHA512|RSASHA1|RSASHA1NSEC3SHA1|RSASHA256|RSASHA512"`
	// ZoneSigningKeyLength is how long those keys are, in bits; of no meaning for elliptic curves.
	ZoneSigningKeyLength int64 `api:"zoneSigningKeyLength,required"`
	// ZoneSigningKeyOverrideTTL is the time to live of their DNSKEY records; null for the zone's.
	ZoneSigningKeyOverrideTTL string `api:"zoneSigningKeyOverrideTtl,duration"`
	// ZoneSigningKeyValidityPeriod is how long such a key is used.
	ZoneSigningKeyValidityPeriod string `api:"zoneSigningKeyValidityPeriod,required,duration"`
	// ZoneSigningKeyOverlapPeriod is how long a key and the one behind it are both there.
	ZoneSigningKeyOverlapPeriod string `api:"zoneSigningKeyOverlapPeriod,required,duration"`
	// ZoneSigningKeyRolloverMethod is how one follows the other (RFC 6781 section 4.1).
	ZoneSigningKeyRolloverMethod string `api:"zoneSigningKeyRolloverMethod,required" enum:"DOUBLE_SIGNING|PRE_PUBLISH"`
	// ZoneSigningKeySigningPeriod is, with PRE_PUBLISH, how long before the end of a key the next one signs.
	ZoneSigningKeySigningPeriod string `api:"zoneSigningKeySigningPeriod,duration"`
	// ZoneSigningKeyProtectionType is how a key in a module is protected.
	ZoneSigningKeyProtectionType string `api:"zoneSigningKeyProtectionType" enum:"MODULE"`
	// KeySigningKeyAlgorithm is the algorithm of keys that sign keys.
	KeySigningKeyAlgorithm string `api:"keySigningKeyAlgorithm,required" enum:"ECDSAP256SHA256|ECDSAP384SHA384|ED25519|ED448|RSAMD5|RSANSEC3SHA256|RSANSEC3SHA512|RSASHA1|RSASHA1NSEC3SHA1|RSASHA256|RSASHA512"`
	// KeySigningKeyLength is how long those keys are, in bits; of no meaning for elliptic curves.
	KeySigningKeyLength int64 `api:"keySigningKeyLength,required"`
	// KeySigningKeyOverrideTTL is the time to live of their DNSKEY records; null for the zone's.
	KeySigningKeyOverrideTTL string `api:"keySigningKeyOverrideTtl,duration"`
	// KeySigningKeyValidityPeriod is how long such a key is used.
	KeySigningKeyValidityPeriod string `api:"keySigningKeyValidityPeriod,required,duration"`
	// KeySigningKeyOverlapPeriod is how long a key and the one behind it are both there.
	KeySigningKeyOverlapPeriod string `api:"keySigningKeyOverlapPeriod,required,duration"`
	// KeySigningKeyRolloverMethod is how one follows the other (RFC 6781 section 4.1).
	KeySigningKeyRolloverMethod string `api:"keySigningKeyRolloverMethod,required" enum:"DOUBLE_SIGNING|PRE_PUBLISH"`
	// KeySigningKeySigningPeriod is, with PRE_PUBLISH, how long before the end of a key the next one signs.
	KeySigningKeySigningPeriod string `api:"keySigningKeySigningPeriod,duration"`
	// KeySigningKeyProtectionType is how a key in a module is protected.
	KeySigningKeyProtectionType string `api:"keySigningKeyProtectionType" enum:"MODULE"`
}

// Validate refuses what no key can be made by, and lengths of time that do not fit each other.
func (x *DNSSECSigningPolicy) Validate(c *resource.Change) error {
	if x.KeyProvider != "ADDRESS_MANAGER" {
		return problem.Field("NoHsmConfiguration", "keyProvider", "there is no hardware security module; keys are made by ADDRESS_MANAGER")
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
			"is another one than zoneSigningKeyAlgorithm: a zone is signed whole by each algorithm of its keys (RFC 4035 section 2.2)")
	}
	return x.checkAlgorithmUnchanged(c)
}

// keepsKeys refuses other keys for what is signed by the policy already.
func (x *DNSSECSigningPolicy) checkAlgorithmUnchanged(c *resource.Change) error {
	old, ok := c.Old.(*DNSSECSigningPolicy)
	if !ok || old.ZoneSigningKeyAlgorithm == x.ZoneSigningKeyAlgorithm && old.KeySigningKeyAlgorithm == x.KeySigningKeyAlgorithm {
		return nil
	}
	used, err := x.findUse(c)
	if err == nil && used != nil {
		err = problem.InUse("zoneSigningKeyAlgorithm: %s %d is signed by the policy; apply another policy for keys of another algorithm",
			used.Type, used.ID)
	}
	return err
}

// applied gives something that is signed by the policy; nil where nothing is.
func (x *DNSSECSigningPolicy) findUse(c *resource.Change) (*store.Resource, error) {
	return c.Tx.First(store.Query{From: store.Resources, Where: store.Any{store.LinksTo{Targets: []int64{x.ID}, Field: "signingPolicy"},
		store.LinksTo{Targets: []int64{x.ID}, Field: "reverseZoneSigningPolicy"}}})
}

// BeforeBelowDelete keeps a policy that something is signed by.
func (x *DNSSECSigningPolicy) BeforeBelowDelete(c *resource.Change) error {
	used, err := x.findUse(c)
	if err == nil && used != nil {
		err = problem.BadRequest("SigningPolicyInUse", "%s %d, %s, has the policy", used.Type, used.ID, used.Name)
	}
	return err
}

// longer reports whether one length of time is not shorter than another one.
func notShorter(one, other string) bool { return schema.LengthOf(one) >= schema.LengthOf(other) }

// keyKind is what a policy says of one kind of keys.
type keyKind struct {
	prefix, algorithm, validity, overlap, method, signing, ttl, protection string
	length, flags                                                          int64
	newKey                                                                 func() (schema.Object, *ZoneKey)
}

// kinds gives what the policy says of the two kinds of keys.
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

// check refuses what no key can be made by.
func (k keyKind) check() error {
	a := algorithms[k.algorithm]
	switch {
	case a.number == 0:
		return problem.Field("UnsupportedResourceFieldValue", k.prefix+"Algorithm", "keys of %s are not made", k.algorithm)
	case a.minBits != a.maxBits && (k.length < int64(a.minBits) || k.length > int64(a.maxBits)):
		return problem.Field("ValueOutsideRange", k.prefix+"Length", "keys of %s have %d to %d bits", k.algorithm, a.minBits, a.maxBits)
	case k.protection != "":
		return problem.Field("NoHsmConfiguration", k.prefix+"ProtectionType", "there is no hardware security module")
	case schema.LengthOf(k.validity) < time.Hour:
		return problem.Field("DurationValueOutsideRange", k.prefix+"ValidityPeriod", "must be an hour or more")
	case notShorter(k.overlap, k.validity):
		return problem.Field("ConflictingResourceFieldValues", k.prefix+"OverlapPeriod", "must be shorter than %sValidityPeriod", k.prefix)
	case k.method == "PRE_PUBLISH" && k.signing == "":
		return problem.Field("MissingRequiredField", k.prefix+"SigningPeriod", "is needed with PRE_PUBLISH")
	case k.method == "PRE_PUBLISH" && notShorter(k.signing, k.validity):
		return problem.Field("ConflictingResourceFieldValues", k.prefix+"SigningPeriod", "must be shorter than %sValidityPeriod", k.prefix)
	case k.method != "PRE_PUBLISH" && k.signing != "":
		return problem.Field("ConflictingResourceFieldValues", k.prefix+"SigningPeriod", "is there with PRE_PUBLISH alone")
	}
	return nil
}

// makeKeys makes the keys of a zone, or of the reverse zone of a block or network.
func (x *DNSSECSigningPolicy) createKeys(c *resource.Change, zone *schema.Head) error {
	for _, kind := range x.kinds() {
		if err := x.createKey(c, kind, zone); err != nil {
			return err
		}
	}
	return nil
}

// makeKey makes a key of a kind for a zone.
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
