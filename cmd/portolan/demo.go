package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"portolan/client"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/wire/checkin"
)

type demoCommand struct {
	Listen        string `help:"The address of the API listener." default:"127.0.0.1:8080" placeholder:"ADDR"`
	CheckinListen string `help:"The address for check-ins of service points. If the port is in use, the demo selects another one." default:"127.0.0.1:8443" placeholder:"ADDR"`
	// Diagnostics has the order of demoPoints.
	Diagnostics []string `help:"The addresses of the diagnostics listeners. If one is not available, the demo uses the next free port of 127.0.0.1." default:"127.0.0.2:8083,127.0.0.3:8083" placeholder:"ADDR,ADDR"`
	NameServer  string   `help:"The address of the name server. If the port is in use, the demo selects another one." default:"127.0.0.2:5353" placeholder:"ADDR"`
	Resolver    string   `help:"The address of the resolver. If the port is in use, the demo selects another one." default:"127.0.0.2:5354" placeholder:"ADDR"`
	DHCP        string   `help:"The address of the DHCP server. If the port is in use, the demo selects another one." name:"dhcp" default:"127.0.0.2:6767" placeholder:"ADDRESS"`
	Status      string   `help:"The address of the resolver's status listener for load balancers." default:"127.0.0.2:2021" placeholder:"ADDR"`
	Data        string   `help:"The directory to keep the data in. Without it, the demo deletes its data when it ends." type:"path" placeholder:"DIR"`
}

// demoNotes are the credentials that a demo with --data stores for its next start.
type demoNotes struct {
	Password, Token string
}

// demoPoint is a service point of the demo.
type demoPoint struct{ name, variant string }

var demoPoints = []demoPoint{{"lighthouse", checkin.Fleet}, {"harbour-master", checkin.V4}}

// Run starts the manager and the service points, and waits until it is interrupted.
func (c *demoCommand) Run(s *session) (err error) {
	ctx, stop := endsOnHangUp(s.ctx)
	defer stop()
	s.ctx = ctx
	if c.Data == "" {
		if c.Data, err = os.MkdirTemp("", "portolan-demo-"); err != nil {
			return err
		}
		defer func() {
			if e := os.RemoveAll(c.Data); err == nil {
				err = e
			}
		}()
	}
	notes, err := readNotes(c.Data)
	if err != nil {
		return err
	}
	logFile, err := s.logTo(filepath.Join(c.Data, demoLog))
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	began := time.Now()
	m, err := c.start(s, notes)
	if err != nil {
		return err
	}
	started := time.Now()
	defer func() {
		if e := m.Close(); err == nil {
			err = e
		}
	}()
	if err := server.Sample(s.ctx, m.Address); err != nil {
		return err
	}
	if err := demoFigures(s.ctx, m); err != nil {
		s.log.Error("demo figures not stored", "error", err)
	}
	if notes.Token == "" {
		if notes.Token, err = m.Identity.CreateToken(s.ctx, identity.Grant{Name: "demo", Role: authz.Administrator, User: "admin",
			Life: identity.DefaultLife}); err != nil {
			return err
		}
	}
	if err := notes.save(c.Data); err != nil {
		return err
	}
	segment := createSegment(s.ctx, s.log)
	if segment != nil {
		defer segment.remove(context.WithoutCancel(s.ctx), s.log)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var agents sync.WaitGroup
	defer agents.Wait()
	defer cancel()
	urls, err := c.startServicePoints(ctx, s, m, segment, &agents)
	if err != nil {
		return err
	}
	authority, resolver, err := c.deployNames(ctx, m, notes.Token)
	if err != nil {
		return err
	}
	api := &client.Client{Base: m.URL(), Token: notes.Token}
	if err := demoStory(ctx, api, notes.Password); err != nil {
		return err
	}
	if err := demoDiscovery(ctx, m, api); err != nil {
		return err
	}
	s.log.Info("demo ready", "managerStart", started.Sub(began), "data", time.Since(started))
	dhcp, err := freeAddress(c.DHCP)
	if err != nil {
		return err
	}
	agents.Go(func() { // waits for the deployment of DNS
		err := demoPort.deploy(ctx, m, notes.Token, fmt.Sprintf(`{"listen":[%q]}`, dhcp))
		if err == nil && segment != nil {
			err = demoLAN.deploy(ctx, m, notes.Token, `{"interfaces":["lan0"]}`)
		}
		if err == nil {
			err = demoPort.visit(ctx, s, dhcp)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("demo dhcp deployment failed", "error", err)
		}
	})
	rollOut, sail := startBuoys(ctx, s, m)
	agents.Go(sail)
	agents.Go(func() { // takes a moment
		if err := publishDemo(c.Data); err != nil {
			s.log.Error("demo release publishing failed", "error", err)
		} else if err := rollOut(); err != nil && ctx.Err() == nil {
			s.log.Error("demo rollout not started", "error", err)
		}
	})
	link, err := m.Identity.NewLink(s.ctx, "admin")
	if err != nil {
		return err
	}
	printDemo(s, m, notes, signInLink(m.URL(), link), urls, authority, resolver, dhcp, segment.command(), logFile.Name())
	select {
	case <-s.ctx.Done():
		return nil
	case err := <-m.Failure():
		return err
	}
}

// demoLog is the name of the log file in the data directory.
const demoLog = "demo.log"

// logTo directs the log of a session to the end of a file, which only the user can read. The caller closes the file.
func (s *session) logTo(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	s.log = slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: s.level}))
	slog.SetDefault(s.log)
	return file, nil
}

