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

// registerSigningKeys declares the collection of keys: those that messages are signed with, and those of signed zones.
func registerSigningKeys(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "signingKeys", Complete: completeKeys}, &dns.TSIGKey{}, &KeySigningKey{}, &ZoneSigningKey{})
}

// ZoneKey is what keys of signed zones have. All of it follows from the policy of the zone, and from the key that is made.
type ZoneKey struct {
	// Configuration is the configuration the key lies in.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Algorithm is the algorithm of the key.
	Algorithm string `api:"algorithm" enum:"ECDSAP256SHA256|ECDSAP384SHA384|ED25519|ED448|RSAMD5|RSANSEC3SHA256|RSANSEC3SHA512|RSASHA1|RSASHA1NSEC3SHA1|RSASHA256|RSASHA512"`
	// Length is how long the key is, in bits.
	Length *int64 `api:"length"`
	// State says whether the key is there; REGENERATE, in a PATCH, makes another one.
	State string `api:"state" enum:"GENERATED|NOT_GENERATED|REGENERATE"`
	// KeyGenerationDateTime is when the key was made.
	KeyGenerationDateTime time.Time `api:"keyGenerationDateTime,readOnly"`
	// PrivateKey is never shown.
	PrivateKey schema.Secret `api:"privateKey"`
	// KeyStartDateTime is when the key begins to be used.
	KeyStartDateTime time.Time `api:"keyStartDateTime"`
	// KeyExpirationDateTime is when it is no longer used.
	KeyExpirationDateTime time.Time `api:"keyExpirationDateTime"`
	// TTL is the time to live of its DNSKEY record.
	TTL string `api:"ttl,duration"`
	// KeyTag is the tag of its DNSKEY record (RFC 4034 appendix B).
	KeyTag *int64 `api:"keyTag"`
	// PublicKey is its public part, in base64.
	PublicKey string `api:"publicKey" length:"4096"`
	// Flags are those of its DNSKEY record: 257 of a key signing key, 256 of a zone signing key.
	Flags *int64 `api:"flags"`
	// DNSKEYRecord is its DNSKEY record, as a zone file has it.
	DNSKEYRecord string `api:"dnsKeyRecord,computed"`
	// KeyProvider is who keeps it.
	KeyProvider string `api:"keyProvider,computed" always:"ADDRESS_MANAGER"`
	// PrivateKeyEncoding is null: private parts are never shown.
	PrivateKeyEncoding string `api:"privateKeyEncoding,readOnly" enum:"PKCS8|X509"`
	// PublicKeyEncoding is null: publicKey is as in a DNSKEY record.
	PublicKeyEncoding string `api:"publicKeyEncoding,readOnly" enum:"PKCS8|X509"`
}

// KeySigningKey is the key that the keys of a signed zone are signed with (RFC 6781).
type KeySigningKey struct {
	schema.Head `post:"no" parents:"zones|blocks|networks"`
	ZoneKey
	// DSRecord is the DS record of it for the zone above, as a zone file has it (RFC 4034 section 5), by the hash of the policy.
	DSRecord string `api:"dsRecord,computed"`
	// DSConfirmed says that the DS record is in the zone above, where that is not ours: the key before it goes then. (Ours.)
	DSConfirmed bool `api:"dsConfirmed"`
	// DSConfirmedDateTime is since when.
	DSConfirmedDateTime time.Time `api:"dsConfirmedDateTime,readOnly"`
	// DSWithdrawn takes the DS record out of the zone above, where that is ours, and the CDS record: before the zone is signed no more.
	// (Ours.)
	DSWithdrawn bool `api:"dsWithdrawn"`
}

// ZoneSigningKey is a key that the records of a signed zone are signed with (RFC 6781).
type ZoneSigningKey struct {
	schema.Head `post:"no" parents:"zones|blocks|networks"`
	ZoneKey
}

