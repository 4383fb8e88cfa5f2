package server

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"portolan/internal/store"
)

// A small page remembers how its rows were completed while nothing changes. Whatever changes, it shows what a page shows that is too large
// to remember anything, to who sees all and to who does not.
func TestSmallPagesAreUpToDate(t *testing.T) {
	m := startAlone(t)
	_, _, zone, block, network := m.basics()
	secret := m.id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/24","name":"secret"}`)
	user, as := m.user("limited", "NO_ACCESS")
	m.right(user, block, "VIEW", "")
	m.right(user, secret, "HIDE", "")
	address := m.id("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"a"}`)
	span := m.id("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.30"}`)
	var completing atomic.Int64
	see := func(s store.Statement) {
		if strings.Contains(s.Query, "FROM usage WHERE container IN") || strings.Contains(s.Query, "AS value, count(*)") {
			completing.Add(1)
		}
	}
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
			for _, of := range []string{"blocks", "networks", "ranges", "addresses"} {
				eventually(t, of+" are remembered", func() bool {
					before := completing.Load()
					m.want(200, "GET", "/api/v2/"+of+"?limit=100", "", headers...)
					return completing.Load() == before || !m.Store.OneWriter()
				})
			}
		}
		m.Store.Observe(nil)
		var how []string
		if change.method == "PATCH" {
			how = []string{mergePatch}
		}
		answer := m.do(change.method, "/api/v2/"+change.path, change.body, how...)
		if answer.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", change.method, change.path, answer.StatusCode, answer.body)
		}
		for _, headers := range [][]string{nil, {as}} {
			for _, of := range []string{"blocks", "networks", "ranges", "addresses"} {
				whole := m.want(200, "GET", "/api/v2/"+of+"?limit=1000", "", headers...)
				for range 3 {
					r := m.want(200, "GET", "/api/v2/"+of+"?limit=100", "", append(slices.Clone(headers), "Accept-Encoding: identity")...)
					if string(r.body) != string(whole.body) {
						t.Errorf("behind %s %s a page of a hundred %s is\n%s\nand one of a thousand\n%s", change.method, change.path, of, r.body, whole.body)
					}
					if length := r.Header.Get("Content-Length"); length != strconv.Itoa(len(r.body)) {
						t.Errorf("an answer of %d bytes says that it has %q", len(r.body), length)
					}
				}
			}
		}
	}
}
