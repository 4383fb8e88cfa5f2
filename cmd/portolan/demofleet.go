package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portolan/client"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// demoVersion returns the release that the demo's service points can be updated to: this program under another version.
func demoVersion() string { return versionText() + "+demo" }

// publishDemo creates the demo's release repository with this program as the only release.
func publishDemo(data string) error {
	r, keys, now := release.Repository{Dir: filepath.Join(data, "releases")}, filepath.Join(data, "release-keys"), time.Now()
	if _, err := os.Stat(keys); err != nil {
		if err := r.Init(keys, now); err != nil {
			return err
		}
	}
	if s, err := r.State(); err != nil || !s.Has(demoVersion(), release.Platform()) {
		path, err := os.Executable()
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := r.Add(keys, demoVersion(), release.Platform(), f, now); err != nil {
			return err
		}
	}
	return r.Publish(keys, release.TimestampLife, now)
}

// deployNames deploys a name server for the sample zones and a resolver that forwards to it on the lighthouse. It returns their addresses.
func (c *demoCommand) deployNames(ctx context.Context, m *server.Manager, token string) (authority, resolver string, err error) {
	if authority, err = freeAddress(c.NameServer); err != nil {
		return "", "", err
	}
	if resolver, err = freeAddress(c.Resolver); err != nil {
		return "", "", err
	}
	return authority, resolver, m.Fleet.List(ctx, fleet.Filter{Name: demoPoints[0].name}, func(i fleet.Instance) error {
		err := demoApplication(ctx, m, i.ID, checkin.Authority, `{"listen":[%s],"identity":"lighthouse"}`, listener(authority))
		if err == nil {
			err = demoApplication(ctx, m, i.ID, checkin.Resolver, `{"listen":[%s],"upstreams":[{"address":%q}]}`, listener(resolver), authority)
		}
		if err == nil {
			err = demoNames(ctx, &client.Client{Base: m.URL(), Token: token}, i.ID)
		}
		return err
	})
}

// listener returns an address and port as a listener in an application's configuration.
func listener(at string) string {
	host, port, _ := strings.Cut(at, ":")
	return fmt.Sprintf(`{"address":%q,"port":%s}`, host, port)
}

// demoApplication deploys an application to a service point, or configures the existing one.
func demoApplication(ctx context.Context, m *server.Manager, servicePoint string, name string, format string, args ...any) error {
	all, err := m.Fleet.Applications(ctx, servicePoint)
	if err != nil {
		return err
	}
	configuration := fmt.Appendf(nil, format, args...)
	for _, one := range all {
		if one.Name == name {
			return m.Fleet.Change(ctx, servicePoint, one.ID, fleet.ApplicationChange{Configuration: configuration})
		}
	}
	_, err = m.Fleet.Deploy(ctx, servicePoint, fleet.ApplicationChange{Name: &name, Configuration: configuration})
	return err
}

// demoNames creates the server of the lighthouse, assigns it the internal view and its reverse zones, and deploys them. Later changes are
// deployed automatically. An existing server is kept and deployed again.
func demoNames(ctx context.Context, api *client.Client, servicePoint string) error {
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
	at := fmt.Sprintf("configurations/%d/", configuration)
	view, err := one(at+"views", "name:'internal'")
	if err != nil || view == 0 {
		return err
	}
	id, err := one(at+"servers", "name:'"+demoPoints[0].name+"'")
	if err != nil {
		return err
	}
	if id == 0 {
		return demoRoles(ctx, api, configuration, view, servicePoint)
	}
	if err := api.Change(ctx, fmt.Sprintf("servers/%d", id), map[string]any{"servicePoint": servicePoint}, nil); err != nil {
		return err
	}
	_, err = api.DeployServer(ctx, id, "FullDeployment")
	// A deployment that was running when the demo stopped continues.
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Code == "ServerIsDeploying" {
		return nil
	}
	return err
}

// demoServer creates the server of a service point with an address, and returns its ID.
func demoServer(ctx context.Context, api *client.Client, configuration int64, name, address, servicePoint string) (int64, error) {
	var made client.Head
	err := api.Create(ctx, fmt.Sprintf("configurations/%d/servers", configuration), map[string]any{"type": "Server", "name": name,
		"profile": "PORTOLAN_SERVICE_POINT", "servicePoint": servicePoint, "interfaces": []map[string]any{{"type": "NetworkInterface",
			"name": name + ".example", "managementAddress": address}}}, &made)
	return made.ID, err
}

// demoRoles creates the server of the lighthouse and its deployment roles.
func demoRoles(ctx context.Context, api *client.Client, configuration, view int64, servicePoint string) error {
	id, err := demoServer(ctx, api, configuration, demoPort.servicePoint, demoPort.address, servicePoint)
	if err != nil {
		return err
	}
	interfaces, err := api.IDs(ctx, fmt.Sprintf("servers/%d/interfaces", id), "", 1)
	if err != nil {
		return err
	}
	blocks, err := api.IDs(ctx, fmt.Sprintf("configurations/%d/blocks", configuration), "name:'Harbour'", 2)
	if err != nil {
		return err
	}
	reference := func(id int64) map[string]any { return map[string]any{"id": id} }
	role := map[string]any{"type": "DNSDeploymentRole", "roleType": "PRIMARY", "view": reference(view),
		"interfaces": []map[string]any{reference(interfaces[0])}}
	changes := []client.BatchChange{{Method: "POST", Path: fmt.Sprintf("views/%d/deploymentRoles", view), Body: role},
		{Method: "PATCH", Path: fmt.Sprintf("views/%d", view), Body: map[string]any{"liveDeployment": true}}}
	for _, block := range blocks {
		changes = append(changes, client.BatchChange{Method: "POST", Path: fmt.Sprintf("blocks/%d/deploymentRoles", block), Body: role})
	}
	if _, err := api.Batch(ctx, changes, client.BatchOptions{}); err != nil {
		return err
	}
	_, err = api.DeployServer(ctx, id, "FullDeployment")
	return err
}

// freeAddress returns the address, or a free one on 127.0.0.1, that is available for UDP and TCP.
func freeAddress(address string) (string, error) {
	for _, one := range []string{address, "127.0.0.1:0"} {
		packets, err := net.ListenPacket("udp", one)
		if err != nil {
			continue
		}
		at := packets.LocalAddr().String()
		l, err := net.Listen("tcp", at)
		_ = packets.Close()
		if err == nil {
			_ = l.Close()
			return at, nil
		}
	}
	return "", fmt.Errorf("no free address: tried %s and 127.0.0.1", address)
}

// agentArgs returns the command line of a demo service point for a release that it is updated to.
func agentArgs(state, diagnostics, status, target string, namespaces map[string]string) []string {
	args := []string{"agent", "--state", state, "--diagnostics-listen", diagnostics, "--status-listen", status, "--gateway", "127.0.0.1",
		"--ping-target", "127.0.0.1", "--http-target", target}
	for application, namespace := range namespaces {
		args = append(args, "--network-namespace", application+"="+namespace)
	}
	return args
}