func readNotes(dir string) (n demoNotes, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "portolan.db")); err == nil {
			return n, usageError{fmt.Errorf("%s contains the data of a manager that is not a demo: set --data to another directory", dir)}
		}
		return demoNotes{Password: secrets.New()[:16]}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	return n, err
}

func (n demoNotes) save(dir string) error {
	text, err := json.Marshal(n) //nolint:gosec // the password of the demo, in a file that only the user can read
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "demo.json"), text, 0o600)
}

// start starts the manager. If the check-in port is in use, it selects another one. It saves the password before the manager creates the
// user admin with it, so that a demo that was killed can start again.
func (c *demoCommand) start(s *session, notes demoNotes) (*server.Manager, error) {
	if len(c.Diagnostics) != len(demoPoints) {
		return nil, usageError{fmt.Errorf("--diagnostics: give %d addresses, one for each service point of the demo", len(demoPoints))}
	}
	for _, a := range append([]string{c.Listen, c.CheckinListen, c.NameServer, c.Resolver, c.DHCP, c.Status}, c.Diagnostics...) {
		host, _, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, usageError{fmt.Errorf("the demo only listens on loopback, and %q is not a loopback address: use portolan serve", a)}
		}
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, err
	}
	if err := notes.save(c.Data); err != nil {
		return nil, err
	}
	checkinListen := c.CheckinListen
	if l, err := net.Listen("tcp", checkinListen); err == nil {
		_ = l.Close()
	} else {
		checkinListen = "127.0.0.1:0"
	}
	limit := server.Tune()
	return server.Start(s.ctx, server.Options{MemoryLimit: limit, Programs: all.Programs(),
		Data: c.Data, Listen: c.Listen, CheckinListen: checkinListen, AdminPassword: notes.Password,
		Version: versionText(), Log: s.log, LogLevel: s.logLevel})
}

// startServicePoints starts the service points. At their first start they enrol through the check-in listener.
func (c *demoCommand) startServicePoints(ctx context.Context, s *session, m *server.Manager, segment *demoSegment,
	agents *sync.WaitGroup) (urls []string,
	err error) {
	program, err := applicationProgram()
	if err != nil {
		return nil, err
	}
	var launchers []*servicepoint.Launcher
	var held []net.Listener
	release := func() { // the service points open their own listeners
		for _, l := range held {
			_ = l.Close()
		}
	}
	for i, p := range demoPoints {
		namespaces := segment.namespaces(p.name, checkin.DHCP)
		o := servicepoint.Options{Program: program, Versions: applicationVersions(), Stateful: all.Stateful(), Namespaces: namespaces,
			StatusListen: []string{c.Status},
			State:        filepath.Join(c.Data, "service-points", p.name),
			Endpoint:     m.RegistrationEndpoint(), Variant: p.variant, Version: versionText(), Log: s.log.With("service point", p.name),
			Targets: servicepoint.Targets{Gateway: "127.0.0.1", Ping: "127.0.0.1", HTTP: m.URL() + "/healthz"}}
		if _, err := os.Stat(filepath.Join(o.State, "identity.json")); errors.Is(err, fs.ErrNotExist) {
			if o.Key, err = demoKey(ctx, m, p); err != nil {
				release()
				return nil, err
			}
		}
		listen := c.Diagnostics[i]
		l, err := nextFree(listen) // open until all service points have a port, so that the ports differ
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, l)
		o.DiagnosticsListen, o.Launched = l.Addr().String(), true
		url := "http://" + o.DiagnosticsListen + "/api/v1/diagnostics"
		if !strings.Contains(url, listen) {
			url += "  (" + listen + " cannot be had)"
		}
		urls = append(urls, url)
		launchers = append(launchers, &servicepoint.Launcher{State: o.State, Version: versionText(), Log: o.Log,
			Args: agentArgs(o.State, o.DiagnosticsListen, c.Status, o.Targets.HTTP, namespaces), Base: func(ctx context.Context) error {
				agent, err := servicepoint.New(o)
				if err != nil {
					return err
				}
				return agent.Run(ctx)
			}})
	}
	release()
	for i, launcher := range launchers {
		agents.Go(func() {
			if err := launcher.Run(ctx); err != nil {
				s.log.Error("service point ended", "name", demoPoints[i].name, "error", err)
			}
		})
	}
	return urls, nil
}

