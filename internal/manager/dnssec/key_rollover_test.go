package dnssec

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
)

// simulated is a zone whose keys roll over in simulated time.
type simulated struct {
	*Signed
	now  time.Time
	next int64
	seen map[uint16]CachedSince
	// parent is true if the manager also serves the parent zone. keyTTL is the TTL of DNSKEY records, dataTTL the longest TTL of the zone,
	// both in seconds.
	parent          bool
	keyTTL, dataTTL uint32
	// parentDS contains the tags of the DS records that users have added to the parent zone.
	parentDS []uint16
	// states contains the deployed data that resolvers may have cached, oldest first.
	states []deployedState
}

// deployedState contains the key tags in the data deployed since a time.
type deployedState struct {
	from           time.Time
	keys, ds       []uint16
	keysBy, dataBy []uint16
}

// addKey creates a key of a kind.
func (s *simulated) addKey(kind keyKind) {
	o, k := kind.newKey()
	flags := kind.flags
	s.next++
	sum := sha256.Sum256(fmt.Append(nil, s.next))
	*k = ZoneKey{Flags: &flags, Algorithm: kind.algorithm, PublicKey: base64.StdEncoding.EncodeToString(sum[:]), KeyStartDateTime: s.now,
		KeyExpirationDateTime: s.now.Add(schema.LengthOf(kind.validity))}
	s.Keys = append(s.Keys, &SignedKey{ZoneKey: k, Object: o, Row: &store.Resource{ID: s.next}, SignsKeys: kind.flags&wire.SEP != 0,
		Record: &wire.DNSKEY{Hdr: wire.RR_Header{Name: "x.", Rrtype: wire.TypeDNSKEY, Class: wire.ClassINET, Ttl: s.keyTTL}, Flags: uint16(flags),
			Protocol: 3, Algorithm: wire.ECDSAP256SHA256, PublicKey: k.PublicKey}}) //nolint:gosec // 256, 257
}

func tagsOf(keys []*SignedKey, holds func(*SignedKey) bool) (tags []uint16) {
	for _, k := range keys {
		if holds(k) {
			tags = append(tags, k.Tag())
		}
	}
	slices.Sort(tags)
	return tags
}

// step runs the manager once: it deploys, records the deployed data, and creates keys.
func (s *simulated) step(deploys bool) {
	stage := s.Stage(s.seen, s.now, s.parent)
	if deploys {
		is := deployedState{from: s.now}
		is.keys = tagsOf(s.Keys, func(k *SignedKey) bool { return !slices.Contains(stage.Obsolete, k) })
		is.ds = tagsOf(stage.DS, func(*SignedKey) bool { return true })
		if !s.parent {
			is.ds = slices.Clone(s.parentDS)
		}
		is.keysBy = tagsOf(stage.Signing, func(k *SignedKey) bool { return k.SignsKeys })
		is.dataBy = tagsOf(stage.Signing, func(k *SignedKey) bool { return !k.SignsKeys })
		s.states = append(s.states, is)
		for _, k := range s.Keys {
			one := s.seen[k.Tag()]
			if one.Key.IsZero() {
				one.Key = s.now
			}
			if slices.Contains(is.ds, k.Tag()) && one.Parent.IsZero() {
				one.Parent = s.now
			}
			if signs := slices.Contains(is.keysBy, k.Tag()) || slices.Contains(is.dataBy, k.Tag()); signs && one.Signing.IsZero() {
				one.Signing = s.now
			}
			s.seen[k.Tag()] = one
		}
		s.Keys = slices.DeleteFunc(s.Keys, func(k *SignedKey) bool { return slices.Contains(stage.Obsolete, k) })
	}
	for _, k := range stage.Ending {
		for _, kind := range s.Policy.kinds() {
			if kind.flags&wire.SEP != 0 == k.SignsKeys {
				k.KeyExpirationDateTime = laterTime(k.KeyExpirationDateTime, s.now.Add(schema.LengthOf(kind.overlap)))
				s.addKey(kind)
			}
		}
	}
}

