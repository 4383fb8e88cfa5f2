package dnssec

import (
	"encoding/json"
	"fmt"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
)

// registerSigningKeys declares the collection of signing keys: TSIG keys and the keys of signed zones.
func registerSigningKeys(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "signingKeys", Complete: completeKeys}, &dns.TSIGKey{}, &KeySigningKey{}, &ZoneSigningKey{})
}

// ZoneKey has the common fields of the keys of signed zones. They are determined by the signing policy and by the generated key.
type ZoneKey struct {
	// Configuration is the configuration that contains the key.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Algorithm is the algorithm of the key.
	Algorithm string `api:"algorithm" enum:"ECDSAP256SHA256|ECDSAP384SHA384|ED25519|ED448|RSAMD5|RSANSEC3SHA256|RSANSEC3SHA512|RSASHA1|RSASHA1NSEC3SHA1|RSASHA256|RSASHA512"`
	// Length is the length of the key in bits.
	Length *int64 `api:"length"`
	// State shows whether the key was generated. REGENERATE, in a PATCH, generates another key.
	State string `api:"state" enum:"GENERATED|NOT_GENERATED|REGENERATE"`
	// KeyGenerationDateTime is when the key was generated.
	KeyGenerationDateTime time.Time `api:"keyGenerationDateTime,readOnly"`
	// PrivateKey is the private key. It is never shown.
	PrivateKey schema.Secret `api:"privateKey"`
	// KeyStartDateTime is the start of the validity of the key.
	KeyStartDateTime time.Time `api:"keyStartDateTime"`
	// KeyExpirationDateTime is the end of the validity of the key.
	KeyExpirationDateTime time.Time `api:"keyExpirationDateTime"`
	// TTL is the TTL of the DNSKEY record.
	TTL string `api:"ttl,duration"`
	// KeyTag is the tag of the DNSKEY record (RFC 4034 appendix B).
	KeyTag *int64 `api:"keyTag"`
	// PublicKey is the public key in base64.
	PublicKey string `api:"publicKey" length:"4096"`
	// Flags are the flags of the DNSKEY record: 257 for a key signing key, 256 for a zone signing key.
	Flags *int64 `api:"flags"`
	// DNSKEYRecord is the DNSKEY record in zone-file syntax.
	DNSKEYRecord string `api:"dnsKeyRecord,computed"`
	// KeyProvider is the system that stores the key.
	KeyProvider string `api:"keyProvider,computed" always:"ADDRESS_MANAGER"`
	// PrivateKeyEncoding is always null, because private keys are never shown.
	PrivateKeyEncoding string `api:"privateKeyEncoding,readOnly" enum:"PKCS8|X509"`
	// PublicKeyEncoding is always null, because publicKey has the format of a DNSKEY record.
	PublicKeyEncoding string `api:"publicKeyEncoding,readOnly" enum:"PKCS8|X509"`
}

// KeySigningKey is a key that signs the keys of a zone (RFC 6781).
type KeySigningKey struct {
	schema.Head `post:"no" parents:"zones|blocks|networks"`
	ZoneKey
	// DSRecord is the DS record for the parent zone in zone-file syntax (RFC 4034 section 5), with the digest algorithm of the policy.
	DSRecord string `api:"dsRecord,computed"`
	// DSConfirmed confirms that the DS record is in a parent zone of another operator. The previous key can then be removed. This is an
	// extension of Portolan.
	DSConfirmed bool `api:"dsConfirmed"`
	// DSConfirmedDateTime is the time of the confirmation.
	DSConfirmedDateTime time.Time `api:"dsConfirmedDateTime,readOnly"`
	// DSWithdrawn removes the CDS record, and the DS record from a parent zone that this manager serves. Set it before you stop signing the
	// zone. This is an extension of Portolan.
	DSWithdrawn bool `api:"dsWithdrawn"`
}

// ZoneSigningKey is a key that signs the records of a zone (RFC 6781).
type ZoneSigningKey struct {
	schema.Head `post:"no" parents:"zones|blocks|networks"`
	ZoneKey
}

// BeforeWrite records the confirmation of the DS record, and generates another key on request.
func (x *KeySigningKey) BeforeWrite(c *resource.Change) error {
	switch {
	case !x.DSConfirmed:
		x.DSConfirmedDateTime = time.Time{}
	case x.DSConfirmedDateTime.IsZero():
		x.DSConfirmedDateTime = c.Tx.Now().UTC()
	}
	return x.regenerate(c, &x.Head)
}

// BeforeWrite generates another key on request.
func (x *ZoneSigningKey) BeforeWrite(c *resource.Change) error { return x.regenerate(c, &x.Head) }

// BeforeDelete rejects the deletion of a key that is in use.
func (x *KeySigningKey) BeforeDelete(c *resource.Change) error { return x.checkUnused(c) }

