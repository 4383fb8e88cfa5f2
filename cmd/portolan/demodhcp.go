package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"portolan/client"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server"
	"portolan/internal/wire/checkin"
)

// demoSite is a network of the sample whose clients get addresses, and the service point that serves them.
type demoSite struct{ servicePoint, address, network, pool string }

// demoPort is served on another port than 67. The demo needs no privileges for it and does not answer clients of the machine's networks;
// `portolan dhcp ask` is its client. demoLAN is served on port 67 of a network namespace, if the demo may create one.
var (
	demoPort = demoSite{demoPoints[0].name, "127.0.0.2", "10.0.0.0/24", "10.0.0.200-10.0.0.239"}
	demoLAN  = demoSite{demoPoints[1].name, "10.0.1.2", "10.0.1.0/24", "10.0.1.200-10.0.1.239"}
)

// deploy deploys a DHCP server with a configuration to the service point, assigns it the network, and deploys it.
func (d demoSite) deploy(ctx context.Context, m *server.Manager, token, configuration string) error {
	return m.Fleet.List(ctx, fleet.Filter{Name: d.servicePoint}, func(i fleet.Instance) error {
		if err := demoApplication(ctx, m, i.ID, checkin.DHCP, "%s", configuration); err != nil {
			return err
		}
		return d.deployServer(ctx, &client.Client{Base: m.URL(), Token: token}, i.ID)
	})
}

// deployServer assigns the network to the server of the service point, and deploys it. It creates a server that does not exist.
func (d demoSite) deployServer(ctx context.Context, api *client.Client, servicePoint string) error {
	one := func(collection, filter string) (int64, error) {
		ids, err := api.IDs(ctx, collection, filter, 1)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return ids[0], nil
	}
	configuration, err := one("configurations", "name:'"+server.SampleName+"'")
	if err != nil || configuration == 0 { // the user deleted the sample
		return err
	}
	network, err := one("networks", fmt.Sprintf("range:'%s' and configuration.id:%d", d.network, configuration))
	if err != nil || network == 0 {
		return err
	}
	id, err := one(fmt.Sprintf("configurations/%d/servers", configuration), "name:'"+d.servicePoint+"'")
	if err != nil {
		return err
	}
	if id == 0 {
		if id, err = demoServer(ctx, api, configuration, d.servicePoint, d.address, servicePoint); err != nil {
			return err
		}
	}
	roles, err := api.IDs(ctx, fmt.Sprintf("networks/%d/deploymentRoles", network), "type:'DHCPDeploymentRole'", 1)
	if err != nil {
		return err
	}
	if len(roles) == 0 { // not a later start with the same data
		if err := d.createRole(ctx, api, id, network); err != nil {
			return err
		}
	}
	for {
		_, err = api.DeployService(ctx, id, "FullDeployment", "DHCPv4")
		if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Code != "ServerIsDeploying" {
			return err
		}
		select { // the deployment of DNS goes first
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// demoVisitors are the host names of the clients that get leases of demoPort.
var demoVisitors = []string{"pilot-tablet", "customs-laptop", "crane-3-display", "berth-camera-1", "berth-camera-2", "chandler-phone",
	"tug-anna", "weather-mast", "guest-printer", "signal-lamp"}

// maxVisit is the maximum time until the last of demoVisitors has its lease.
const maxVisit = 2 * time.Minute

// visit gets a lease of the server at an address for each of demoVisitors. A client asks again until it has a lease, because the server
// begins to serve once it has its content.
func (d demoSite) visit(ctx context.Context, s *session, at string) error {
	ctx, cancel := context.WithTimeout(ctx, maxVisit)
	defer cancel()
	for n, name := range demoVisitors {
		command := dhcpAskCommand{Network: d.network, HostName: name, Server: at, MACAddress: fmt.Sprintf("02:00:5e:10:00:%02x", n+1)}
		client, err := command.asker()
		if err != nil {
			return err
		}
		err = client.awaitLease(ctx, s)
		if err := errors.Join(err, client.conn.Close()); err != nil {
			return fmt.Errorf("lease of %s: %w", name, err)
		}
	}
	return nil
}

// awaitLease asks for a lease until the server acknowledges one.
func (a *dhcpAsker) awaitLease(ctx context.Context, s *session) error {
	for {
		reply, err := a.getLease(s, false)
		if err == nil && reply.MessageType() == dhcpv4.MessageTypeAck {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond): // an error may be immediate
		}
	}
}

// createRole creates the DHCP range and the options of the network, and its role.
func (d demoSite) createRole(ctx context.Context, api *client.Client, id, network int64) error {
	interfaces, err := api.IDs(ctx, fmt.Sprintf("servers/%d/interfaces", id), "", 1)
	if err != nil {
		return err
	}
	below := func(collection string) string { return fmt.Sprintf("networks/%d/%s", network, collection) }
	option := func(kind, name string, value any) client.BatchChange {
		return client.BatchChange{Method: "POST", Path: below("deploymentOptions"), Body: map[string]any{"type": kind, "name": name,
			"value": value}}
	}
	_, err = api.Batch(ctx, []client.BatchChange{
		{Method: "POST", Path: below("ranges"), Body: map[string]any{"type": "IPv4DHCPRange", "name": "visitors", "range": d.pool,
			"splitAroundStaticAddresses": true}},
		option("DHCPv4ClientOption", "domain-name", "harbour.example"),
		option("DHCPv4ServiceOption", "default-lease-time", 3600),
		option("DHCPv4ServiceOption", "ping-check", false), // nothing but this machine is asked
		{Method: "PATCH", Path: fmt.Sprintf("networks/%d", network), Body: map[string]any{"dynamicUpdateEnabled": true}},
		{Method: "POST", Path: below("deploymentRoles"), Body: map[string]any{"type": "DHCPDeploymentRole", "roleType": "PRIMARY",
			"interfaces": []map[string]any{{"id": interfaces[0]}}}},
	}, client.BatchOptions{})
	return err
}