// BeforeWrite makes another key where that is asked for.
func (x *KeySigningKey) BeforeWrite(c *resource.Change) error {
	switch {
	case !x.DSConfirmed:
		x.DSConfirmedDateTime = time.Time{}
	case x.DSConfirmedDateTime.IsZero():
		x.DSConfirmedDateTime = c.Tx.Now().UTC()
	}
	return x.regenerate(c, &x.Head)
}

// BeforeWrite makes another key where that is asked for.
func (x *ZoneSigningKey) BeforeWrite(c *resource.Change) error { return x.regenerate(c, &x.Head) }

// BeforeDelete keeps a key that is in use.
func (x *KeySigningKey) BeforeDelete(c *resource.Change) error { return x.checkUnused(c) }

// BeforeDelete keeps a key that is in use.
func (x *ZoneSigningKey) BeforeDelete(c *resource.Change) error { return x.checkUnused(c) }

// rewrite takes nothing but a request for another key, and that a DS record is in the zone above.
func (x *ZoneKey) regenerate(c *resource.Change, h *schema.Head) error {
	if c.Creates() || !c.Requested() {
		return nil
	}
	for name, raw := range c.Sent {
		f := c.Type.ByName[name]
		isAllowed := name == "state" || name == "dsConfirmed" || name == "dsWithdrawn"
		if !isAllowed && c.Given[name] && c.Type.Differs(c.Old, f, raw) { // a PUT says what is there
			return problem.Forbidden("FieldUpdateNotAllowed",
				"%s: a key follows from the signing policy; PATCH its state with REGENERATE for another one",
				name)
		}
	}
	if old := c.Type.TextOf(c.Old, "state"); x.State == old { // nothing else changes
		return nil
	}
	if x.State != dns.KeyStateRegenerate {
		return problem.Field("InvalidEnumValue", "state", "takes REGENERATE alone")
	}
	if err := x.retireOld(c); err != nil {
		return err
	}
	if k, ok := c.New.(*KeySigningKey); ok {
		k.DSConfirmed, k.DSConfirmedDateTime = false, time.Time{}
	}
	return x.generate(c, h.Parent, x.Algorithm, x.Length, x.KeyExpirationDateTime.Sub(x.KeyStartDateTime))
}

// leaveBehind keeps the key that was there before as one that has ended: it signs until everybody knows the one that takes its place.
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
		Message: fmt.Sprintf("%s %d of zone %s: another key was asked for, and is to follow it", h.Type, tag, name)}, h.Parent)
}

// expired refuses to delete a key that is in use.
func (x *ZoneKey) checkUnused(c *resource.Change) error {
	if c.GoesAlong() || c.Given[unsigning] {
		return nil
	}
	followed, err := x.isReplaced(c)
	if err != nil || followed {
		return err
	}
	return problem.InUse("the key %d signs until %s; another policy or no signature of the zone takes it away", *x.KeyTag,
		schema.FormatTime(x.KeyExpirationDateTime))
}

// followed reports whether the time of a key is over, and another one of its kind has been there for so long that everybody knows it.
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
			is = is || k.KeyStartDateTime.After(x.KeyStartDateTime) && now.After(k.KeyStartDateTime.Add(2*longestTTL))
			return err
		})
}

// unsigning is what is given where the keys of a zone go because it is no longer signed.
const unsigning = "unsigning"

// algorithms are those of signing policies by their names there. The others of them are refused: nobody should sign by RSAMD5 any more (RFC
// 8624), and Ed448 is in no library that we use.
var algorithms = map[string]struct {
	number uint8
	// bits are how long its keys may be; where there is one length, that is what they have.
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

// keyShown are the members of a key that its records are made of.
type publishedKey struct {
	PublicKey, Algorithm string
	Flags                *uint16
	TTL                  string
}

// completeKeys shows the records of keys of zones.
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

// rangeOf is the range of a block or network.
func rangeOf(r *store.Resource) space.Range {
	return space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}
}