// BeforeDelete rejects the deletion of a key that is in use.
func (x *ZoneSigningKey) BeforeDelete(c *resource.Change) error { return x.checkUnused(c) }

// regenerate generates another key if the request asks for it. It rejects changes of all fields but the state, dsConfirmed and dsWithdrawn.
func (x *ZoneKey) regenerate(c *resource.Change, h *schema.Head) error {
	if c.IsCreation() || !c.IsRequested() {
		return nil
	}
	for name, raw := range c.Sent {
		f := c.Type.ByName[name]
		isAllowed := name == "state" || name == "dsConfirmed" || name == "dsWithdrawn"
		if !isAllowed && c.SetFields[name] && c.Type.DiffersFrom(c.Old, f, raw) { // a PUT may repeat the current values
			return problem.Forbidden("FieldUpdateNotAllowed",
				"%s: keys are created by the signing policy; PATCH the state to REGENERATE for a new key",
				name)
		}
	}
	if old := c.Type.TextOf(c.Old, "state"); x.State == old { // only dsConfirmed or dsWithdrawn may have changed
		return nil
	}
	if x.State != dns.KeyStateRegenerate {
		return problem.Field("InvalidEnumValue", "state", "must be REGENERATE")
	}
	if err := x.retireOld(c); err != nil {
		return err
	}
	if k, ok := c.New.(*KeySigningKey); ok {
		k.DSConfirmed, k.DSConfirmedDateTime = false, time.Time{}
	}
	return x.generate(c, h.Parent, x.Algorithm, x.Length, x.KeyExpirationDateTime.Sub(x.KeyStartDateTime))
}

// retireOld keeps the previous key as an expired key. It signs until its replacement has reached all resolvers.
func (x *ZoneKey) retireOld(c *resource.Change) error {
	o, err := c.API.Object(c.Row)
	if err != nil {
		return err
	}
	h := schema.HeadOf(o)
	tag := *keyFields(o).KeyTag
	h.ID = 0
	keyFields(o).KeyExpirationDateTime = c.Tx.Now().UTC()
	if _, err = c.Following().Create(c.Type, o); err != nil {
		return err
	}
	name, err := readZoneName(c, h.Parent)
	if err != nil {
		return err
	}
	return event.Add(c.Tx, event.Event{EventType: "INFO", Category: "DNSSEC_KEY_EXPIRATION", Subcategory: "DNS", SourceName: name,
		Message: fmt.Sprintf("%s %d of zone %s: a new key was requested and will replace it", h.Type, tag, name)}, h.Parent)
}

// checkUnused rejects the deletion of a key that is in use.
func (x *ZoneKey) checkUnused(c *resource.Change) error {
	if c.IsCascaded() || c.SetFields[unsigning] {
		return nil
	}
	followed, err := x.isReplaced(c)
	if err != nil || followed {
		return err
	}
	return problem.InUse("the key %d signs until %s; to delete it, assign another policy or disable signing of the zone", *x.KeyTag,
		schema.FormatTime(x.KeyExpirationDateTime))
}

// isReplaced reports whether a key is expired and another key of its kind has existed long enough to have reached all resolvers.
func (x *ZoneKey) isReplaced(c *resource.Change) (is bool, err error) {
	now := c.Tx.Now()
	if now.Before(x.KeyExpirationDateTime) {
		return false, nil
	}
	keys := store.All{store.InCollection("signingKeys"), store.HasParent(c.Row.Parent)}
	return is, c.Tx.List(store.Query{From: store.Resources, Where: keys},
		func(r *store.Resource) error {
			var k struct{ KeyStartDateTime time.Time }
			if r.Type != c.Row.Type || r.ID == c.Row.ID {
				return nil
			}
			err := json.Unmarshal(r.Body, &k)
			is = is || k.KeyStartDateTime.After(x.KeyStartDateTime) && now.After(k.KeyStartDateTime.Add(2*maxTTL))
			return err
		})
}

// unsigning is a marker in Change.Given: the keys are deleted because the zone is no longer signed.
const unsigning = "unsigning"

// algorithms contains the supported algorithms by their names in signing policies. Others are rejected: RSAMD5 must not be used any more
// (RFC 8624), and the libraries in use do not support Ed448.
var algorithms = map[string]struct {
	number uint8
	// minBits and maxBits are the bounds of the key length. They are equal if the algorithm has a fixed length.
	minBits, maxBits int
}{
	"ECDSAP256SHA256":  {wire.ECDSAP256SHA256, 256, 256},
	"ECDSAP384SHA384":  {wire.ECDSAP384SHA384, 384, 384},
	"ED25519":          {wire.ED25519, 256, 256},
	"RSASHA1":          {wire.RSASHA1, 1024, 4096},
	"RSASHA1NSEC3SHA1": {wire.RSASHA1NSEC3SHA1, 1024, 4096},
	"RSASHA256":        {wire.RSASHA256, 1024, 4096},
	"RSANSEC3SHA256":   {wire.RSASHA256, 1024, 4096},
	"RSASHA512":        {wire.RSASHA512, 1024, 4096},
	"RSANSEC3SHA512":   {wire.RSASHA512, 1024, 4096},
}

