package server

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"portolan/internal/servicepoint"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// machine is a node of a service point, played by hand.
type machine struct {
	m           *manager
	name        string
	enrolment   enrolment
	certificate *tls.Certificate
	sequence    int64
}

// machine enrols one.
func (m *manager) machine(name, key string) *machine {
	m.T.Helper()
	e := newEnrolment(m.T)
	status, answer := m.enrol(e, key)
	if status != 200 {
		m.T.Fatalf("%s cannot enrol: %d %v", name, status, answer)
	}
	return &machine{m: m, name: name, enrolment: e, certificate: e.certificateOf(m.T, answer)}
}

// ask checks in.
func (c *machine) ask(rq checkin.Request) (int, map[string]any) {
	c.m.T.Helper()
	rq.Sequence, rq.Digest = c.sequence, fmt.Sprint(c.sequence)
	return c.m.doorPost(checkin.CheckInPath, rq, c.certificate)
}

// report reports what runs, and what is wrong.
func (c *machine) report(desired int64, applications []checkin.Application, conditions ...string) map[string]any {
	c.m.T.Helper()
	c.sequence++
	r := reportOf(conditions...)
	r.Applied, r.Applications = desired, applications
	r.Nodes = []checkin.Node{{ID: c.name, Name: c.name, Hostname: c.name}}
	status, a := c.ask(checkin.Request{Desired: desired, Report: r})
	if status != 200 {
		c.m.T.Fatalf("%s: a check-in gives %d %v", c.name, status, a)
	}
	return a
}