// digestOf gives the hash of DS records by the policy of a zone, a block or a network; SHA-256 where it has none any more.
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

// generate makes the key, and sets all that follows from it.
func (x *ZoneKey) generate(c *resource.Change, zone int64, algorithm string, length *int64, validity time.Duration) error {
	a := algorithms[algorithm]
	if a.number == 0 {
		return problem.Field("UnsupportedResourceFieldValue", "algorithm", "keys of %s are not made", algorithm)
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
	for key.PublicKey == "" || others[int64(key.KeyTag())] { // keys of a zone are told apart by their tags
		if pair, err = newKeyPair(c, algorithm, key, bits); err != nil {
			return fmt.Errorf("making a key of %s for zone %d: %w", algorithm, zone, err)
		}
		key.PublicKey = pair.public
	}
	tag, size := int64(key.KeyTag()), int64(bits)
	x.PrivateKey = schema.Secret{Plain: pair.private, Given: true}
	x.PublicKey, x.KeyTag, x.Length, x.Algorithm, x.State = key.PublicKey, &tag, &size, algorithm, dns.KeyStateGenerated
	x.KeyGenerationDateTime = c.Tx.Now().UTC()
	x.KeyStartDateTime, x.KeyExpirationDateTime = x.KeyGenerationDateTime, x.KeyGenerationDateTime.Add(validity)
	return nil
}

// tagsBelow gives the tags of the keys of a zone.
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

// keyPair is a key as it is written: its public part as in a DNSKEY record, its private one as in a file of BIND.
type keyPair struct{ public, private string }

// keyOf gives a new key. Those of RSA take up to seconds, and are made outside of the transaction.
func newKeyPair(c *resource.Change, algorithm string, like *wire.DNSKEY, bits int) (keyPair, error) {
	if a := algorithms[algorithm]; a.minBits == a.maxBits {
		return generateKeyPair(like, bits)
	}
	made, err := c.Work(fmt.Sprint(algorithm, bits), func() (any, error) { return generateKeyPair(like, bits) })
	pair, _ := made.(keyPair)
	return pair, err
}

// makeKey makes a key. Nothing of it depends on the zone.
func generateKeyPair(like *wire.DNSKEY, bits int) (keyPair, error) {
	key := *like
	private, err := key.Generate(bits)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{key.PublicKey, key.PrivateKeyString(private)}, nil
}

// zoneNameOf gives the name of the zone of a resource: its own, or that of the reverse zone of a block or network.
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
	return "", fmt.Errorf("a %s is not signed", row.Type)
}

// SignedZoneName gives the name, as names compare, of the zone whose keys a resource has: a zone its own, a block or network that of its
// first reverse zone.
func SignedZoneName(r *store.Resource) string {
	if r.Collection == "zones" {
		return r.Key
	}
	return reverseZoneName(schema.Range{Range: rangeOf(r)})
}

// mostReverse is how many reverse zones a range may have that is signed.
const maxReverseZones = 256

// reverseZoneName gives the name of the reverse zone of a range, the first one where it has several.
func reverseZoneName(r schema.Range) string {
	return append(naming.ReverseZones(r.Low, r.High, maxReverseZones), "in-addr.arpa")[0]
}

// signed is what a zone, or a block or network for its reverse zone, says of being signed.
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

// keepKeys sees to it that what is signed has the keys of its policy, and what is not has none.
func syncKeys(c *resource.Change) error {
	h := schema.HeadOf(c.New)
	is, policy := readSigning(c.New)
	if c.Creates() && !is {
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

// dropKeys deletes the keys of a zone.
func deleteKeys(c *resource.Change, zone int64) error {
	return c.Each(store.All{store.InCollection("signingKeys"), store.HasParent(zone)}, func(key *store.Resource, _ schema.Object) error {
		return c.Following(unsigning).Delete(key)
	})
}

// autoRegenerate lets the keys of a configuration be made anew by themselves, as they are once something in it is signed.
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