// publishedKey contains the fields of a key that its records are made of.
type publishedKey struct {
	PublicKey, Algorithm string
	Flags                *uint16
	TTL                  string
}

// completeKeys adds the DNSKEY and DS records to the bodies of zone keys.
func completeKeys(tx *store.Tx, rows []*store.Resource) error {
	for _, r := range rows {
		var k publishedKey
		if r.Type != "KeySigningKey" && r.Type != "ZoneSigningKey" {
			continue
		}
		if err := json.Unmarshal(r.Body, &k); err != nil {
			return err
		}
		if k.PublicKey == "" || k.Flags == nil {
			continue
		}
		above, err := tx.Get(r.Parent)
		if err != nil {
			return err
		}
		name := SignedZoneName(above)
		ttl := uint32(dns.DefaultTTL)
		if k.TTL != "" {
			ttl = uint32(schema.LengthOf(k.TTL) / time.Second) //nolint:gosec // it was checked
		}
		key := &wire.DNSKEY{Hdr: wire.RR_Header{Name: wire.CanonicalName(name), Rrtype: wire.TypeDNSKEY, Class: wire.ClassINET,
			Ttl: ttl}, Flags: *k.Flags, Protocol: 3, Algorithm: algorithms[k.Algorithm].number, PublicKey: k.PublicKey}
		members := map[string][]byte{"dnsKeyRecord": schema.AppendString(nil, key.String())}
		if ds := key.ToDS(digestType(tx, above)); ds != nil && r.Type == "KeySigningKey" {
			members["dsRecord"] = schema.AppendString(nil, ds.String())
		}
		if r.Body, err = store.Rewritten(r.Body, members); err != nil {
			return err
		}
	}
	return nil
}

// rangeOf returns the range of a block or network.
func rangeOf(r *store.Resource) space.Range {
	return space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}
}

// digestType returns the digest algorithm of DS records from the policy of a zone, block or network; SHA-256 if it no longer has a policy.
func digestType(tx *store.Tx, holder *store.Resource) uint8 {
	for _, field := range []string{"signingPolicy", "reverseZoneSigningPolicy"} {
		policy, err := tx.Get(holder.Ref(field))
		var shown struct{ SignatureDigestAlgorithm string }
		if err == nil && json.Unmarshal(policy.Body, &shown) == nil && digests[shown.SignatureDigestAlgorithm] != 0 {
			return digests[shown.SignatureDigestAlgorithm]
		}
	}
	return wire.SHA256
}

// generate generates the key and sets all fields that depend on it.
func (x *ZoneKey) generate(c *resource.Change, zone int64, algorithm string, length *int64, validity time.Duration) error {
	a := algorithms[algorithm]
	if a.number == 0 {
		return problem.Field("UnsupportedResourceFieldValue", "algorithm", "keys of %s are not supported", algorithm)
	}
	bits := a.minBits
	if a.minBits != a.maxBits && length != nil {
		bits = int(*length)
	}
	name, err := readZoneName(c, zone)
	if err != nil {
		return err
	}
	key := &wire.DNSKEY{Hdr: wire.RR_Header{Name: wire.Fqdn(name), Rrtype: wire.TypeDNSKEY, Class: wire.ClassINET}, Flags: uint16(*x.Flags),
		//nolint:gosec // 256, 257
		Protocol: 3, Algorithm: a.number}
	others, err := readKeyTags(c, zone)
	if err != nil {
		return err
	}
	var pair keyPair
	for key.PublicKey == "" || others[int64(key.KeyTag())] { // the tags of a zone's keys must be unique
		if pair, err = newKeyPair(c, algorithm, key, bits); err != nil {
			return fmt.Errorf("create a key of %s for zone %d: %w", algorithm, zone, err)
		}
		key.PublicKey = pair.public
	}
	tag, size := int64(key.KeyTag()), int64(bits)
	x.PrivateKey = schema.Secret{Plain: pair.private, IsSet: true}
	x.PublicKey, x.KeyTag, x.Length, x.Algorithm, x.State = key.PublicKey, &tag, &size, algorithm, dns.KeyStateGenerated
	x.KeyGenerationDateTime = c.Tx.Now().UTC()
	x.KeyStartDateTime, x.KeyExpirationDateTime = x.KeyGenerationDateTime, x.KeyGenerationDateTime.Add(validity)
	return nil
}

