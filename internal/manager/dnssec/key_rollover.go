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

// Signed is how a zone is signed, by its policy and keys.
type Signed struct {
	Policy *DNSSECSigningPolicy
	// Holder is the resource whose keys they are: the zone, or the block or network of a reverse zone.
	Holder *store.Resource
	// Keys are those that sign keys and those that sign records, each kind from the oldest to the newest.
	Keys []*SignedKey
	// Auto says that keys are followed by others by themselves.
	Auto bool
}

// SignedKey is a key of a signed zone.
type SignedKey struct {
	*ZoneKey
	Row *store.Resource
	// Object is the resource as it is declared.
	Object schema.Object
	// SignsKeys says that it is a key signing key, Confirmed since when its DS record is said to be in the zone above, Withdrawn that it is
	// not to be there.
	SignsKeys bool
	Withdrawn bool
	Confirmed time.Time
	// Record is its DNSKEY record.
	Record *wire.DNSKEY
}

// Tag is its tag (RFC 4034 appendix B).
func (k *SignedKey) Tag() uint16 { return k.Record.KeyTag() }

// DS is its DS record by the hash of the policy.
func (s *Signed) DS(k *SignedKey) *wire.DS {
	return k.Record.ToDS(digests[s.Policy.SignatureDigestAlgorithm])
}

// digests are the hashes of DS records by their names in policies.
var digests = map[string]uint8{"SHA1": wire.SHA1, "SHA256": wire.SHA256, "SHA384": wire.SHA384}

// Hashed reports whether names that are not there are denied by their hashes (RFC 5155): the algorithm's name says so.
func (s *Signed) Hashed() bool {
	switch s.Policy.ZoneSigningKeyAlgorithm {
	case "RSASHA1NSEC3SHA1", "RSANSEC3SHA256", "RSANSEC3SHA512":
		return true
	}
	return false
}

// SignedBy gives how the zone of a name is signed that a resource holds: itself, or the first reverse zone of a block or network; nil where
// it is not, or has no keys yet.
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

// regenerates reports whether the keys of a configuration follow each other by themselves.
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

// kind gives the keys of one kind, the oldest first.
func (s *Signed) keysOfKind(signsKeys bool) (keys []*SignedKey) {
	for _, k := range s.Keys {
		if k.SignsKeys == signsKeys {
			keys = append(keys, k)
		}
	}
	return keys
}

// Seen is since when somebody may have seen of a key: its DNSKEY record, its DS record in the zone above, and signatures by it on all
// servers. The zero time is never.
type Seen struct{ Key, Parent, Signing time.Time }

// settling is how long it may take until all servers of a zone serve what was deployed.
const deploymentDelay = time.Minute

// Stage is what there is to do with the keys of a zone at a time. All keys that are there have DNSKEY records.
type Stage struct {
	// Signing are the keys that sign; DS those whose DS records are to be in the zone above, and which the CDS records name (RFC 7344).
	Signing, DS []*SignedKey
	// Gone are the keys that nobody needs any more.
	Gone []*SignedKey
	// Ending are the newest keys that another one is to follow, now.
	Ending []*SignedKey
	// Waiting are key signing keys that take over once somebody says that their DS records are in the zone above.
	Waiting []*SignedKey
	// Expired are keys that go on beyond their time, as there is none that follows.
	Expired []*SignedKey
}

// Stage finds what there is to do with the keys at a time (RFC 6781 section 4.1, RFC 7583), by when what was seen of them. parent says that
// the zone above is ours; otherwise people say when DS records are there.
func (s *Signed) Stage(seen map[uint16]Seen, now time.Time, parent bool) (out Stage) {
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
				out.Gone = append(out.Gone, k)
				out.DS = slices.DeleteFunc(out.DS, func(one *SignedKey) bool { return one == k })
			case k.SignsKeys || kind.method != "PRE_PUBLISH" || i == signing: // of keys, whichever DS record is known has to lead to one
				out.Signing = append(out.Signing, k)
			}
		}
	}
	return out
}