// check fails if a resolver could reject a response as forged. A resolver may have cached the DS records, the keys and the signatures at
// different times, each up to its TTL ago.
func (s *simulated) check(t *testing.T) {
	t.Helper()
	within := func(ttl uint32) []deployedState {
		cached := s.states
		for len(cached) > 1 && !cached[1].from.After(s.now.Add(-time.Duration(ttl)*time.Second)) {
			cached = cached[1:]
		}
		return cached
	}
	dsTTL := uint32(dns.DefaultTTL)
	if !s.parent {
		dsTTL = 86400
	}
	for _, keys := range within(s.keyTTL) {
		for _, ds := range within(dsTTL) {
			// A DS record of the parent zone must match a published key that signed the keys.
			if len(ds.ds) > 0 && !slices.ContainsFunc(ds.ds, func(tag uint16) bool {
				return slices.Contains(keys.keys, tag) && slices.Contains(keys.keysBy, tag)
			}) {
				t.Fatalf("%s: the DS records %v of %s do not lead to the keys %v, signed by %v, of %s", s.now, ds.ds, ds.from, keys.keys, keys.keysBy,
					keys.from)
			}
		}
		for _, data := range within(s.dataTTL) {
			if !slices.ContainsFunc(data.dataBy, func(tag uint16) bool { return slices.Contains(keys.keys, tag) }) {
				t.Fatalf("%s: what %v signed at %s has no key in %v of %s", s.now, data.dataBy, data.from, keys.keys, keys.from)
			}
		}
	}
	s.states = within(max(s.dataTTL, dsTTL, s.keyTTL))
}

// checkSchedule fails if the reported schedule does not match the actions.
func (s *simulated) checkSchedule(t *testing.T) {
	t.Helper()
	stage := s.Stage(s.seen, s.now, s.parent)
	active := map[bool]int{}
	for _, k := range s.Schedule(s.seen, s.now, s.parent) {
		signs := slices.Contains(stage.Signing, k.SignedKey)
		if k.State == KeyActive || k.State == KeyGenerated && signs {
			active[k.SignsKeys]++
		}
		isDue := !k.At.IsZero() && !s.now.Before(k.At)
		if k.State == KeyActive && !signs || (k.Next == KeyTakesOver || k.Next == KeyReplaced) && isDue || k.At.IsZero() != (k.WaitsFor != "") ||
			(k.Next == KeyRemoved && isDue) != slices.Contains(stage.Obsolete, k.SignedKey) ||
			k.State != KeyGenerated && (k.Next == KeyFollowed && isDue) != slices.Contains(stage.Ending, k.SignedKey) {
			t.Fatalf("%s: key %d is %s, next %s at %s (%s), and signs: %v; performed are %+v", s.now, k.Tag(), k.State, k.Next, k.At,
				k.WaitsFor, signs, stage)
		}
	}
	if ofKeys := s.keysOfKind(true); active[true] == 0 || active[false] == 0 || active[false] > 2 || active[true] > len(ofKeys) {
		t.Fatalf("%s: active are %v", s.now, active)
	}
}

// regenerate replaces the key of a kind immediately, if there is exactly one.
func (s *simulated) regenerate(kind keyKind) {
	keys := s.keysOfKind(kind.flags&wire.SEP != 0)
	if len(keys) != 1 {
		return
	}
	keys[0].KeyExpirationDateTime = s.now
	s.addKey(kind)
}

