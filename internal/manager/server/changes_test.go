package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/client"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// errEnough ends a feed.
var errEnough = errors.New("enough")

// feed follows until fn says that it is enough.
func (m *manager) feed(q client.ChangesQuery, token string, fn func(client.FeedTransaction) bool) error {
	ctx, cancel := context.WithTimeout(m.T.Context(), apitest.Patience)
	defer cancel()
	c := &client.Client{Base: m.URL(), Token: token}
	return c.Changes(ctx, q, func(t client.FeedTransaction) error {
		if fn(t) {
			return errEnough
		}
		return nil
	})
}

// TestChangeFeed checks that each follower of the changes receives each transaction once, in order and completely, from any position.
func TestChangeFeed(t *testing.T) {
	m := startManager(t)
	configuration, _, zone, block, network := m.Basics()
	token := m.Token
	const writers, each = 4, 15
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"`+strconv.Itoa(w*100+i)+`"}`)
			}
		})
	}
	type seen struct {
		transactions []int64
		changes      int
		at           string
	}
	var followers [3]seen
	for f := range followers {
		wg.Go(func() {
			named := 0
			if err := m.feed(client.ChangesQuery{After: "start"}, token, func(one client.FeedTransaction) bool {
				s := &followers[f]
				s.transactions, s.at = append(s.transactions, one.ID), one.Position
				s.changes += len(one.Changes)
				for _, c := range one.Changes {
					if c.ResourceType == "IPv4Address" && c.OperationType == "ADD" && c.Collection == "addresses" && c.Transaction == one.ID {
						named++
					}
				}
				return named == writers*each+1 // and the gateway
			}); !errors.Is(err, errEnough) {
				t.Errorf("the feed ends with %v", err)
			}
		})
	}
	wg.Wait()
	history := m.Want(200, "GET", "/api/v2/transactions?fields=id&orderBy=id&limit=1000", "")
	var want []int64
	for i := 0; history.Text(fmt.Sprintf("data.%d.id", i)) != ""; i++ {
		id, err := strconv.ParseInt(history.Text(fmt.Sprintf("data.%d.id", i)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	for _, f := range followers {
		if got := slices.Sorted(slices.Values(f.transactions)); !slices.Equal(got, want) ||
			!slices.Equal(f.transactions, followers[0].transactions) {
			t.Errorf("a follower saw %v, of %v", f.transactions, want)
		}
		if f.changes != followers[0].changes {
			t.Errorf("a follower saw %d changes, another one %d", f.changes, followers[0].changes)
		}
	}
	// Filters, and from where the others ended.
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.200"}]}`)
	inner := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.9.0.0/24"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"renamed"}`)
	for name, c := range map[string]struct {
		q    client.ChangesQuery
		want []string
	}{
		"records":      {client.ChangesQuery{Collections: []string{"resourceRecords"}}, []string{"ADD " + host}},
		"networks":     {client.ChangesQuery{Collections: []string{"networks", "zones"}}, []string{"ADD " + inner, "CHANGE " + network}},
		"below a zone": {client.ChangesQuery{Parent: number(t, zone)}, []string{"ADD " + host}},
		"below a block": {client.ChangesQuery{Parent: number(t, block), Collections: []string{"networks"}},
			[]string{"ADD " + inner, "CHANGE " + network}},
	} {
		c.q.After = followers[0].at
		var got []string
		if err := m.feed(c.q, token, func(one client.FeedTransaction) bool {
			for _, change := range one.Changes {
				got = append(got, change.OperationType+" "+strconv.FormatInt(change.ResourceID, 10))
			}
			return len(got) >= len(c.want)
		}); !errors.Is(err, errEnough) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, c.want)
		}
	}
	for query, want := range map[string]string{"after=nothing": "after:", "after=": "after:", "collection=nothing": "collection:",
		"collection=events,": "collection:", "parent=x": "parent:", "z=1": "z:"} {
		if r := m.Want(400, "GET", "/api/v2/changes?"+query, ""); !strings.HasPrefix(r.Text("message"), want) {
			t.Errorf("?%s: %s", query, r.Body)
		}
	}
	m.Want(410, "GET", "/api/v2/changes?after=ffff.0.5.1", "")
	m.Want(405, "POST", "/api/v2/changes", "{}")
	if r := m.Want(200, "HEAD", "/api/v2/changes", ""); r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD answers %v", r.Header)
	}
	m.Want(204, "OPTIONS", "/api/v2/changes", "")
	// One transaction with more changes than are worded once for all.
	var list []string
	for i := range 700 {
		list = append(list, `{"type":"IPv4Network","range":"10.`+strconv.Itoa(20+i/250)+`.`+strconv.Itoa(i%250)+`.0/24"}`)
	}
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", "["+strings.Join(list, ",")+"]")
	large := client.ChangesQuery{After: followers[0].at, Collections: []string{"networks"}}
	if err := m.feed(large, token, func(one client.FeedTransaction) bool {
		return len(one.Changes) == len(list)
	}); !errors.Is(err, errEnough) {
		t.Errorf("the large transaction: %v", err)
	}
	// Positions that were pruned.
	m.Forget()
	m.Refused(410, "PositionGone", "pruned", "GET", "/api/v2/changes?after="+followers[0].at, "")
	m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/12"}`)
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestChangeFeedEnds checks that a feed ends when its token is revoked, and when the manager stops.
func TestChangeFeedEnds(t *testing.T) {
	m := startManager(t)
	m.REST.Beat = 50 * time.Millisecond
	token, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "follower", Role: authz.Administrator})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- m.feed(client.ChangesQuery{}, token, func(client.FeedTransaction) bool { return false })
	}()
	tokens, err := m.Identity.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tokens {
		if one.Name == "follower" {
			if err := m.Identity.Revoke(t.Context(), one.ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var refused *client.Error
	if err := <-ended; !errors.As(err, &refused) || refused.Status != 401 {
		t.Errorf("the feed of a revoked token ends with %v", err)
	}
}

// followed waits until the number of followers is n.
func (m *manager) followed(n int) {
	m.T.Helper()
	for deadline := time.Now().Add(20 * time.Second); m.REST.Followers() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			m.T.Fatalf("%d follow the changes, want %d", m.REST.Followers(), n)
		}
	}
}

