package dnssec

import (
	"cmp"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
)

// Signed contains the signing policy and the keys of a zone.
type Signed struct {
	Policy *DNSSECSigningPolicy
	// Holder is the resource that holds the keys: the zone, or the block or network of a reverse zone.
	Holder *store.Resource
	// Keys are the key signing keys and the zone signing keys, sorted by start time.
	Keys []*SignedKey
	// Auto enables the automatic creation of successor keys.
	Auto bool
}

// SignedKey is a key of a signed zone.
type SignedKey struct {
	*ZoneKey
	Row *store.Resource
	// Object is the declared resource.
	Object schema.Object
	// SignsKeys is true for a key signing key. Confirmed is the time since which its DS record is reported to be in the parent zone;
	// Withdrawn means that the DS record must not be there.
	SignsKeys bool
	Withdrawn bool
	Confirmed time.Time
	// Record is the DNSKEY record.
	Record *wire.DNSKEY
}

// Tag returns the key tag (RFC 4034 appendix B).
func (k *SignedKey) Tag() uint16 { return k.Record.KeyTag() }

// DS returns the DS record of a key with the digest algorithm of the policy.
func (s *Signed) DS(k *SignedKey) *wire.DS {
	return k.Record.ToDS(digests[s.Policy.SignatureDigestAlgorithm])
}

// digests maps the names of digest algorithms in policies to their numbers.
var digests = map[string]uint8{"SHA1": wire.SHA1, "SHA256": wire.SHA256, "SHA384": wire.SHA384}

// Hashed reports whether the zone uses NSEC3 (RFC 5155). The name of the algorithm determines this.
func (s *Signed) Hashed() bool {
	switch s.Policy.ZoneSigningKeyAlgorithm {
	case "RSASHA1NSEC3SHA1", "RSANSEC3SHA256", "RSANSEC3SHA512":
		return true
	}
	return false
}

// SignedBy returns the policy and the keys of the zone name whose keys a resource holds. The resource is the zone itself, or the block or
// network of the reverse zone. It returns nil if the zone is not signed or has no keys yet.
func SignedBy(tx *store.Tx, api *resource.API, holder *store.Resource, name string) (*Signed, error) {
	o, err := api.Object(holder)
	if err != nil {
		return nil, err
	}
	is, policy := readSigning(o)
	if !is || policy == 0 {
		return nil, nil
	}
	if holder.Collection != "zones" {
		if wire.CanonicalName(SignedZoneName(holder)) != wire.CanonicalName(name) {
			return nil, nil
		}
	}
	row, err := tx.Get(policy)
	if err != nil {
		return nil, err
	}
	if o, err = api.Object(row); err != nil {
		return nil, err
	}
	s := &Signed{Policy: o.(*DNSSECSigningPolicy), Holder: holder}
	if s.Auto, err = hasAutoRegeneration(tx, api, holder.Configuration); err != nil {
		return nil, err
	}
	var rows []*store.Resource
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("signingKeys"), store.HasParent(holder.ID)}},
		func(r *store.Resource) error {
			rows = append(rows, r.Clone())
			return nil
		}); err != nil {
		return nil, err
	}
	for _, r := range rows {
		k, err := signedKey(api, r, name)
		if err != nil {
			return nil, err
		}
		s.Keys = append(s.Keys, k)
	}
	slices.SortFunc(s.Keys, func(a, b *SignedKey) int {
		return cmp.Or(a.KeyStartDateTime.Compare(b.KeyStartDateTime), cmp.Compare(a.Row.ID, b.Row.ID))
	})
	if s.keysOfKind(true) == nil || s.keysOfKind(false) == nil {
		return nil, nil
	}
	return s, nil
}

// hasAutoRegeneration reports whether keys of a configuration get successors automatically.
func hasAutoRegeneration(tx *store.Tx, api *resource.API, configuration int64) (bool, error) {
	row, err := tx.Get(configuration)
	if err != nil {
		return false, err
	}
	o, err := api.Object(row)
	if err != nil {
		return false, err
	}
	return o.(*ipam.Configuration).KeyAutoRegenerationEnabled, nil
}

// signedKey reads a key of a zone.
func signedKey(api *resource.API, r *store.Resource, name string) (*SignedKey, error) {
	o, err := api.Object(r)
	if err != nil {
		return nil, err
	}
	k := &SignedKey{Row: r, Object: o}
	switch x := o.(type) {
	case *KeySigningKey:
		k.ZoneKey, k.SignsKeys, k.Confirmed, k.Withdrawn = &x.ZoneKey, true, x.DSConfirmedDateTime, x.DSWithdrawn
	case *ZoneSigningKey:
		k.ZoneKey = &x.ZoneKey
	}
	ascii, err := naming.ASCII(naming.Clean(name))
	if err != nil {
		return nil, err
	}
	ttl := uint32(dns.DefaultTTL)
	if k.TTL != "" {
		ttl = uint32(schema.LengthOf(k.TTL) / time.Second) //nolint:gosec // it was checked
	}
	k.Record = &wire.DNSKEY{Hdr: wire.RR_Header{Name: wire.CanonicalName(ascii), Rrtype: wire.TypeDNSKEY, Class: wire.ClassINET, Ttl: ttl},
		Flags: uint16(*k.Flags), Protocol: 3, Algorithm: algorithms[k.Algorithm].number, PublicKey: k.PublicKey} //nolint:gosec // 256, 257
	return k, nil
}