// TestRollovers simulates years with random policies and outages of the manager. Every resolver must always be able to
// validate the zone, and the keys must roll over.
func TestRollovers(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12)) //nolint:gosec // a test
	days := func(n int) string { return fmt.Sprintf("P%dD", n) }
	rounds := 15
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		kinds := func() (validity, overlap, method, signing string) {
			v := 4 + random.IntN(60)
			validity, overlap, method = days(v), days(1+random.IntN(v-2)), "DOUBLE_SIGNING"
			if random.IntN(2) == 0 {
				method, signing = "PRE_PUBLISH", days(1+random.IntN(v-2))
			}
			return validity, overlap, method, signing
		}
		p := &DNSSECSigningPolicy{ZoneSigningKeyAlgorithm: "ECDSAP256SHA256", KeySigningKeyAlgorithm: "ECDSAP256SHA256"}
		p.ZoneSigningKeyValidityPeriod, p.ZoneSigningKeyOverlapPeriod, p.ZoneSigningKeyRolloverMethod, p.ZoneSigningKeySigningPeriod = kinds()
		p.KeySigningKeyValidityPeriod, p.KeySigningKeyOverlapPeriod, p.KeySigningKeyRolloverMethod, p.KeySigningKeySigningPeriod = kinds()
		s := &simulated{Signed: &Signed{Policy: p, Auto: true}, now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), seen: map[uint16]CachedSince{},
			parent: round%3 != 0, keyTTL: []uint32{300, 3600, 86400}[random.IntN(3)], dataTTL: []uint32{300, 3600, 86400}[random.IntN(3)]}
		for _, kind := range p.kinds() {
			s.addKey(kind)
		}
		maxKeys := 0
		for end := s.now.AddDate(2, 0, 0); s.now.Before(end); {
			s.step(random.IntN(5) != 0)
			s.check(t)
			s.checkSchedule(t)
			if !s.parent {
				for _, k := range s.Stage(s.seen, s.now, false).Waiting {
					if random.IntN(50) == 0 { // a user confirms the DS record
						k.Confirmed, s.parentDS = s.now, []uint16{k.Tag()}
						if random.IntN(2) == 0 { // or keeps the previous one for a while
							s.parentDS = append(s.parentDS, s.keysOfKind(true)[0].Tag())
						}
						s.states = append(s.states, s.states[len(s.states)-1])
						s.states[len(s.states)-1].from, s.states[len(s.states)-1].ds = s.now, slices.Clone(s.parentDS)
					}
				}
			}
			if random.IntN(1500) == 0 {
				s.regenerate(p.kinds()[random.IntN(2)])
			}
			maxKeys = max(maxKeys, len(s.Keys))
			step := time.Duration(1+random.IntN(40)) * time.Minute
			if random.IntN(300) == 0 { // the manager is unavailable
				step = time.Duration(random.IntN(40*24)) * time.Hour
			}
			s.now = s.now.Add(step)
		}
		if s.next < 2*365/64*2 || maxKeys > 4 {
			t.Errorf("round %d: %d keys were made in two years, up to %d at a time, by %+v", round, s.next, maxKeys, p)
		}
	}
}

// TestExpiredKeysRemainActive checks that, without automatic regeneration, a key remains active after its expiration, and is reported.
func TestExpiredKeysRemainActive(t *testing.T) {
	p := &DNSSECSigningPolicy{ZoneSigningKeyAlgorithm: "ECDSAP256SHA256", KeySigningKeyAlgorithm: "ECDSAP256SHA256",
		ZoneSigningKeyValidityPeriod: "P10D", ZoneSigningKeyOverlapPeriod: "P2D", ZoneSigningKeyRolloverMethod: "DOUBLE_SIGNING",
		KeySigningKeyValidityPeriod: "P10D", KeySigningKeyOverlapPeriod: "P2D", KeySigningKeyRolloverMethod: "DOUBLE_SIGNING"}
	s := &simulated{Signed: &Signed{Policy: p}, now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), seen: map[uint16]CachedSince{}, parent: true,
		keyTTL: 3600, dataTTL: 3600}
	for _, kind := range p.kinds() {
		s.addKey(kind)
	}
	for range 20 {
		s.step(true)
		s.check(t)
		s.now = s.now.Add(24 * time.Hour)
	}
	if stage := s.Stage(s.seen, s.now, true); len(stage.Expired) != 2 || len(stage.Signing) != 2 || len(stage.Obsolete) != 0 ||
		len(s.Keys) != 2 {
		t.Errorf("after its time: %+v", stage)
	}
}