// TestChangeFeedOverTLS checks that a feed over TLS is one of the answers of a connection (HTTP/2) or has a connection of its own. Both end
// with the client and with the manager.
func TestChangeFeedOverTLS(t *testing.T) {
	m := startManager(t, func(o *Options) { o.Listen = "0.0.0.0:0" })
	m.REST.Beat = 20 * time.Millisecond // a write to a closed connection fails soon
	base := strings.ReplaceAll(m.URL(), "[::]", "127.0.0.1")
	base = strings.ReplaceAll(base, "0.0.0.0", "127.0.0.1")
	for _, two := range []bool{false, true} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!two)
		protocols.SetHTTP2(two)
		h := &http.Client{Transport: &http.Transport{Protocols: protocols,
			TLSClientConfig: &tls.Config{RootCAs: m.authority.Pool(), MinVersion: tls.VersionTLS12}}}
		c := &client.Client{Base: base, Token: m.Token, HTTP: h}
		follow := func(ctx context.Context) (told, ended chan error) {
			told, ended = make(chan error, 10), make(chan error, 1)
			go func() {
				ended <- c.Changes(ctx, client.ChangesQuery{}, func(client.FeedTransaction) error {
					told <- nil
					return nil
				})
			}()
			m.followed(1)
			return told, ended
		}
		ctx, leave := context.WithCancel(t.Context())
		told, ended := follow(ctx)
		if err := c.Create(t.Context(), "configurations", map[string]string{"name": fmt.Sprint("over HTTP/2: ", two)}, nil); err != nil {
			t.Fatal(err)
		}
		<-told
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the feed that is left ends with %v", err)
		}
		m.followed(0)
	}
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		c := &client.Client{Base: base, Token: m.Token,
			HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: m.authority.Pool(), MinVersion: tls.VersionTLS12}}}}
		_ = c.Changes(leaving, client.ChangesQuery{}, func(client.FeedTransaction) error { return nil })
	}()
	m.followed(1)
	began := time.Now()
	m.REST.EndFollowing()
	m.followed(0)
	t.Logf("a follower was released in %v", time.Since(began))
}
