package test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portolan/internal/testkit/freeport"
)

// TestExternalDNS checks that external-dns can create, read, change and delete its records, each request completely or not at all. Hosts
// created by users are kept.
func TestExternalDNS(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"default"}`)
	zone := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"harbour.example"}`)
	m.id("/zones/"+zone+"/zones", `{"type":"Zone","name":"quay"}`)
	m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"elsewhere.example"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	m.id("/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"crane","addresses":[{"type":"IPv4Address","address":"10.0.0.9","state":"STATIC"}]}`)
	at := freeport.Reserve(t).String()
	p, err := launch(filepath.Join(t.TempDir(), "out"), append(os.Environ(), "PORTOLAN_TOKEN="+m.token), "", binary, "external-dns", "--url",
		"http://"+m.api, "--configuration", "main", "--domain", "harbour.example", "--listen", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.signal(syscall.SIGTERM); err != nil {
			t.Errorf("it ends with %v\n%s", err, p.text())
		}
	})
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		status, text, err := call(context.Background(), method, "http://"+at+path, "", body)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.text())
		}
		return status, text
	}
	if !until(func() bool {
		status, _, err := call(context.Background(), "GET", "http://"+at+"/healthz", "", "")
		return err == nil && status == 200
	}) {
		t.Fatal(p.text())
	}
	if status, text := ask("GET", "/", ""); status != 200 || strings.TrimSpace(text) != `{"include":["harbour.example"]}` {
		t.Errorf("the domains are %d %s", status, text)
	}
	records := func() string {
		t.Helper()
		status, text := ask("GET", "/records", "")
		var all []struct {
			DNSName, RecordType string
			Targets             []string
		}
		if status != 200 || json.Unmarshal([]byte(text), &all) != nil {
			t.Fatalf("%d %s", status, text)
		}
		var words []string
		for _, e := range all {
			words = append(words, e.DNSName+" "+e.RecordType+" "+strings.Join(e.Targets, ","))
		}
		return strings.Join(words, "; ")
	}
	const owner = `"\"heritage=external-dns,external-dns/owner=k\""`
	if status, text := ask("POST", "/records", `{"create":[{"dnsName":"app.harbour.example","recordType":"A","targets":["192.0.2.1","192.0.2.2"],"recordTTL":60},`+
		`{"dnsName":"a-app.harbour.example","recordType":"TXT","targets":[`+owner+`]},`+
		`{"dnsName":"www.quay.harbour.example","recordType":"CNAME","targets":["lb.cloud.example"]},`+
		`{"dnsName":"harbour.example","recordType":"A","targets":["192.0.2.3"]}]}`); status != 204 {
		t.Fatalf("creating is %d %s", status, text)
	}
	made := `www.quay.harbour.example CNAME lb.cloud.example; crane.harbour.example A 10.0.0.9; app.harbour.example A 192.0.2.1,192.0.2.2; ` +
		`a-app.harbour.example TXT "heritage=external-dns,external-dns/owner=k"; harbour.example A 192.0.2.3`
	if got := records(); got != made {
		t.Errorf("the records are %s", got)
	}
	for what, body := range map[string]string{
		"a type that is not kept": `{"create":[{"dnsName":"x.harbour.example","recordType":"A","targets":["192.0.2.9"]},` +
			`{"dnsName":"y.harbour.example","recordType":"NAPTR","targets":["x"]}]}`,
		"another zone":            `{"create":[{"dnsName":"x.elsewhere.example","recordType":"A","targets":["192.0.2.9"]}]}`,
		"an address that is none": `{"create":[{"dnsName":"x.harbour.example","recordType":"A","targets":["quay"]}]}`,
		"a host of people":        `{"delete":[{"dnsName":"crane.harbour.example","recordType":"A","targets":["10.0.0.9"]}]}`,
		"no message":              `{"create":`,
	} {
		if status, text := ask("POST", "/records", body); status != 400 {
			t.Errorf("%s is %d %s", what, status, text)
		}
	}
	if got := records(); got != made {
		t.Errorf("behind what was refused the records are %s", got)
	}
	if status, text := ask("POST", "/records", `{"updateOld":[{"dnsName":"app.harbour.example","recordType":"A","targets":["192.0.2.1","192.0.2.2"]}],`+
		`"updateNew":[{"dnsName":"app.harbour.example","recordType":"A","targets":["192.0.2.2","192.0.2.4"]}],`+
		`"delete":[{"dnsName":"www.quay.harbour.example","recordType":"CNAME","targets":["lb.cloud.example"]}]}`); status != 204 {
		t.Fatalf("changing is %d %s", status, text)
	}
	if got := records(); !strings.Contains(got, "app.harbour.example A 192.0.2.2,192.0.2.4") || strings.Contains(got, "www.quay") ||
		!strings.Contains(got, "crane.harbour.example A 10.0.0.9") {
		t.Errorf("behind the change the records are %s", got)
	}
	// An address in a network gets a host record, and is released with it.
	if status, text := ask("POST", "/records", `{"create":[{"dnsName":"in.harbour.example","recordType":"A","targets":["10.0.0.20","192.0.2.20"]}]}`); status != 204 {
		t.Fatalf("an address of a network is %d %s", status, text)
	}
	if got, all := m.count("/addresses", "address:'10.0.0.20' and state:'STATIC'"), records(); got != 1 ||
		!strings.Contains(all, "in.harbour.example A ") {
		t.Errorf("%d addresses are taken: %s", got, all)
	}
	if status, text := ask("POST", "/records", `{"delete":[{"dnsName":"in.harbour.example","recordType":"A","targets":["10.0.0.20","192.0.2.20"]}]}`); status != 204 ||
		strings.Contains(records(), "in.harbour.example") {
		t.Errorf("its end is %d %s: %s", status, text, records())
	}
	if status, text := ask("POST", "/adjustendpoints", `[{"dnsName":"x.harbour.example","recordType":"A","targets":["192.0.2.9"]},`+
		`{"dnsName":"y.harbour.example","recordType":"NAPTR","targets":["x"]}]`); status != 200 || strings.Contains(text, "NAPTR") ||
		!strings.Contains(text, "x.harbour.example") {
		t.Errorf("adjusted: %d %s", status, text)
	}
	if _, text := ask("GET", "/metrics", ""); !strings.Contains(text, `portolan_external_dns_changes_total{what="made"} 9`) {
		t.Errorf("the metrics are %s", text)
	}
}