// TestNodesOfAServicePoint checks that two machines that enrol with one key are nodes of one service point. It has the worse of their
// states, and is connected while one node is. A node is removed, and another one replaces it.
func TestNodesOfAServicePoint(t *testing.T) {
	m := startOnce(t)
	m.Refused(400, "InvalidResourceFieldValue", "nodeCount", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x","nodeCount":9}`)
	m.Refused(400, "InvalidResourceFieldValue", "nodeCount", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x","nodeCount":"two"}`)
	created := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pair","nodeCount":2}`)
	id, key := created.Text("fleetInstanceID"), created.Text("registrationKey")
	path := "/user/api/v1/fleetInstances/" + id
	is := func(status, connection string, conditions ...string) {
		t.Helper()
		r := m.instance(id)
		if r.Text("status") != status || r.Text("connectionStatus") != connection || r.Text("nodeCount") != "2" {
			t.Errorf("it is %s, want %s %s", r.Body, status, connection)
		}
		text := fmt.Sprint(r.Get("errorConditions"))
		for _, one := range conditions {
			if !strings.Contains(text, one) {
				t.Errorf("the conditions are %s without %s", text, one)
			}
		}
		if len(conditions) == 0 && text != "[]" {
			t.Errorf("the conditions are %s", text)
		}
	}
	a := m.machine("anna", key)
	if status, answer := m.enrol(a.enrolment, key); status != 200 || answer["node"] != 1.0 {
		t.Errorf("an enrolment whose answer was lost gives %d %v", status, answer)
	} else {
		a.certificate = a.enrolment.certificateOf(t, answer)
	}
	a.report(0, nil)
	is("UNHEALTHY", "CONNECTED", "1 of 2 nodes have not reported yet")
	b := m.machine("bert", key)
	b.report(0, nil)
	is("HEALTHY", "CONNECTED")
	if r := m.instance(id); r.Text("nodes.0.name") != "anna" || r.Text("nodes.1.name") != "bert" {
		t.Errorf("the nodes are %s", r.Body)
	}
	if status, answer := m.enrol(newEnrolment(t), key); status != 403 || answer["code"] != "RegistrationKeyUsed" {
		t.Errorf("a third machine gets %d %v", status, answer)
	}
	if status, answer := m.enrol(b.enrolment, key); status != 403 {
		t.Errorf("a machine that has reported enrols again: %d %v", status, answer)
	}

	b.report(0, nil, "its fan is silent")
	is("UNHEALTHY", "CONNECTED", "node-2 (bert): its fan is silent")
	b.report(0, nil)
	is("HEALTHY", "CONNECTED")
	if status, answer := b.ask(checkin.Request{Leaving: true}); status != 200 {
		t.Fatal(status, answer)
	}
	is("UNHEALTHY", "CONNECTED", "node-2 (bert) is not connected")
	b.report(0, nil)
	is("HEALTHY", "CONNECTED")

	application := m.Want(202, "POST", path+"/applications", `{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`).
		Text("id")
	_, answer := a.ask(checkin.Request{})
	desired := int64(answer["desired"].(float64))
	as := func(status string, conditions ...string) []checkin.Application {
		return []checkin.Application{{ID: application, Name: "http-probe-service", Version: "1.0.0", Status: status, ErrorConditions: conditions}}
	}
	runs := func(status, condition string) {
		t.Helper()
		if r := m.instance(id); r.Text("applications.0.status") != status ||
			!strings.Contains(fmt.Sprint(r.Get("applications.0.errorConditions")),
				condition) {
			t.Errorf("it runs %s, want %s %s", r.Body, status, condition)
		}
	}
	a.report(desired, as("HEALTHY"))
	runs("DEPLOYING", "")
	b.report(desired, as("DEPLOYING"))
	runs("DEPLOYING", "node-2 (bert): it is DEPLOYING")
	b.report(desired, as("HEALTHY"))
	runs("HEALTHY", "")
	b.report(desired, as("UNHEALTHY", "it burns"))
	runs("UNHEALTHY", "node-2 (bert): it burns")
	if status, _ := b.ask(checkin.Request{Desired: desired, Leaving: true}); status != 200 {
		t.Fatal(status)
	}
	runs("HEALTHY", "") // where it runs

	nodes := path + "/nodes/"
	m.Refused(404, "ResourceNotFound", "nobody", "DELETE", nodes+"nobody", "")
	m.Refused(409, "NodesInUse", "node-2", "PATCH", path, `{"nodeCount":1}`)
	m.Want(204, "DELETE", nodes+id+"-node-2", "")
	if status, answer := b.ask(checkin.Request{Desired: desired}); status != 410 || answer["code"] != checkin.NodeRemoved {
		t.Errorf("a node that was taken away gets %d %v", status, answer)
	}
	if status, answer := m.enrol(b.enrolment, key); status != 403 {
		t.Errorf("a node that was taken away enrols again: %d %v", status, answer)
	}
	m.Refused(409, "LastNode", "only node", "DELETE", nodes+id+"-node-1", "")
	a.report(desired, as("HEALTHY"))
	if r := m.instance(id); r.Text("status") != "HEALTHY" || r.Text("nodeCount") != "1" {
		t.Errorf("with one node it is %s", r.Body)
	}
	added := m.Want(202, "POST", path+"/nodes", "")
	if status, answer := m.enrol(newEnrolment(t), key); status != 403 {
		t.Errorf("the key from before gives %d %v", status, answer)
	}
	c := m.machine("cara", added.Text("registrationKey"))
	c.report(desired, as("HEALTHY"))
	is("HEALTHY", "CONNECTED")
	if status, answer := b.ask(checkin.Request{Desired: desired}); status != 410 {
		t.Errorf("a node whose place was taken gets %d %v", status, answer)
	}
	a.report(desired, as("HEALTHY"))
	events := string(m.Want(200, "GET", path+"/events", "").Body)
	if !strings.Contains(events, `"field":"nodeConnectionStatus"`) || !strings.Contains(events, id+"-node-2") {
		t.Errorf("the events are %s", events)
	}

	again := m.Want(202, "POST", path+"/registrationKey", "").Text("registrationKey")
	for _, one := range []*machine{a, c} {
		if status, answer := one.ask(checkin.Request{Desired: desired}); status != 410 {
			t.Errorf("behind a new key %s gets %d %v", one.name, status, answer)
		}
	}
	m.machine("dora", again).report(desired, nil)
	m.Want(204, "DELETE", path, "")
	if r := m.Want(200, "GET", "/user/api/v1/fleetInstances", ""); strings.Contains(string(r.Body), id) {
		t.Errorf("it stays: %s", r.Body)
	}
}

// TestRealNodes checks that two real agents are nodes of one service point, and that the end of one is noticed immediately.
func TestRealNodes(t *testing.T) {
	m := startManager(t)
	created := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pair","nodeCount":2}`)
	id, key := created.Text("fleetInstanceID"), created.Text("registrationKey")
	var stops []func()
	for range 2 {
		_, stop := m.service(servicepoint.Options{State: filepath.Join(t.TempDir(), "state"), Endpoint: m.RegistrationEndpoint(), Key: key,
			Variant: checkin.Fleet, DiagnosticsListen: "127.0.0.1:0"})
		stops = append(stops, stop)
	}
	apitest.Eventually(t, "both are there", func() bool {
		r := m.instance(id)
		return r.Text("status") == "HEALTHY" && r.Text("nodes.1.id") != ""
	})
	stops[0]()
	apitest.Eventually(t, "one is missed", func() bool {
		r := m.instance(id)
		return r.Text("status") == "UNHEALTHY" && r.Text("connectionStatus") == "CONNECTED" &&
			strings.Contains(r.Text("errorConditions.0"), "is not connected")
	})
	stops[1]()
	apitest.Eventually(t, "none is there", func() bool { return m.instance(id).Text("connectionStatus") == "NOT_CONNECTED" })
}

// TestPlaceOfARemovedNode checks a removed node's certificate. After a new registration key, certificates have the same generation for a
// minute, and the certificate is not valid for the node that has the place now.
func TestPlaceOfARemovedNode(t *testing.T) {
	m := startAlone(t)
	created := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pair","nodeCount":2}`)
	id := created.Text("fleetInstanceID")
	path := "/user/api/v1/fleetInstances/" + id
	key := m.Want(202, "POST", path+"/registrationKey", "").Text("registrationKey")
	a, b := m.machine("anna", key), m.machine("bert", key)
	a.report(0, nil)
	b.report(0, nil)
	m.Want(204, "DELETE", path+"/nodes/"+id+"-node-2", "")
	c := m.machine("cara", m.Want(202, "POST", path+"/nodes", "").Text("registrationKey"))
	c.report(0, nil)
	for range 2 {
		if status, answer := b.ask(checkin.Request{}); status != 410 {
			t.Fatalf("who was taken away gets %d %v", status, answer)
		}
		if status, answer := m.doorPost(checkin.RenewPath, checkin.RenewRequest{Request: newEnrolment(t).request}, b.certificate); status != 410 {
			t.Errorf("who was taken away gets a certificate: %d %v", status, answer)
		}
	}
	if status, answer := c.ask(checkin.Request{}); status != 200 {
		t.Errorf("who has the place gets %d %v", status, answer)
	}
	if r := m.instance(id); r.Text("status") != "HEALTHY" || r.Text("nodes.1.name") != "cara" ||
		r.Text("nodes.1.connectionStatus") != "CONNECTED" {
		t.Errorf("it is %s", r.Body)
	}
	// After the deletion of the first node the other one continues.
	m.Want(204, "DELETE", path+"/nodes/"+id+"-node-1", "")
	if status, answer := c.ask(checkin.Request{}); status != 200 {
		t.Errorf("the only one gets %d %v", status, answer)
	}
	c.report(0, nil)
	if r := m.instance(id); r.Text("status") != "HEALTHY" || r.Text("nodeCount") != "1" || r.Get("nodes.1") != nil {
		t.Errorf("with one node it is %s", r.Body)
	}
}

// TestNodesBeforeTheFirstReport checks that a machine that has enrolled and not yet reported counts as the first of several nodes.
func TestNodesBeforeTheFirstReport(t *testing.T) {
	m := startAlone(t)
	id, key := m.create("one")
	a := m.machine("anna", key)
	m.Want(200, "PATCH", "/user/api/v1/fleetInstances/"+id, `{"nodeCount":2}`)
	a.report(0, nil)
	m.machine("bert", key).report(0, nil)
	if r := m.instance(id); r.Text("status") != "HEALTHY" || r.Text("nodes.1.name") != "bert" {
		t.Errorf("it is %s", r.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "nodeCount", "PATCH", "/user/api/v1/fleetInstances/"+id, `{"nodeCount":0}`)
	m.Refused(400, "InvalidResourceFieldValue", "nodeCount", "PATCH", "/user/api/v1/fleetInstances/"+id, `{"nodeCount":null}`)
}
