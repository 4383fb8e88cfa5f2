package identity

import (
	"net/http"
	"sync"
	"time"

	"portolan/internal/problem"
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
	// tries are failures in a row, by what they have in common. Guarded by mu.
	tries map[string]*tries
}

// tries are failures in a row.
type tries struct {
	failures int
	// until is when the next try is let in; last is when the last one failed.
	until, last time.Time
}

// patience is how many failures are let through, and how long the wait after them may become. It doubles
// from a second with each further failure.
type patience struct {
	failures int
	longest  time.Duration
}

var (
	pairPatience    = patience{5, 15 * time.Minute}
	addressPatience = patience{20, 15 * time.Minute}
	// accountPatience is short: nobody should be able to keep a user out for long.
	accountPatience = patience{100, 5 * time.Second}
)

// Bounds of what is kept: how many, and for how long after the last failure.
const (
	maxTries    = 50_000
	forgetAfter = time.Hour
)

func newGuesses(now func() time.Time) *guesses { return &guesses{now: now, tries: map[string]*tries{}} }

// keys are what a try has in common with others, and the patience with each.
func keys(name, remote string) map[string]patience {
	return map[string]patience{"pair " + remote + " " + name: pairPatience, "address " + remote: addressPatience, "account " + name: accountPatience}
}

// may gives 429 where the next try has to wait.
func (g *guesses) may(name, remote string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	wait := time.Duration(0)
	for key := range keys(name, remote) {
		if t := g.tries[key]; t != nil {
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

// failed counts a failure.
func (g *guesses) failed(name, remote string) {
	g.mu.Lock()
	now := g.now()
	g.sweep(now)
	told := 0
	for key, p := range keys(name, remote) {
		t := g.tries[key]
		if t == nil || now.Sub(t.last) > forgetAfter {
			t = &tries{}
			g.tries[key] = t
		}
		t.failures++
		t.last = now
		if over := t.failures - p.failures; over >= 0 {
			t.until = now.Add(min(p.longest, time.Second<<min(over, 20)))
			if over == 0 {
				told = max(told, t.failures)
			}
		}
	}
	g.mu.Unlock()
	if told > 0 && g.guessing != nil {
		g.guessing(name, remote, told)
	}
}

// succeeded forgets the failures of an account from an address.
func (g *guesses) succeeded(name, remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tries, "pair "+remote+" "+name)
	delete(g.tries, "account "+name)
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
