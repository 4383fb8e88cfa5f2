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

// Whoever guesses passwords is made to wait: an account from one address soon, an address that tries many
// accounts, and an account that many addresses try, later. It is kept in memory: a manager that is started
// again, or another one, begins anew.

// guesses counts what was guessed wrong.
type guesses struct {
	now func() time.Time
	// guessing is told once when somebody begins to be made to wait; nil where nobody wants to know.
	guessing func(name, remote string, failures int)

	mu sync.Mutex
	// pair is the patience with one account from one address that the failures were counted by. Guarded by mu.
	pair patience
	// tries are failures in a row, by what they have in common. Guarded by mu.
	tries map[[16]byte]*tries
	// friends are addresses that somebody has signed in from. Guarded by mu.
	friends map[[16]byte]bool
}

// tries are failures in a row.
type tries struct {
	failures int
	// until is when the next try is let in; since is when the first one failed, last when the last one did.
	until, since, last time.Time
}

// patience is how many failures are let through.
type patience struct {
	failures int
	// within is the time in which they are counted; 0 means until none came for forgetAfter.
	within time.Duration
	// first is the wait after them, which doubles with each further failure, up to longest.
	first, longest time.Duration
}

var (
	// pairPatience is with one account from one address; the settings may have another one (LoginPolicySettings).
	pairPatience    = patience{5, 0, time.Second, 15 * time.Minute}
	addressPatience = patience{20, 0, time.Second, 15 * time.Minute}
	// accountPatience is short: nobody should be able to keep a user out for long.
	accountPatience = patience{100, 0, time.Second, 5 * time.Second}
)

// over reports whether failures that were counted count no more.
func (p patience) over(t *tries, now time.Time) bool {
	return p.within > 0 && now.Sub(t.since) > p.within || p.within == 0 && now.Sub(t.last) > forgetAfter
}

// wait is how long the next try has to wait after so many failures.
func (p patience) wait(failures int) time.Duration {
	over := failures - p.failures
	if over < 0 {
		return 0
	}
	return min(p.longest, p.first<<min(over, 10))
}

// forgiven is how many failures of an address a right sign-in from there makes up for.
const forgiven = 5

// Bounds of what is kept: how many, and for how long after the last failure.
const (
	maxTries    = 50_000
	forgetAfter = time.Hour
)

func newGuesses(now func() time.Time) *guesses {
	return &guesses{now: now, pair: pairPatience, tries: map[[16]byte]*tries{}, friends: map[[16]byte]bool{}}
}

// keys are what a try has in common with others, hashed, and the patience with each. Of IPv6 a whole /64 is one
// address: whoever has one has all of them.
func keys(name, remote string, pair patience) map[[16]byte]patience {
	name = strings.ToLower(name) // some who are asked take any case for the same
	return map[[16]byte]patience{keyOf("pair", site(remote), name): pair, keyOf("address", site(remote)): addressPatience,
		keyOf("account", name): accountPatience}
}

func keyOf(parts ...string) [16]byte {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return [16]byte(sum[:16])
}

// site is an address without what its owner can choose.
func site(remote string) string {
	a, err := netip.ParseAddr(remote)
	if err != nil || a.Unmap().Is4() {
		return remote
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil { // which 64 bits always are
		return remote
	}
	return p.String()
}

// may gives 429 where the next try has to wait. Whose password is right for sure waits for the failures of its own account and address
// alone: nobody else may keep it out. pair is the patience with one account from one address: another one than before begins anew.
func (g *guesses) may(name, remote string, pair patience, right bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pair != g.pair {
		g.pair = pair
		clear(g.tries)
	}
	now := g.now()
	wait := time.Duration(0)
	own := keyOf("pair", site(remote), strings.ToLower(name))
	for key := range keys(name, remote, pair) {
		if t := g.tries[key]; t != nil && (key == own || !right) {
			wait = max(wait, t.until.Sub(now))
		}
	}
	if wait <= 0 {
		return nil
	}
	return tooMany(wait, "too many wrong sign-ins")
}

// tooMany is the answer to who has to wait.
func tooMany(wait time.Duration, why string) error {
	p := problem.New(http.StatusTooManyRequests, "TooManyRequests", "%s: try again in %s", why, max(wait, time.Second).Round(time.Second))
	p.RetryAfter = max(wait, time.Second)
	return p
}

// failed counts a failure; pair is the patience with one account from one address.
func (g *guesses) failed(name, remote string, pair patience) {
	g.mu.Lock()
	now := g.now()
	g.sweep(now)
	most := 0
	for key, p := range keys(name, remote, pair) {
		t := g.tries[key]
		if t == nil || p.over(t, now) {
			begun := &tries{since: now}
			if t != nil { // who had to wait still has to
				begun.until = t.until
			}
			t = begun
			g.tries[key] = t
		}
		t.failures++
		t.last = now
		if wait := p.wait(t.failures); wait > 0 {
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

// succeeded forgets the failures of an account from an address.
func (g *guesses) succeeded(name, remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.friends) >= maxTries {
		clear(g.friends)
	}
	g.friends[keyOf("address", site(remote))] = true
	name = strings.ToLower(name)
	delete(g.tries, keyOf("pair", site(remote), name))
	delete(g.tries, keyOf("account", name))
	if t := g.tries[keyOf("address", site(remote))]; t != nil { // who signs in from there is not only guessing
		t.failures = max(0, t.failures-forgiven)
	}
}

// friend reports whether somebody has signed in from an address.
func (g *guesses) friend(remote string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.friends[keyOf("address", site(remote))]
}

// sweep drops what is old where much is kept, and everything where that does not help. g.mu is held.
func (g *guesses) sweep(now time.Time) {
	if len(g.tries) < maxTries {
		return
	}
	for key, t := range g.tries {
		if now.Sub(t.last) > forgetAfter || t.failures == 1 {
			delete(g.tries, key)
		}
	}
	if len(g.tries) >= maxTries {
		clear(g.tries)
	}
}

// maxShown is how much of a text that anybody may send stands in an event, in bytes.
const maxShown = 64

// GuessingEvent adds the event that there were too many wrong sign-ins: the name that was tried, and from where. It gives the name as it
// may be logged.
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
		Message: fmt.Sprintf("%d wrong sign-ins in a row as %q from %s: further ones have to wait", failures, name, remote)}, source)
}
