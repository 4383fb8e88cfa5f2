package test

import (
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

// TestLiveAnswersAndResolves checks a server that serves the zones of a view and resolves all other names.
func TestLiveAnswersAndResolves(t *testing.T) {
	t.Parallel()
	a, zone, _, _ := liveServer(t, "")
	m := a.m
	view, iface := m.first("views", "name:'default'"), m.first("interfaces", "server.id:"+a.server)
	role := func(kind string) string {
		return `{"type":"DNSDeploymentRole","roleType":"` + kind + `","interfaces":[{"id":` + iface + `}]}`
	}
	m.id("/views/"+view+"/deploymentRoles", role("RECURSIVE"))
	for _, kind := range []string{"FORWARDING", "SECONDARY"} {
		if status, text, err := m.call("POST", "/views/"+view+"/deploymentRoles", role(kind)); status != 409 || err != nil {
			t.Errorf("%s beside PRIMARY and RECURSIVE: %d %s %v", kind, status, text, err)
		}
	}
	m.id("/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"berth","text":"x"}`)
	a.answersWith("berth.harbour.example.", dns.TypeTXT, `NOERROR "x"`)
	state, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	if state != "COMPLETED_WITH_WARNINGS" || !strings.Contains(message, "dns-resolver-service") {
		t.Errorf("the deployment is %s: %s", state, message)
	}
	a.answersWith("berth.harbour.example.", dns.TypeTXT, `NOERROR "x"`)
	if serving := ""; !until(func() bool {
		_, text, err := m.call("GET", "/zones/"+zone+"/serving", "")
		serving = text
		return err == nil && strings.Contains(serving, `"servers":[{"id":`+a.server+`,`) && strings.Contains(serving, `"current":true,"connected":true`)
	}) {
		t.Errorf("who serves the zone is %s", serving)
	}
}

// TestLiveReverse checks a reverse name with records from hosts and records of its own, also when either changes and when a zone cut is in
// between.
func TestLiveReverse(t *testing.T) {
	t.Parallel()
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
	a.answersWith("winch.harbour.example.", dns.TypeA, "NOERROR 10.0.0.10") // the zone of the host is deployed without a request
	a.nothingElse()
	m.check()
}