// signing gives the place of the key of a kind that the zone is signed by at a time: the newest that has taken over.
func (s *Signed) signingIndex(kind keyKind, keys []*SignedKey, seen map[uint16]Seen, now time.Time, parent bool) (signing int) {
	for i := range keys {
		if from, known := s.takeoverTime(kind, keys, i, seen, parent); known && !now.Before(from) {
			signing = i
		}
	}
	return signing
}

// ripe reports whether everybody knows the DNSKEY record of a key.
func isPropagated(k *SignedKey, seen map[uint16]Seen, now time.Time) bool {
	since := seen[k.Tag()].Key
	return !since.IsZero() && !now.Before(since.Add(k.propagation()))
}

// propagation is how long it takes until everybody knows the DNSKEY record of the key.
func (k *SignedKey) propagation() time.Duration {
	return time.Duration(k.Record.Hdr.Ttl)*time.Second + deploymentDelay
}

// longestTTL is how long resolvers may have records, and DS records of zones that are not ours: those that say longer are rare, and
// resolvers do not keep them so long.
const longestTTL = 24 * time.Hour

// parentPropagation is how long it takes until everybody knows the DS records of the zone above.
func parentPropagation(ours bool) time.Duration {
	if ours {
		return dns.DefaultTTL*time.Second + deploymentDelay
	}
	return longestTTL + deploymentDelay
}

// takesOver gives when a key may sign alone: everybody knows it by then, and the time of the one before is about over. known is false where
// that cannot be said yet.
func (s *Signed) takeoverTime(kind keyKind, keys []*SignedKey, i int, seen map[uint16]Seen, parent bool) (at time.Time, known bool) {
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
		at = later(at, above.Add(parentPropagation(parent)))
	}
	end := keys[i-1].KeyExpirationDateTime
	if kind.method == "PRE_PUBLISH" {
		end = end.Add(-schema.LengthOf(kind.signing))
	}
	return later(at, end), true
}

// leaves reports whether nobody needs a key any more that another one has taken over from: its time is over, and everybody knows records
// that the other one has signed.
func (k *SignedKey) isRemovable(next *SignedKey, seen map[uint16]Seen, now time.Time) bool {
	since := seen[next.Tag()].Signing
	return !since.IsZero() && !now.Before(k.removalTime(since))
}

// leavesAt gives from when on nobody needs the key any more, if all servers sign by the next one since a time.
func (k *SignedKey) removalTime(since time.Time) time.Time {
	return later(since.Add(longestTTL+deploymentDelay), k.KeyExpirationDateTime)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Follow makes the key that follows another one, whose time is made long enough for that.
func (s *Signed) Follow(c *resource.Change, ending *SignedKey) error {
	for _, kind := range s.Policy.kinds() {
		if (kind.prefix == "keySigningKey") != ending.SignsKeys {
			continue
		}
		until := later(ending.KeyExpirationDateTime, c.Tx.Now().UTC().Add(schema.LengthOf(kind.overlap)))
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

// keyFields gives what keys of zones have; nil of anything else.
func keyFields(o schema.Object) *ZoneKey {
	switch x := o.(type) {
	case *KeySigningKey:
		return &x.ZoneKey
	case *ZoneSigningKey:
		return &x.ZoneKey
	}
	return nil
}

// Forget deletes a key that nobody needs any more.
func Forget(c *resource.Change, k *SignedKey) error { return c.Following(unsigning).Delete(k.Row) }

// Records gives the records at the name of the zone that are its keys: DNSKEY, CDS and CDNSKEY, and NSEC3PARAM.
func (s *Signed) Records(stage Stage, ttl uint32) (all []wire.RR) {
	for _, k := range s.Keys {
		if !slices.Contains(stage.Gone, k) {
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

// sameTTL gives the records of each RRset the shortest TTL of them (RFC 2181 section 5.2).
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
