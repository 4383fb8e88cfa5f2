// Package deploytest provides servers to deploy to, and service points that confirm the revisions that a test sets.
package deploytest

import (
	"sync"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// Points are service points that exist and are connected, with an application for each service and the same state for all services.
type Points struct {
	// Provides are the capabilities of their applications.
	Provides checkin.Capabilities

	mu        sync.Mutex
	confirmed map[string]string
}

// Changed does nothing.
func (*Points) Changed(*store.Tx, string) {}

// Wake does nothing.
func (*Points) Wake(string) {}

// Serving returns the revision that a service point has confirmed.
func (p *Points) Serving(_ *store.Tx, servicePoint, _ string) (dnspublish.Serving, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return dnspublish.Serving{Exists: true, Provides: p.Provides, Content: p.confirmed[servicePoint]}, nil
}

// Confirm sets the revision that a service point has confirmed.
func (p *Points) Confirm(servicePoint, revision string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.confirmed == nil {
		p.confirmed = map[string]string{}
	}
	p.confirmed[servicePoint] = revision
}

// Plan is a DNS server with a zone and a record for it. The fields are paths, except for Record and Point, which are IDs, and Last, the ID
// of the last deployment.
type Plan struct {
	*apitest.Client
	Server, Zone, Record, Point, Last string
}

// NewPlan creates a view, a zone with a record, and a server with a service point, below a configuration.
func NewPlan(c *apitest.Client, configuration, point string) *Plan {
	c.T.Helper()
	p := &Plan{Client: c, Point: point}
	at := "/api/v2/configurations/" + configuration
	view := c.ID(at+"/views", `{"name":"on the wire"}`)
	p.Zone = "/api/v2/zones/" + c.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"wire.example","deploymentEnabled":true}`)
	p.Record = c.ID(p.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"a","text":"x"}`)
	p.Server = "/api/v2/servers/" + c.ID(at+"/servers", `{"type":"Server","name":"wire","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point+
		`","overrideConfigurationLevelDnsValidation":true,"dnsZoneValidationEnabled":true,"interfaces":[{"type":"NetworkInterface",`+
		`"name":"wire.example.net","managementAddress":"10.0.0.99"}]}`)
	own := c.Want(200, "GET", p.Server+"/interfaces", "").Text("data.0.id")
	c.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	return p
}

// Ends creates a deployment of the server, waits until it has a state, and returns its message.
func (p *Plan) Ends(body, state string) (message string) {
	p.T.Helper()
	p.Last = p.ID(p.Server+"/deployments", body)
	return Await(p.Client, p.Last, state)
}

// Carries creates a deployment, waits until it waits for the service point, and returns its message.
func (p *Plan) Carries(path, body string) (message string) {
	p.T.Helper()
	p.Last = p.ID(path, body)
	return AwaitPoint(p.Client, p.Last)
}

// Await waits until a deployment has a state, and returns its message.
func Await(c *apitest.Client, id, state string) (message string) {
	c.T.Helper()
	return await(c, id, state, func(r apitest.Reply) bool { return r.Text("state") == state })
}

// AwaitPoint waits until a deployment waits for its service point, and returns its message.
func AwaitPoint(c *apitest.Client, id string) (message string) {
	c.T.Helper()
	return await(c, id, "waiting", func(r apitest.Reply) bool { return r.Text("state") == "RUNNING" && r.Text("percentComplete") == "90" })
}

// await waits for a state of a deployment. A deployment that has failed ends the test.
func await(c *apitest.Client, id, state string, is func(r apitest.Reply) bool) (message string) {
	c.T.Helper()
	apitest.Eventually(c.T, "the deployment is "+state, func() bool {
		r := c.Want(200, "GET", "/api/v2/deployments/"+id, "")
		if message = r.Text("message"); is(r) {
			return true
		}
		if r.Text("state") == "FAILED" {
			c.T.Fatalf("the deployment failed: %s", message)
		}
		return false
	})
	return message
}
