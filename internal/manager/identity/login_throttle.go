package identity

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
)

// Failed sign-ins delay the next ones. Failures are counted per account and address (delayed early), per address and per account (delayed
// later). The counters are in memory: they are per manager and start at zero after a restart.

// loginThrottle counts failed sign-ins.
type loginThrottle struct {
	now func() time.Time
	// guessing is called once when a delay begins; nil without an observer.
	guessing func(name, remote string, failures int)

	mu sync.Mutex
	// pair is the policy per account and address that the failures were counted by. Guarded by mu.
	pair throttlePolicy
	// counters are the failure counters by key (counterKeys). Guarded by mu.
	counters map[[16]byte]*failureCounter
	// known are the addresses with a successful sign-in. Guarded by mu.
	known map[[16]byte]bool
}

// failureCounter counts consecutive failures.
type failureCounter struct {
	failures int
	// until is when the next attempt is allowed. since is when the first failure happened, last when the last one did.
	until, since, last time.Time
}

// throttlePolicy sets how many failures are allowed and how long later attempts are delayed.
type throttlePolicy struct {
	failures int
	// period is the period of time for counting failures; 0 means until forgetAfter has passed without one.
	period time.Duration
	// first is the delay after the last allowed failure. It doubles with each further failure, up to max.
	first, max time.Duration
}

var (
	// pairPolicy is the default policy per account and address. LoginPolicySettings can replace it.
	pairPolicy    = throttlePolicy{5, 0, time.Second, 15 * time.Minute}
	addressPolicy = throttlePolicy{20, 0, time.Second, 15 * time.Minute}
	// accountPolicy has a short maximum, so that an attacker cannot lock a user out for long.
	accountPolicy = throttlePolicy{100, 0, time.Second, 5 * time.Second}
)

// hasExpired reports whether the counted failures no longer count.
func (p throttlePolicy) hasExpired(t *failureCounter, now time.Time) bool {
	return p.period > 0 && now.Sub(t.since) > p.period || p.period == 0 && now.Sub(t.last) > forgetAfter
}

// delay returns how long the next attempt is delayed after a number of failures.
func (p throttlePolicy) delay(failures int) time.Duration {
	over := failures - p.failures
	if over < 0 {
		return 0
	}
	return min(p.max, p.first<<min(over, 10))
}

// failuresForgiven is the number of failures of an address that a successful sign-in from there cancels.
const failuresForgiven = 5

// Bounds of the counters: their number, and how long they are kept after the last failure.
const (
	maxCounters = 50_000
	forgetAfter = time.Hour
)

func newLoginThrottle(now func() time.Time) *loginThrottle {
	return &loginThrottle{now: now, pair: pairPolicy, counters: map[[16]byte]*failureCounter{}, known: map[[16]byte]bool{}}
}

// counterKeys returns the hashed keys of the counters of an attempt, with the policy of each. An IPv6 /64 counts as one address, because
// its owner controls all of it.
func counterKeys(name, remote string, pair throttlePolicy) map[[16]byte]throttlePolicy {
	name = strings.ToLower(name) // some authenticators ignore case
	return map[[16]byte]throttlePolicy{counterKey("pair", networkOf(remote), name): pair,
		counterKey("address", networkOf(remote)): addressPolicy, counterKey("account", name): accountPolicy}
}

func counterKey(parts ...string) [16]byte {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return [16]byte(sum[:16])
}

// networkOf returns the address. For IPv6 it returns the /64, because the client can choose any address in it.
func networkOf(remote string) string {
	a, err := netip.ParseAddr(remote)
	if err != nil || a.Unmap().Is4() {
		return remote
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil { // 64 bits are always valid
		return remote
	}
	return p.String()
}

// check returns a 429 problem if the next attempt is delayed. An attempt with a verified password is only delayed by failures of its own
// account and address, so that other clients cannot lock it out. pair is the policy per account and address; a changed policy resets the
// counters.
func (g *loginThrottle) check(name, remote string, pair throttlePolicy, right bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pair != g.pair {
		g.pair = pair
		clear(g.counters)
	}
	now := g.now()
	wait := time.Duration(0)
	own := counterKey("pair", networkOf(remote), strings.ToLower(name))
	for key := range counterKeys(name, remote, pair) {
		if t := g.counters[key]; t != nil && (key == own || !right) {
			wait = max(wait, t.until.Sub(now))
		}
	}
	if wait <= 0 {
		return nil
	}
	return tooManyRequests(wait, "too many failed sign-ins")
}

// tooManyRequests returns the problem for a delayed request.
func tooManyRequests(wait time.Duration, why string) error {
	p := problem.New(http.StatusTooManyRequests, "TooManyRequests", "%s: try again in %s", why, max(wait, time.Second).Round(time.Second))
	p.RetryAfter = max(wait, time.Second)
	return p
}

// countFailure counts a failure. pair is the policy per account and address.
func (g *loginThrottle) countFailure(name, remote string, pair throttlePolicy) {
	g.mu.Lock()
	now := g.now()
	g.sweep(now)
	most := 0
	for key, p := range counterKeys(name, remote, pair) {
		t := g.counters[key]
		if t == nil || p.hasExpired(t, now) {
			begun := &failureCounter{since: now}
			if t != nil { // a delay that has begun stays
				begun.until = t.until
			}
			t = begun
			g.counters[key] = t
		}
		t.failures++
		t.last = now
		if wait := p.delay(t.failures); wait > 0 {
			t.until = now.Add(wait)
			if t.failures == p.failures {
				most = max(most, t.failures)
			}
		}
	}
	g.mu.Unlock()
	if most > 0 && g.guessing != nil {
		g.guessing(name, remote, most)
	}
}

// succeeded resets the failures of an account, and of the account from this address.
func (g *loginThrottle) succeeded(name, remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxCounters {
		clear(g.known)
	}
	g.known[counterKey("address", networkOf(remote))] = true
	name = strings.ToLower(name)
	delete(g.counters, counterKey("pair", networkOf(remote), name))
	delete(g.counters, counterKey("account", name))
	if t := g.counters[counterKey("address", networkOf(remote))]; t != nil { // not all attempts from there are guesses
		t.failures = max(0, t.failures-failuresForgiven)
	}
}

// isKnown reports whether a sign-in from an address has succeeded before.
func (g *loginThrottle) isKnown(remote string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[counterKey("address", networkOf(remote))]
}

// sweep deletes old counters if there are too many, and all counters if that is not enough. g.mu must be held.
func (g *loginThrottle) sweep(now time.Time) {
	if len(g.counters) < maxCounters {
		return
	}
	for key, t := range g.counters {
		if now.Sub(t.last) > forgetAfter || t.failures == 1 {
			delete(g.counters, key)
		}
	}
	if len(g.counters) >= maxCounters {
		clear(g.counters)
	}
}

// maxShown is the length of a client's text that an event shows, in bytes.
const maxShown = 64

// GuessingEvent adds the event for too many failed sign-ins, with the attempted name and the address. It returns the name as it may be
// logged.
func (s *Service) GuessingEvent(tx *store.Tx, name, remote string, failures int) (shown string, err error) {
	users, err := tx.ByName("users", 0, name)
	if err != nil {
		return "", err
	}
	source := int64(0)
	if len(users) > 0 {
		source = users[0].ID
	}
	name = s.shownName(name, source != 0)
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return name, event.Add(tx, event.Event{EventType: "WARNING", Category: "APPLICATION", SourceName: remote,
		Message: fmt.Sprintf("%d consecutive failed sign-ins as %q from %s: further sign-ins are delayed", failures, name, remote)}, source)
}