// keysOfKind returns the key signing keys or the zone signing keys, oldest first.
func (s *Signed) keysOfKind(signsKeys bool) (keys []*SignedKey) {
	for _, k := range s.Keys {
		if k.SignsKeys == signsKeys {
			keys = append(keys, k)
		}
	}
	return keys
}

// CachedSince contains the times since which resolvers may have cached data of a key. The data are its DNSKEY record, its DS record in the
// parent zone, and its signatures on all servers. The zero time means never.
type CachedSince struct{ Key, Parent, Signing time.Time }

// deploymentDelay is the maximum time until all servers of a zone serve deployed data.
const deploymentDelay = time.Minute

// Stage contains the state of the keys of a zone at a time, and the pending actions. All existing keys have DNSKEY records.
type Stage struct {
	// Signing are the keys that sign. DS are the keys whose DS records must be in the parent zone; the CDS records contain the same keys
	// (RFC 7344).
	Signing, DS []*SignedKey
	// Obsolete are the keys that are no longer needed and can be deleted.
	Obsolete []*SignedKey
	// Ending are the newest keys that need a successor now.
	Ending []*SignedKey
	// Waiting are key signing keys that become active after a user confirms that their DS records are in the parent zone.
	Waiting []*SignedKey
	// Expired are keys that remain active after their expiration because they have no successor.
	Expired []*SignedKey
}

// Stage computes the state of the keys at a time (RFC 6781 section 4.1, RFC 7583) from the times in seen. parent is true if this manager
// also serves the parent zone. Otherwise users confirm the DS records.
func (s *Signed) Stage(seen map[uint16]CachedSince, now time.Time, parent bool) (out Stage) {
	for _, kind := range s.Policy.kinds() {
		keys := s.keysOfKind(kind.prefix == "keySigningKey")
		newest := keys[len(keys)-1]
		end := newest.KeyExpirationDateTime
		switch {
		case s.Auto && len(keys) == 1 && !now.Before(end.Add(-schema.LengthOf(kind.overlap))):
			out.Ending = append(out.Ending, newest)
		case !s.Auto && !now.Before(end):
			out.Expired = append(out.Expired, newest)
		}
		signing := s.signingIndex(kind, keys, seen, now, parent)
		for i, k := range keys {
			if k.SignsKeys && i > 0 && !parent && k.Confirmed.IsZero() && isPropagated(k, seen, now) {
				out.Waiting = append(out.Waiting, k)
			}
			first := i == 0 && !seen[k.Tag()].Key.IsZero()
			if k.SignsKeys && !k.Withdrawn && (first || isPropagated(k, seen, now)) {
				out.DS = append(out.DS, k)
			}
		}
		for i, k := range keys {
			switch {
			case i < signing && k.isRemovable(keys[i+1], seen, now):
				out.Obsolete = append(out.Obsolete, k)
				out.DS = slices.DeleteFunc(out.DS, func(one *SignedKey) bool { return one == k })
			case k.SignsKeys || kind.method != "PRE_PUBLISH" || i == signing: // every published DS record must match a signing key
				out.Signing = append(out.Signing, k)
			}
		}
	}
	return out
}

// signingIndex returns the index of the newest key of a kind that is active at a time.
func (s *Signed) signingIndex(kind keyKind, keys []*SignedKey, seen map[uint16]CachedSince, now time.Time, parent bool) (signing int) {
	for i := range keys {
		if from, known := s.takeoverTime(kind, keys, i, seen, parent); known && !now.Before(from) {
			signing = i
		}
	}
	return signing
}

// isPropagated reports whether the DNSKEY record of a key has reached all resolvers.
func isPropagated(k *SignedKey, seen map[uint16]CachedSince, now time.Time) bool {
	since := seen[k.Tag()].Key
	return !since.IsZero() && !now.Before(since.Add(k.propagation()))
}

// propagation returns the time until the DNSKEY record of the key has reached all resolvers.
func (k *SignedKey) propagation() time.Duration {
	return time.Duration(k.Record.Hdr.Ttl)*time.Second + deploymentDelay
}

