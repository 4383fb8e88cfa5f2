package dnssec

import (
	"time"

	"portolan/internal/engine/schema"
)

// States of a key (RFC 7583 section 3.1).
const (
	// KeyGenerated is a key that was created and is not deployed yet.
	KeyGenerated = "GENERATED"
	// KeyPublished is a key whose DNSKEY record is deployed but may not have reached all resolvers.
	KeyPublished = "PUBLISHED"
	// KeyReady is a key whose DNSKEY record has reached all resolvers and that is not active yet.
	KeyReady = "READY"
	// KeyActive is the key that signs the zone.
	KeyActive = "ACTIVE"
	// KeyRetired is a key that was replaced but may still be needed by resolvers.
	KeyRetired = "RETIRED"
)

// Next events of a key.
const (
	// KeyFollowed: a successor is created.
	KeyFollowed = "FOLLOWED"
	// KeyEnds: the key expires. It remains active, because no successor is created automatically.
	KeyEnds = "ENDS"
	// KeyTakesOver: the key becomes active.
	KeyTakesOver = "TAKES_OVER"
	// KeyReplaced: the successor becomes active.
	KeyReplaced = "REPLACED"
	// KeyRemoved: the key is deleted.
	KeyRemoved = "REMOVED"
)

// KeySchedule is the state of a key at a time, and its next event.
type KeySchedule struct {
	*SignedKey
	// State is a state of a key, Next its next event.
	State, Next string
	// At is the time of the next event. It is zero if the time is unknown; WaitsFor is then a sentence with the reason.
	At       time.Time
	WaitsFor string
}

// Schedule returns the state and the next event of each key at a time, computed from the times in seen. parent is true if this manager also
// serves the parent zone.
func (s *Signed) Schedule(seen map[uint16]CachedSince, now time.Time, parent bool) (all []KeySchedule) {
	for _, kind := range s.Policy.kinds() {
		keys := s.keysOfKind(kind.prefix == "keySigningKey")
		signing := s.signingIndex(kind, keys, seen, now, parent)
		for i, k := range keys {
			one := KeySchedule{SignedKey: k, State: k.state(i, signing, seen, now)}
			switch last := i == len(keys)-1; {
			case i < signing:
				one.Next = KeyRemoved
				if since := seen[keys[i+1].Tag()].Signing; since.IsZero() {
					one.WaitsFor = "all servers of the zone have to sign by the key that took over"
				} else {
					one.At = k.removalTime(since)
				}
			case i > signing || one.State == KeyGenerated:
				one.Next = KeyTakesOver
				one.At, one.WaitsFor = s.nextTakeover(kind, keys, i, seen, now, parent)
			case !last:
				one.Next = KeyReplaced
				one.At, one.WaitsFor = s.nextTakeover(kind, keys, i+1, seen, now, parent)
			case s.Auto:
				one.Next, one.At = KeyFollowed, k.KeyExpirationDateTime.Add(-schema.LengthOf(kind.overlap))
				if len(keys) > 1 && !now.Before(one.At) {
					one.At, one.WaitsFor = time.Time{}, "the previous key must be removed first"
				}
			default:
				one.Next, one.At = KeyEnds, k.KeyExpirationDateTime
			}
			all = append(all, one)
		}
	}
	return all
}

// state returns the state of the key at index i among the keys of its kind. signing is the index of the active key.
func (k *SignedKey) state(i, signing int, seen map[uint16]CachedSince, now time.Time) string {
	switch {
	case i < signing:
		return KeyRetired
	case seen[k.Tag()].Key.IsZero():
		return KeyGenerated
	case i == signing:
		return KeyActive
	case isPropagated(k, seen, now):
		return KeyReady
	}
	return KeyPublished
}

// nextTakeover returns the time at which a key becomes active, or the reason why the time is unknown.
func (s *Signed) nextTakeover(kind keyKind, keys []*SignedKey, i int, seen map[uint16]CachedSince, now time.Time, parent bool) (
	at time.Time, waitsFor string,
) {
	at, known := s.takeoverTime(kind, keys, i, seen, parent)
	k := keys[i]
	since := seen[k.Tag()].Key
	switch {
	case since.IsZero():
		return time.Time{}, "its DNSKEY record must be deployed"
	case known:
		return at, ""
	case !isPropagated(k, seen, now):
		return time.Time{}, "resolvers may lack its DNSKEY record until " + since.Add(k.propagation()).UTC().Format(time.RFC3339)
	case k.Withdrawn:
		return time.Time{}, "its DS record is kept out of the parent zone: dsWithdrawn is true"
	case parent:
		return time.Time{}, "its DS record must be deployed in the parent zone"
	}
	return time.Time{}, "its DS record must be added to the parent zone, and dsConfirmed set to true"
}
