package test

import (
	"testing"

	"github.com/miekg/dns"
)

// A name that leads back from an address has what hosts say and records of its own, also where one of both changes, and where a zone lies
// between.
func TestLiveReverse(t *testing.T) {
	a, zone, _, _ := liveServer(t, "")
	m := a.m
	view := m.first("views", "name:'default'")
	high := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"10.in-addr.arpa","deploymentEnabled":true}`)
	reverse := m.id("/zones/"+high+"/zones", `{"type":"Zone","absoluteName":"0.0.10.in-addr.arpa","deploymentEnabled":true}`)
	host := m.id("/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"crane","reverseRecord":true,"addresses":[{"type":"IPv4Address","address":"10.0.0.10","state":"STATIC"}]}`)
	back := "10.0.0.10.in-addr.arpa."
	a.answersWith(back, dns.TypePTR, "NOERROR crane.harbour.example.")
	ptr := m.id("/zones/"+reverse+"/resourceRecords", `{"type":"GenericRecord","name":"10","recordType":"PTR","rdata":"new.harbour.example."}`)
	a.answersWith(back, dns.TypePTR, "NOERROR crane.harbour.example. new.harbour.example.")
	if status, text, err := m.call("PATCH", "/resourceRecords/"+host, `{"name":"winch"}`); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	a.answersWith(back, dns.TypePTR, "NOERROR new.harbour.example. winch.harbour.example.")
	if status, text, err := m.call("DELETE", "/resourceRecords/"+ptr, ""); status != 204 || err != nil {
		t.Fatal(status, text, err)
	}
	a.answersWith(back, dns.TypePTR, "NOERROR winch.harbour.example.")
	a.nothingElse()
	m.check()
}
