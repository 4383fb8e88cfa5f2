package server

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestSmallPagesAreUpToDate checks that a small page, whose completed rows are cached while nothing changes, always equals a page that is
// too large for the cache. It compares the pages of a user who sees everything and of one who does not.
func TestSmallPagesAreUpToDate(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	_, _, zone, block, network := m.Basics()
	secret := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/24","name":"secret"}`)
	user, as := m.User("limited", "NO_ACCESS")
	m.Right(user, block, "VIEW", "")
	m.Right(user, secret, "HIDE", "")
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"a"}`)
	span := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.30"}`)
	var completing atomic.Int64
	see := func(s store.Statement) {
		if strings.Contains(s.Query, "FROM usage WHERE container IN") ||
			strings.Contains(s.Query, "JOIN resource g") { // of blocks and networks, of addresses in IP groups
			completing.Add(1)
		}
	}
	m.ID("/api/v2/networks/"+network+"/ipGroups", `{"type":"IPv4Group","name":"first","range":"10.0.0.40-10.0.0.49"}`)
	for _, change := range []struct{ method, path, body string }{
		{"POST", "networks/" + network + "/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.25"}`},
		{"PATCH", "addresses/" + address, `{"state":"RESERVED"}`},
		{"PATCH", "blocks/" + block, `{"highWaterMark":80,"defaultZones":[{"id":` + zone + `}]}`},
		{"POST", "networks/" + network + "/ipGroups", `{"type":"IPv4Group","name":"g","range":"10.0.0.1-10.0.0.9"}`},
		{"PATCH", "ranges/" + span, `{"exclusionRanges":["10.0.0.21-10.0.0.22"]}`},
		{"POST", "blocks/" + block + "/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16","highWaterMark":70}`},
		{"POST", "networks/" + secret + "/addresses", `{"type":"IPv4Address","state":"STATIC"}`},
		{"DELETE", "addresses/" + address, ""},
	} {
		m.Store.Observe(see)
		for _, headers := range [][]string{nil, {as}} {
			for _, of := range []string{"blocks", "networks", "addresses"} { // ranges show the figures of the moment
				apitest.Eventually(t, of+" are remembered", func() bool {
					before := completing.Load()
					m.Want(200, "GET", "/api/v2/"+of+"?limit=100", "", headers...)
					return completing.Load() == before || !m.Store.HasOneWriter()
				})
			}
		}
		m.Store.Observe(nil)
		var how []string
		if change.method == "PATCH" {
			how = []string{apitest.MergePatch}
		}
		answer := m.Do(change.method, "/api/v2/"+change.path, change.body, how...)
		if answer.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", change.method, change.path, answer.StatusCode, answer.Body)
		}
		for _, headers := range [][]string{nil, {as}} {
			for _, of := range []string{"blocks", "networks", "ranges", "addresses"} {
				whole := m.Want(200, "GET", "/api/v2/"+of+"?limit=1000", "", headers...)
				for range 3 {
					r := m.Want(200, "GET", "/api/v2/"+of+"?limit=100", "", append(slices.Clone(headers), "Accept-Encoding: identity")...)
					if string(r.Body) != string(whole.Body) {
						t.Errorf("behind %s %s a page of a hundred %s is\n%s\nand one of a thousand\n%s", change.method, change.path, of, r.Body, whole.Body)
					}
					if length := r.Header.Get("Content-Length"); length != strconv.Itoa(len(r.Body)) {
						t.Errorf("an answer of %d bytes says that it has %q", len(r.Body), length)
					}
				}
			}
		}
	}
}

// TestAnswersSideBySide checks that concurrent answers share no memory, for every media type, and state their length if it is known.
func TestAnswersSideBySide(t *testing.T) {
	m := startManager(t)
	_, _, _, block, network := m.Basics()
	for i := range 20 {
		m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"a`+strconv.Itoa(i)+`"}`)
		m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.`+strconv.Itoa(i)+`.0/24","name":"n`+strconv.Itoa(i)+`"}`)
	}
	type question struct{ method, path, accept, coding string }
	var asked []question
	for _, path := range []string{"addresses?limit=100", "networks?limit=100", "networks?limit=1000", "addresses?limit=7&fields=name",
		"networks?limit=3&fields=embed(addresses)", "blocks?limit=100"} {
		for _, accept := range []string{"application/hal+json", "application/json", "text/csv"} {
			if accept != "text/csv" || !strings.Contains(path, "embed") {
				asked = append(asked, question{"GET", path, accept, "identity"}, question{"GET", path, accept, "gzip"})
			}
		}
		asked = append(asked, question{"HEAD", path, "application/json", "identity"})
	}
	ask := func(q question) reply {
		return m.Do(q.method, "/api/v2/"+q.path, "", "Accept: "+q.accept, "Accept-Encoding: "+q.coding)
	}
	want := make([]string, len(asked))
	for i, q := range asked {
		r := ask(q)
		length := r.Header.Get("Content-Length")
		if r.StatusCode != 200 || length != "" && q.method == "GET" && length != strconv.Itoa(len(r.Body)) {
			t.Errorf("%v: %d, an answer of %d bytes says that it has %q", q, r.StatusCode, len(r.Body), length)
		}
		want[i] = string(r.Body)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := range 60 {
				i := (n*7 + worker*5) % len(asked)
				if r := ask(asked[i]); r.StatusCode != 200 || string(r.Body) != want[i] {
					t.Errorf("%v: %d %s\nand not %s", asked[i], r.StatusCode, r.Body, want[i])
				}
			}
		})
	}
	all.Wait()
}