// readKeyTags returns the tags of the keys of a zone.
func readKeyTags(c *resource.Change, zone int64) (map[int64]bool, error) {
	tags := map[int64]bool{}
	return tags, c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("signingKeys"), store.HasParent(zone)}},
		func(r *store.Resource) error {
			var k struct{ KeyTag int64 }
			err := json.Unmarshal(r.Body, &k)
			tags[k.KeyTag] = true
			return err
		})
}

// keyPair is an encoded key: the public key as in a DNSKEY record, the private key as in a BIND key file.
type keyPair struct{ public, private string }

// newKeyPair returns a new key. RSA keys take up to seconds, and are generated outside of the transaction.
func newKeyPair(c *resource.Change, algorithm string, like *wire.DNSKEY, bits int) (keyPair, error) {
	if a := algorithms[algorithm]; a.minBits == a.maxBits {
		return generateKeyPair(like, bits)
	}
	made, err := c.Work(fmt.Sprint(algorithm, bits), func() (any, error) { return generateKeyPair(like, bits) })
	pair, _ := made.(keyPair)
	return pair, err
}

// generateKeyPair generates a key. The result does not depend on the zone.
func generateKeyPair(like *wire.DNSKEY, bits int) (keyPair, error) {
	key := *like
	private, err := key.Generate(bits)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{key.PublicKey, key.PrivateKeyString(private)}, nil
}

// readZoneName returns the name of the zone of a resource: a zone itself, or the reverse zone of a block or network.
func readZoneName(c *resource.Change, id int64) (string, error) {
	row, err := c.Tx.Get(id)
	if err != nil {
		return "", err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return "", err
	}
	switch x := o.(type) {
	case *dns.Zone:
		return x.AbsoluteName, nil
	case *ipam.IPv4Block:
		return reverseZoneName(x.Range), nil
	case *ipam.IPv4Network:
		return reverseZoneName(x.Range), nil
	}
	return "", fmt.Errorf("a %s cannot be signed", row.Type)
}

// SignedZoneName returns the name of the zone whose keys a resource holds, in the form used for comparison. For a block or network this is
// its first reverse zone.
func SignedZoneName(r *store.Resource) string {
	if r.Collection == "zones" {
		return r.Key
	}
	return reverseZoneName(schema.Range{Range: rangeOf(r)})
}

// maxReverseZones is the maximum number of reverse zones of a signed range.
const maxReverseZones = 256

// reverseZoneName returns the name of the first reverse zone of a range.
func reverseZoneName(r schema.Range) string {
	return append(naming.ReverseZones(r.Low, r.High, maxReverseZones), "in-addr.arpa")[0]
}

// readSigning reports whether a zone, or the reverse zone of a block or network, is signed, and returns its policy.
func readSigning(o schema.Object) (is bool, policy int64) {
	switch x := o.(type) {
	case *dns.Zone:
		return x.Signed, x.SigningPolicy.ID
	case *ipam.IPv4Block:
		return x.ReverseZoneSigned, x.ReverseZoneSigningPolicy.ID
	case *ipam.IPv4Network:
		return x.ReverseZoneSigned, x.ReverseZoneSigningPolicy.ID
	}
	return false, 0
}

// syncKeys creates the keys of the policy for a signed resource, and deletes the keys of a resource that is no longer signed.
func syncKeys(c *resource.Change) error {
	h := schema.HeadOf(c.New)
	is, policy := readSigning(c.New)
	if c.IsCreation() && !is {
		return nil
	}
	if c.Old != nil {
		if was, before := readSigning(c.Old); was == is && before == policy {
			return nil
		}
	}
	if err := deleteKeys(c, h.ID); err != nil || !is {
		return err
	}
	row, err := c.Tx.Get(policy)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	if err := o.(*DNSSECSigningPolicy).createKeys(c, h); err != nil {
		return err
	}
	return autoRegenerate(c, h.Config)
}

// deleteKeys deletes the keys of a zone.
func deleteKeys(c *resource.Change, zone int64) error {
	return c.Each(store.All{store.InCollection("signingKeys"), store.HasParent(zone)}, func(key *store.Resource, _ schema.Object) error {
		return c.Following(unsigning).Delete(key)
	})
}

// autoRegenerate enables the automatic regeneration of keys in a configuration. It is called when something in it is signed.
func autoRegenerate(c *resource.Change, configuration int64) error {
	row, err := c.Tx.Get(configuration)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil || o.(*ipam.Configuration).KeyAutoRegenerationEnabled {
		return err
	}
	_, err = c.Following("keyAutoRegenerationEnabled").Change(row, func(o schema.Object) {
		o.(*ipam.Configuration).KeyAutoRegenerationEnabled = true
	})
	return err
}
