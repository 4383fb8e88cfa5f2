package dnssec

import (
	"time"

	"portolan/internal/engine/schema"
)

// The states of a key (RFC 7583 section 3.1).
const (
	// KeyGenerated is a key that is made, and not deployed yet.
	KeyGenerated = "GENERATED"
	// KeyPublished is a key whose DNSKEY record is deployed, and that not everybody may know yet.
	KeyPublished = "PUBLISHED"
	// KeyReady is a key that everybody knows, and that waits for its turn.
	KeyReady = "READY"
	// KeyActive is the key that the zone is signed by.
	KeyActive = "ACTIVE"
	// KeyRetired is a key that another one has taken over from, and that somebody may still need.
	KeyRetired = "RETIRED"
)

// What comes next for a key.
const (
	// KeyFollowed: another key is made, to follow it.
	KeyFollowed = "FOLLOWED"
	// KeyEnds: its time ends, and none follows by itself: it goes on.
	KeyEnds = "ENDS"
	// KeyTakesOver: it becomes the active one.
	KeyTakesOver = "TAKES_OVER"
	// KeyReplaced: the one that follows becomes the active one.
	KeyReplaced = "REPLACED"
	// KeyRemoved: it is deleted.
	KeyRemoved = "REMOVED"
)

// KeySchedule is how a key is at a time, and what comes next for it.
type KeySchedule struct {
	*SignedKey
	// State is one of the states above; Next one of what comes next.
	State, Next string
	// At is when that will be; the zero time where it cannot be said yet: WaitsFor is a sentence that says why then.
	At       time.Time
	WaitsFor string
}

// Schedule tells how the keys are at a time, by when what was seen of them, and what comes next. parent says that the zone above is ours.
func (s *Signed) Schedule(seen map[uint16]Seen, now time.Time, parent bool) (all []KeySchedule) {
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
					one.At, one.WaitsFor = time.Time{}, "the key before it has to go first"
				}
			default:
				one.Next, one.At = KeyEnds, k.KeyExpirationDateTime
			}
			all = append(all, one)
		}
	}
	return all
}

// state gives the state of a key that has a place among those of its kind, of which the one at signing is active.
func (k *SignedKey) state(i, signing int, seen map[uint16]Seen, now time.Time) string {
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

// turn gives when a key takes over, if that can be said; else what it waits for.
func (s *Signed) nextTakeover(kind keyKind, keys []*SignedKey, i int, seen map[uint16]Seen, now time.Time, parent bool) (at time.Time,
	waitsFor string,
) {
	at, known := s.takeoverTime(kind, keys, i, seen, parent)
	k := keys[i]
	since := seen[k.Tag()].Key
	switch {
	case since.IsZero():
		return time.Time{}, "its DNSKEY record has to be deployed"
	case known:
		return at, ""
	case !isPropagated(k, seen, now):
		return time.Time{}, "everybody has to know its DNSKEY record, which takes until " + since.Add(k.propagation()).UTC().Format(time.RFC3339)
	case k.Withdrawn:
		return time.Time{}, "its DS record is kept out of the zone above: dsWithdrawn is true"
	case parent:
		return time.Time{}, "its DS record has to be deployed in the zone above"
	}
	return time.Time{}, "its DS record has to be put into the zone above, and dsConfirmed set to true"
}
