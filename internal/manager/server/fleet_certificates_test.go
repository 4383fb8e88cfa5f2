package server

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"portolan/internal/servicepoint"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// TestExpiredCertificateIsRenewed checks that a service point that was disconnected for longer than the lifetime of its certificate renews
// it and is connected again.
func TestExpiredCertificateIsRenewed(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	_, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	first := e.certificateOf(t, answer)
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, first); status != 200 || a["renew"] != nil {
		t.Fatalf("a check-in: %d %v", status, a)
	}
	c.advance(21 * 24 * time.Hour)
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, first); status != 200 || a["renew"] != true {
		t.Errorf("after two thirds of its life: %d %v", status, a)
	}
	c.advance(30 * 24 * time.Hour)
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, first); status != 401 ||
		a["code"] != checkin.CertificateExpired {
		t.Errorf("with an expired certificate: %d %v", status, a)
	}
	fresh := newEnrolment(t)
	status, renewed := m.doorPost(checkin.RenewPath, checkin.RenewRequest{Request: fresh.request}, first)
	if status != 200 {
		t.Fatalf("renewing an expired certificate: %d %v", status, renewed)
	}
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, fresh.certificateOf(t, renewed)); status != 200 {
		t.Errorf("with the renewed one: %d %v", status, a)
	}
}

// TestRekeyedIsNotConnected checks that a service point with a new registration key is no longer connected, even if requests with its
// certificate arrive.
func TestRekeyedIsNotConnected(t *testing.T) {
	m := startManager(t)
	id, certificate := m.provisioned("one")
	if got := m.instance(id).Text("connectionStatus"); got != "CONNECTED" {
		t.Fatalf("at first it is %s", got)
	}
	m.Want(202, "POST", "/user/api/v1/fleetInstances/"+id+"/registrationKey", "")
	if status, _ := m.doorPost(checkin.CheckInPath, checkin.Request{}, certificate); status != 410 {
		t.Errorf("a check-in by the certificate from before: %d", status)
	}
	if i := m.instance(id); i.Text("connectionStatus") != "NOT_CONNECTED" || i.Text("status") != "WAITING_FOR_PROVISIONING" {
		t.Errorf("with a new key it is %s", i.Body)
	}
}

// TestServicePointRenewsAnExpiredCertificate checks that an agent that was switched off for longer than the lifetime of its certificate
// connects again by itself, with another certificate.
func TestServicePointRenewsAnExpiredCertificate(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	id, key := m.create("one")
	state := t.TempDir()
	options := servicepoint.Options{State: state, Endpoint: m.RegistrationEndpoint(), Key: key, DiagnosticsListen: "127.0.0.1:0"}
	began := c.now()
	connected := func() bool { // by a check-in that the manager's clock puts behind the start of the service point
		i := m.instance(id)
		last, err := strconv.ParseInt(fmt.Sprint(i.Get("lastSeen")), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return i.Text("connectionStatus") == "CONNECTED" && last >= began.UnixMilli()
	}
	_, stop := m.service(options)
	apitest.Eventually(t, "CONNECTED", connected)
	stop()
	before := identityOf(t, state)
	c.advance(60 * 24 * time.Hour)
	began = c.now()
	m.service(options)
	apitest.Eventually(t, "CONNECTED again", connected)
	apitest.Eventually(t, "it has removed the expired certificate", func() bool { return identityOf(t, state)["previous"] == nil })
	after := identityOf(t, state)
	if after["certificate"] == before["certificate"] || after["key"] == before["key"] || after["id"] != before["id"] {
		t.Errorf("behind the end of its certificate it has %v, and had %v", after, before)
	}
}
