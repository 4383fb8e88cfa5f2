package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// signingPolicy is the signing policy of the tests.
const signingPolicy = `{"type":"DNSSECSigningPolicy","name":"standard","keyProvider":"ADDRESS_MANAGER","signatureDigestAlgorithm":"SHA256",` +
	`"signatureValidityPeriod":"P10D","signatureResigningPeriod":"P3D",` +
	`"zoneSigningKeyAlgorithm":"ECDSAP256SHA256","zoneSigningKeyLength":256,"zoneSigningKeyValidityPeriod":"P30D",` +
	`"zoneSigningKeyOverlapPeriod":"P5D","zoneSigningKeyRolloverMethod":"PRE_PUBLISH","zoneSigningKeySigningPeriod":"P2D",` +
	`"keySigningKeyAlgorithm":"ECDSAP256SHA256","keySigningKeyLength":256,"keySigningKeyValidityPeriod":"P365D",` +
	`"keySigningKeyOverlapPeriod":"P30D","keySigningKeyRolloverMethod":"DOUBLE_SIGNING"}`

// records queries records with their signatures.
func (a *authority) records(name string, kind uint16) (found []dns.RR) {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	m.SetEdns0(4096, true)
	r, _, err := (&dns.Client{Timeout: time.Second, Net: "tcp"}).Exchange(m, a.address)
	if err != nil {
		return nil
	}
	return slices.Concat(r.Answer, r.Ns)
}

// good returns an error unless records are signed by a key of a zone that one of the DS records authenticates.
func (a *authority) good(name string, kind uint16, zone string, trusted []*dns.DS) error {
	keys := a.records(zone, dns.TypeDNSKEY)
	anchored := slices.ContainsFunc(keys, func(rr dns.RR) bool {
		k, ok := rr.(*dns.DNSKEY)
		return ok && verified(keys, dns.TypeDNSKEY, []*dns.DNSKEY{k}) && slices.ContainsFunc(trusted, func(ds *dns.DS) bool {
			is := k.ToDS(ds.DigestType)
			return is != nil && strings.EqualFold(is.Digest, ds.Digest)
		})
	})
	if !anchored {
		return fmt.Errorf("%v lead to none of the keys %v", trusted, keys)
	}
	var all []*dns.DNSKEY
	for _, rr := range keys {
		if k, ok := rr.(*dns.DNSKEY); ok {
			all = append(all, k)
		}
	}
	if records := a.records(name, kind); !verified(records, kind, all) {
		return fmt.Errorf("%s %s is not signed by %v: %v", name, dns.TypeToString[kind], all, records)
	}
	return nil
}

// verified reports whether there are records of a type with a valid signature of one of the keys.
func verified(records []dns.RR, kind uint16, keys []*dns.DNSKEY) bool {
	var of []dns.RR
	for _, rr := range records {
		if rr.Header().Rrtype == kind {
			of = append(of, rr)
		}
	}
	return len(of) > 0 && slices.ContainsFunc(records, func(rr dns.RR) bool {
		signature, ok := rr.(*dns.RRSIG)
		return ok && signature.TypeCovered == kind && signature.ValidityPeriod(time.Now()) && slices.ContainsFunc(keys, func(k *dns.DNSKEY) bool {
			return k.KeyTag() == signature.KeyTag && signature.Verify(k, of) == nil
		})
	})
}

// trusted returns the IDs of a zone's key signing keys and their DS records.
func (m *manager) trusted(zone string) (ids []string, all []*dns.DS) {
	m.t.Helper()
	var keys struct {
		Data []struct {
			ID             int64
			Type, DSRecord string
		}
	}
	_, text, err := m.call("GET", "/zones/"+zone+"/signingKeys?orderBy=asc(id)", "")
	if err != nil || json.Unmarshal([]byte(text), &keys) != nil {
		m.t.Fatal(text, err)
	}
	for _, k := range keys.Data {
		if k.Type != "KeySigningKey" {
			continue
		}
		rr, err := dns.NewRR(k.DSRecord)
		if err != nil {
			m.t.Fatal(err)
		}
		ids, all = append(ids, fmt.Sprint(k.ID)), append(all, rr.(*dns.DS))
	}
	return ids, all
}

