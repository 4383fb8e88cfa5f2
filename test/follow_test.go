package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	api "portolan/client"
)

// follower follows the change feed. It switches between managers after a short time and continues at its position.
type follower struct {
	t        *testing.T
	managers []*manager
	token    string

	mu sync.Mutex
	// transactions are the received transactions in order. changes are the numbers of changes of each. Guarded by mu.
	transactions []int64
	changes      map[int64]int
	turns        int
}

// followers starts n followers and a webhook. ended creates a last change, waits until all have received it, stops them, and compares what
// they received.
func followers(t *testing.T, n int, token string, managers ...*manager) (ended func(through *manager)) {
	ctx, end := context.WithCancel(t.Context())
	all := make([]*follower, n)
	var running sync.WaitGroup
	for i := range all {
		all[i] = &follower{t: t, managers: managers, token: token, changes: map[int64]int{}}
		running.Go(func() { all[i].follow(ctx, i) })
	}
	hook := receive(t, managers[0], token)
	return func(through *manager) {
		t.Helper()
		defer running.Wait()
		defer end()
		through.id("/configurations", `{"name":"the last change"}`)
		want := through.history()
		for i, f := range all {
			until(func() bool { return f.count() >= len(want) })
			f.compare(fmt.Sprint("follower ", i), want, all[0])
		}
		hook.compare(all[0].transactions)
		for range 200 { // a sample of the transactions
			id := want[rand.N(len(want))]
			if n := through.operations(id); n != all[0].changes[id] {
				t.Errorf("transaction %d has arrived with %d changes of %d", id, all[0].changes[id], n)
			}
		}
	}
}

func (f *follower) follow(ctx context.Context, n int) {
	q := api.ChangesQuery{After: "start"}
	for ; ctx.Err() == nil; n++ {
		turn, end := context.WithTimeout(ctx, time.Duration(200+rand.N(3000))*time.Millisecond)
		c := &api.Client{Base: "http://" + f.managers[n%len(f.managers)].api, Token: f.token}
		err := c.Changes(turn, q, func(t api.FeedTransaction) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if _, twice := f.changes[t.ID]; twice {
				f.t.Errorf("transaction %d came twice", t.ID)
			}
			f.transactions, f.changes[t.ID] = append(f.transactions, t.ID), len(t.Changes)
			q.After = t.Position
			return nil
		})
		if turn.Err() == nil {
			f.t.Errorf("the changes end with %v", err)
		}
		end()
		f.mu.Lock()
		f.turns++
		f.mu.Unlock()
	}
}

func (f *follower) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.transactions)
}

// compare compares the received transactions with the history and with another follower's order.
func (f *follower) compare(who string, want []int64, other *follower) {
	f.t.Helper()
	f.mu.Lock()
	got := slices.Clone(f.transactions)
	f.t.Logf("%s has received %d transactions in %d turns", who, len(got), f.turns)
	f.mu.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		f.t.Errorf("%s has received %d transactions of %d", who, len(got), len(want))
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if !slices.Equal(got, other.transactions[:min(len(got), len(other.transactions))]) {
		f.t.Errorf("%s has received them in another order", who)
	}
}

func (m *manager) client() *api.Client { return &api.Client{Base: "http://" + m.api, Token: m.token} }

// history returns the IDs of all transactions, sorted.
func (m *manager) history() (all []int64) {
	m.t.Helper()
	if err := m.client().All(m.t.Context(), "transactions", api.Query{Fields: "id", OrderBy: "id", Limit: 10_000},
		func(one json.RawMessage) error {
			var row struct{ ID int64 }
			err := json.Unmarshal(one, &row)
			all = append(all, row.ID)
			return err
		}); err != nil {
		m.t.Fatal(err)
	}
	return all
}

// operations returns the number of changes of a transaction.
func (m *manager) operations(transaction int64) int {
	m.t.Helper()
	p, err := m.client().List(m.t.Context(), fmt.Sprintf("transactions/%d/operations", transaction), api.Query{Limit: 1, Total: true})
	if err != nil || p.TotalCount == nil {
		m.t.Fatal(err)
	}
	return int(*p.TotalCount)
}

// receiver receives the messages of a webhook and rejects some of them at random.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// transactions are the accepted transactions in order. again counts repeated transactions, refused rejected messages. Guarded by mu.
	transactions   []int64
	taken          map[int64]bool
	again, refused int
}

// receive creates a webhook and its receiver.
func receive(t *testing.T, m *manager, token string) *receiver {
	t.Helper()
	r := &receiver{t: t, taken: map[int64]bool{}}
	secret := api.NewWebhookSecret()
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		body, err := io.ReadAll(rq.Body)
		if err != nil {
			return // the manager was killed
		}
		if err := api.VerifyWebhook(secret, rq.Header, body, time.Now()); err != nil {
			t.Errorf("a message: %v", err)
		}
		var one api.WebhookMessage
		if err := json.Unmarshal(body, &one); err != nil {
			t.Errorf("a message: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if rand.N(50) == 0 {
			r.refused++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for _, x := range one.Transactions {
			if r.taken[x.ID] {
				r.again++
				continue
			}
			r.transactions, r.taken[x.ID] = append(r.transactions, x.ID), true
		}
	}))
	t.Cleanup(r.Close)
	c := &api.Client{Base: "http://" + m.api, Token: token}
	if _, err := c.CreateWebhook(t.Context(), api.Webhook{Name: "w", URL: r.URL, Secret: secret, Enabled: true}); err != nil {
		t.Fatal(err)
	}
	return r
}

// compare compares the accepted transactions with those of a follower. From the first one on they must be equal.
func (r *receiver) compare(received []int64) {
	r.t.Helper()
	last := received[len(received)-1]
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // another manager may have to take over
		r.mu.Lock()
		done := r.taken[last]
		r.mu.Unlock()
		if done || time.Now().After(deadline) {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.transactions) < 3 {
		r.t.Fatalf("the webhook was sent %v", r.transactions)
	}
	from := slices.Index(received, r.transactions[0])
	if from < 0 || !slices.Equal(received[from:], r.transactions) {
		r.t.Errorf("the webhook was sent %d transactions, of %d", len(r.transactions), len(received)-from)
	}
	r.t.Logf("the webhook was sent %d transactions of %d, %d of them again; %d messages were refused", len(r.transactions), len(received),
		r.again, r.refused)
}