// demoKey creates a service point and returns its registration key. It recreates a service point that never enrolled.
func demoKey(ctx context.Context, m *server.Manager, p demoPoint) (string, error) {
	var old []string
	if err := m.Fleet.List(ctx, fleet.Filter{Name: p.name}, func(i fleet.Instance) error {
		old = append(old, i.ID)
		return nil
	}); err != nil {
		return "", err
	}
	for _, id := range old {
		if err := m.Fleet.Delete(ctx, id); err != nil {
			return "", err
		}
	}
	description := "A service point of the demo, of the kind " + p.variant
	created, err := m.Fleet.Create(ctx, fleet.Wanted{Name: p.name, Description: &description, Endpoint: m.RegistrationEndpoint()})
	if err == nil && p.variant == checkin.V4 {
		name, configuration := "http-probe-service", `{"targets":[{"name":"manager","url":"`+m.URL()+`/healthz"},`+
			`{"name":"tide-gauge","url":"http://127.0.0.1:9/"}],"intervalSeconds":10}` // the second target fails: port 9 is closed
		_, err = m.Fleet.Deploy(ctx, created.FleetInstanceID, fleet.ApplicationChange{Name: &name, Configuration: []byte(configuration)})
	}
	return created.RegistrationKey, err
}

// nextFree listens on an address. If the address is not available, it listens on the next free port of 127.0.0.1.
func nextFree(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	for port := 8083; err != nil && port < 8183; port++ {
		l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}
	return l, err
}

func printDemo(s *session, m *server.Manager, n demoNotes, console string, points []string, authority, resolver, dhcp,
	dhcpClient, logFile string) {
	u := m.URL()
	host, port, _ := strings.Cut(authority, ":")
	if dhcpClient != "" {
		dhcpClient = "\n  " + dhcpClient + "    (a client in a network namespace, served for " + demoLAN.network + ")"
	}
	fmt.Fprintf(s.stdout, `Portolan is running, with sample data. Stop it with Ctrl-C.

  console        %[12]s
                 (signs you in once, within 15 minutes; then by user and password)
  address API    %[1]s/api/v2
  API reference  %[1]s/api/docs
  fleet API      %[1]s/user/api/v1/fleetInstances
  check-in API   %[2]s
  diagnostics    %[3]s
                 %[4]s
  name server    %[8]s port %[9]s
  resolver       %[11]s
  DHCP server    %[14]s
  log            %[13]s

  user           admin
  password       %[5]s
  bearer token   %[6]s

Try:

  curl -s -u 'admin:%[5]s' '%[1]s/api/v2/networks?limit=3&fields=id,name,range'
  curl -s -H 'Authorization: Bearer %[6]s' '%[1]s/user/api/v1/fleetInstances'
  curl -s '%[7]s'
  dig @%[8]s -p %[9]s crane-1-1-1.harbour.example +short    (changes of the view internal are served at once)
  export PORTOLAN_URL=%[1]s PORTOLAN_TOKEN=%[6]s
  portolan dhcp ask %[15]s --network %[16]s    (portolan dhcp leases networks/%[16]s lists the lease)%[17]s
  portolan rollout start %[10]s --filter label=%[18]s --watch
                 (updates lighthouse and harbour-master, as soon as portolan fleet releases lists the version;
                 portolan rollout take-back ID rolls it back; the rollout to the buoys is part done)
`, u, m.RegistrationEndpoint(), points[0], points[1], n.Password, n.Token, strings.Fields(points[0])[0], host, port, demoVersion(),
		strings.Replace(resolver, ":", " port ", 1), console, logFile, strings.Replace(dhcp, ":", " port ", 1), dhcp, demoPort.network,
		dhcpClient, demoLabel+"="+demoQuay)
}