// signing is the signing status of a zone.
type signing struct {
	ParentHere bool
	Keys       []struct {
		State, Next            string
		Signs                  bool
		DSRecord, NextDateTime *string
		WaitsFor               *string
	}
}

// signing returns the signing status of a zone.
func (m *manager) signing(zone string) signing {
	m.t.Helper()
	var r struct{ Zones []signing }
	status, text, err := m.call("GET", "/zones/"+zone+"/signing", "")
	if err != nil || status != 200 || json.Unmarshal([]byte(text), &r) != nil || len(r.Zones) != 1 {
		m.t.Fatal(status, text, err)
	}
	return r.Zones[0]
}

// TestSignedZones checks that a signed zone has signed answers, and that a zone below it is trusted through it without manual steps. A key
// rollover keeps the trust, and a zone can become unsigned.
func TestSignedZones(t *testing.T) {
	t.Parallel()
	onBoth(t, signedZones)
}

func signedZones(t *testing.T, database string) {
	t.Helper()
	a, zone, below, _ := liveServer(t, database)
	m := a.m
	m.id("/zones/"+below+"/resourceRecords", `{"type":"TXTRecord","name":"berth","text":"seven"}`)
	policy := m.id("/signingPolicies", signingPolicy)
	for _, id := range []string{zone, below} {
		if status, text, err := m.call("POST", "/signingPolicies/"+policy+"/appliedResources", `{"id":`+id+`}`); status != 201 || err != nil {
			t.Fatal(status, text, err)
		}
	}
	_, anchors := m.trusted(zone)
	holds := func(what string, check func() error) {
		t.Helper()
		var err error
		if !until(func() bool { err = check(); return err == nil }) {
			t.Fatalf("%s: %v\n%s\n%s", what, err, a.process.text(), m.process.text())
		}
	}
	holds("the zone is signed", func() error { return a.good("harbour.example.", dns.TypeSOA, "harbour.example.", anchors) })
	ds := func() (found []*dns.DS) {
		for _, rr := range a.records("quay.harbour.example.", dns.TypeDS) {
			if one, ok := rr.(*dns.DS); ok {
				found = append(found, one)
			}
		}
		return found
	}
	holds("the parent zone has the DS record of the key", func() error {
		return a.good("quay.harbour.example.", dns.TypeDS, "harbour.example.", anchors)
	})
	holds("the names of the child zone are secure", func() error {
		return a.good("berth.quay.harbour.example.", dns.TypeTXT, "quay.harbour.example.", ds())
	})
	holds("the zone below names its key for the one above", func() error {
		return a.good("quay.harbour.example.", dns.TypeCDS, "quay.harbour.example.", ds())
	})
	holds("its keys are active, and the zone above is here", func() error {
		r := m.signing(below)
		if !r.ParentHere || len(r.Keys) != 2 || r.Keys[0].State != "ACTIVE" || r.Keys[1].State != "ACTIVE" || !r.Keys[0].Signs ||
			r.Keys[0].Next != "FOLLOWED" || r.Keys[0].NextDateTime == nil || r.Keys[1].DSRecord == nil || m.signing(zone).ParentHere {
			return fmt.Errorf("told is %+v", r)
		}
		return nil
	})
	a.delv(t, anchors, "berth.quay.harbour.example.", "TXT")
	a.delv(t, anchors, "nobody.quay.harbour.example.", "A")
	a.nothingElse()

	// A second key signs the keys together with the old one, until all resolvers know it.
	before, _ := m.trusted(below)
	if status, text, err := m.call("PATCH", "/signingKeys/"+before[0], `{"state":"REGENERATE"}`); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	if ids, _ := m.trusted(below); len(ids) != 2 {
		t.Errorf("there are %d keys that sign keys", len(ids))
	}
	holds("both keys are there", func() error {
		n := 0
		for _, rr := range a.records("quay.harbour.example.", dns.TypeDNSKEY) {
			if k, ok := rr.(*dns.DNSKEY); ok && k.Flags == 257 {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("%d keys that sign keys", n)
		}
		return a.good("berth.quay.harbour.example.", dns.TypeTXT, "quay.harbour.example.", ds())
	})
	a.delv(t, anchors, "berth.quay.harbour.example.", "TXT")
	holds("the second key is published and reported completely", func() error {
		r := m.signing(below)
		if len(r.Keys) != 3 || r.Keys[1].State != "ACTIVE" || r.Keys[1].Next != "REPLACED" || r.Keys[2].State != "PUBLISHED" ||
			r.Keys[2].Next != "TAKES_OVER" || r.Keys[2].WaitsFor == nil || r.Keys[2].DSRecord != nil || !r.Keys[2].Signs {
			return fmt.Errorf("told is %+v", r)
		}
		return nil
	})

	// A zone becomes unsigned only after its DS record was withdrawn from the parent.
	if status, text, err := m.call("DELETE", "/signingPolicies/"+policy+"/appliedResources/"+below, ""); status != 409 || err != nil ||
		!strings.Contains(text, "dsWithdrawn") {
		t.Errorf("a zone whose DS record is served is signed no more: %d %s %v", status, text, err)
	}
	keys, _ := m.trusted(below)
	for _, key := range keys {
		if status, text, err := m.call("PATCH", "/signingKeys/"+key, `{"dsWithdrawn":true}`); status != 200 || err != nil {
			t.Fatal(status, text, err)
		}
	}
	if !until(func() bool {
		status, _, err := m.call("DELETE", "/signingPolicies/"+policy+"/appliedResources/"+below, "")
		return status == 204 && err == nil
	}) {
		t.Fatal("the DS records are withdrawn, and the zone stays signed")
	}
	for _, id := range []string{zone} {
		if status, text, err := m.call("DELETE", "/signingPolicies/"+policy+"/appliedResources/"+id, ""); status != 204 || err != nil {
			t.Fatal(status, text, err)
		}
	}
	holds("nothing is signed", func() error {
		for _, name := range []string{"harbour.example.", "berth.quay.harbour.example."} {
			for _, rr := range a.records(name, dns.TypeANY) {
				if rr.Header().Rrtype == dns.TypeRRSIG {
					return fmt.Errorf("%s", rr)
				}
			}
		}
		if len(ds()) > 0 || len(a.records("quay.harbour.example.", dns.TypeDNSKEY)) > 1 {
			return fmt.Errorf("%v, %v", ds(), a.records("quay.harbour.example.", dns.TypeDNSKEY))
		}
		return nil
	})
	a.nothingElse()
	m.check()
}

// delv verifies a name with BIND's validator, if it is installed.
func (a *authority) delv(t *testing.T, anchors []*dns.DS, name, kind string) {
	t.Helper()
	program, err := exec.LookPath("delv")
	if err != nil {
		t.Log("delv is not on this machine")
		return
	}
	anchor := t.TempDir() + "/anchor"
	text := fmt.Sprintf("trust-anchors { \"harbour.example.\" static-ds %d %d %d \"%s\"; };\n", anchors[0].KeyTag, anchors[0].Algorithm,
		anchors[0].DigestType, anchors[0].Digest)
	if err := os.WriteFile(anchor, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(a.address, ":")
	out, _ := exec.Command(program, "@"+host, "-p", port, "-a", anchor, "+root=harbour.example", name, kind).CombinedOutput()
	if !strings.Contains(string(out), "fully validated") {
		t.Errorf("%s %s: %s", name, kind, out)
	}
}
