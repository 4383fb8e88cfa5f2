package dhcp

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Rate contains the limits of messages per second. A message beyond a limit gets no reply, and is counted.
type Rate struct {
	// PerRelay limits the messages of clients without a lease, DISCOVER and SOLICIT, through one relay or on one link; 0 is no limit.
	PerRelay uint32 `json:"perRelay,omitempty"`
	// PerClient limits all messages of a hardware address, or of a DUID; 0 is the default of 20.
	PerClient uint32 `json:"perClient,omitempty"`
}

// defaultPerClient is the limit of messages per second of a client without a configuration. A client that repeats a message through two
// relays, or starts several operating systems, sends less.
const defaultPerClient = 20

// Reasons of the rate limits.
const (
	clientRate = "client-rate"
	relayRate  = "relay-rate"
)

// limiter counts the messages of a second by client and by relay. Its size does not depend on the number of clients: each key has one cell
// in each row, and the smallest of its counts is at least the number of its messages. With 20,000 clients a second a cell is shared by less
// than one other client on average.
type limiter struct {
	seed maphash.Seed

	mu sync.Mutex
	// The following fields are guarded by mu.
	rate Rate
	rows [2][limiterCells]limiterCell
}

type limiterCell struct{ second, count uint32 }

// limiterCells is the number of cells in a row: 1 MiB in total.
const limiterCells = 1 << 16

func newLimiter() *limiter {
	return &limiter{seed: maphash.MakeSeed(), rate: Rate{PerClient: defaultPerClient}}
}

// set changes the limits.
func (l *limiter) set(rate Rate) {
	if rate.PerClient == 0 {
		rate.PerClient = defaultPerClient
	}
	l.mu.Lock()
	l.rate = rate
	l.mu.Unlock()
}

// refuses returns the reason why a message is beyond a limit; "" if it is not. client identifies the client, and relay and link its way
// here. arrives is true for a message of a client without a lease.
func (l *limiter) refuses(client []byte, relay netip.Addr, link int, arrives bool, now time.Time) (reason string) {
	second := uint32(now.Unix())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count(append([]byte{'c'}, client...), second) > l.rate.PerClient {
		return clientRate
	}
	if !arrives || l.rate.PerRelay == 0 {
		return ""
	}
	key := binary.BigEndian.AppendUint64(append([]byte{'r'}, relay.AsSlice()...), uint64(link))
	if l.count(key, second) > l.rate.PerRelay {
		return relayRate
	}
	return ""
}

// count counts a message and returns an upper bound of the messages of the key in this second. The caller holds mu.
func (l *limiter) count(key []byte, second uint32) uint32 {
	sum := maphash.Bytes(l.seed, key)
	least := ^uint32(0)
	for i := range l.rows {
		c := &l.rows[i][sum%limiterCells]
		sum >>= 32
		if c.second != second {
			*c = limiterCell{second: second}
		}
		c.count++
		least = min(least, c.count)
	}
	return least
}