// maxTTL is the assumed maximum TTL of cached records and of DS records in parent zones of other operators. Longer TTLs are rare, and
// resolvers usually limit them.
const maxTTL = 24 * time.Hour

// parentPropagation returns the time until the DS records of the parent zone have reached all resolvers.
func parentPropagation(ours bool) time.Duration {
	if ours {
		return dns.DefaultTTL*time.Second + deploymentDelay
	}
	return maxTTL + deploymentDelay
}

// takeoverTime returns the earliest time at which a key can sign alone. By then its records have reached all resolvers, and the time of its
// predecessor is almost over. known is false if the time cannot be computed yet.
func (s *Signed) takeoverTime(kind keyKind, keys []*SignedKey, i int, seen map[uint16]CachedSince, parent bool) (at time.Time, known bool) {
	k := keys[i]
	if i == 0 {
		return time.Time{}, true
	}
	since := seen[k.Tag()].Key
	if since.IsZero() {
		return at, false
	}
	at = since.Add(k.propagation())
	if k.SignsKeys {
		above := k.Confirmed
		if parent {
			above = seen[k.Tag()].Parent
		}
		if above.IsZero() {
			return at, false
		}
		at = laterTime(at, above.Add(parentPropagation(parent)))
	}
	end := keys[i-1].KeyExpirationDateTime
	if kind.method == "PRE_PUBLISH" {
		end = end.Add(-schema.LengthOf(kind.signing))
	}
	return laterTime(at, end), true
}

// isRemovable reports whether a replaced key is no longer needed: it is expired, and the signatures of its successor have reached all
// resolvers.
func (k *SignedKey) isRemovable(next *SignedKey, seen map[uint16]CachedSince, now time.Time) bool {
	since := seen[next.Tag()].Signing
	return !since.IsZero() && !now.Before(k.removalTime(since))
}

// removalTime returns the earliest time at which the key is no longer needed, if all servers sign with its successor since the given time.
func (k *SignedKey) removalTime(since time.Time) time.Time {
	return laterTime(since.Add(maxTTL+deploymentDelay), k.KeyExpirationDateTime)
}

func laterTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Follow creates the successor of a key. It extends the validity of the key so that both overlap.
func (s *Signed) Follow(c *resource.Change, ending *SignedKey) error {
	for _, kind := range s.Policy.kinds() {
		if (kind.prefix == "keySigningKey") != ending.SignsKeys {
			continue
		}
		until := laterTime(ending.KeyExpirationDateTime, c.Tx.Now().UTC().Add(schema.LengthOf(kind.overlap)))
		if !until.Equal(ending.KeyExpirationDateTime) {
			if _, err := c.Following("keyExpirationDateTime").Change(ending.Row, func(o schema.Object) {
				keyFields(o).KeyExpirationDateTime = until
			}); err != nil {
				return err
			}
		}
		return s.Policy.createKey(c, kind, &schema.Head{ID: s.Holder.ID, Config: s.Holder.Configuration})
	}
	return nil
}

// keyFields returns the common fields of a zone key; nil for other resources.
func keyFields(o schema.Object) *ZoneKey {
	switch x := o.(type) {
	case *KeySigningKey:
		return &x.ZoneKey
	case *ZoneSigningKey:
		return &x.ZoneKey
	}
	return nil
}

// Forget deletes a key that is no longer needed.
func Forget(c *resource.Change, k *SignedKey) error { return c.Following(unsigning).Delete(k.Row) }

// Records returns the key records at the apex of the zone: DNSKEY, CDS and CDNSKEY, and NSEC3PARAM.
func (s *Signed) Records(stage Stage, ttl uint32) (all []wire.RR) {
	for _, k := range s.Keys {
		if !slices.Contains(stage.Obsolete, k) {
			all = append(all, wire.Copy(k.Record))
		}
	}
	for _, k := range stage.DS {
		all = append(all, s.DS(k).ToCDS(), k.Record.ToCDNSKEY())
	}
	if s.Hashed() && len(all) > 0 {
		head := wire.RR_Header{Name: s.Keys[0].Record.Hdr.Name, Rrtype: wire.TypeNSEC3PARAM, Class: wire.ClassINET, Ttl: ttl}
		all = append(all, &wire.NSEC3PARAM{Hdr: head, Hash: wire.SHA1})
	}
	sameTTL(all)
	return all
}

// sameTTL sets the TTL of the records of each RRset to the lowest one (RFC 2181 section 5.2).
func sameTTL(all []wire.RR) {
	minTTL := map[uint16]uint32{}
	for _, rr := range all {
		if ttl, there := minTTL[rr.Header().Rrtype]; !there || rr.Header().Ttl < ttl {
			minTTL[rr.Header().Rrtype] = rr.Header().Ttl
		}
	}
	for _, rr := range all {
		rr.Header().Ttl = minTTL[rr.Header().Rrtype]
	}
}
