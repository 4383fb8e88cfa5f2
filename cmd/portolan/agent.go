package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"portolan/internal/servicepoint"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/wire/checkin"
)

type agentCommand struct {
	Config                kong.ConfigFlag `help:"A YAML file of settings with the names of these flags and their values. The command line and the environment override it." env:"PORTOLAN_AGENT_CONFIG" placeholder:"FILE"`
	RegistrationEndpoint  string          `help:"The URL to enrol at. The manager prints it when it creates the service point." placeholder:"URL"`
	RegistrationKey       string          `help:"The registration key, valid once. Prefer PORTOLAN_REGISTRATION_KEY or a file." placeholder:"KEY"`
	RegistrationKeyFile   string          `help:"A file with the registration key." type:"path" placeholder:"FILE"`
	State                 string          `help:"The state directory. After enrolment, the agent needs no other flag." required:"" type:"path" placeholder:"DIR"`
	Variant               string          `help:"The kind of service point: fleet or v4. Default: the kind that it enrolled as; fleet before enrolment." enum:",fleet,v4" default:""`
	DiagnosticsName       []string        `help:"An additional host name that the diagnostics listener accepts, besides the host name and addresses of this machine." placeholder:"NAME"`
	DiagnosticsListen     string          `help:"The address of the diagnostics listener. It is read-only and requires no sign-in." default:":8083" placeholder:"ADDR"`
	StatusListen          []string        `help:"The addresses of the status listener for load balancers, active while a resolver runs. off disables it." default:":80,:2021" placeholder:"ADDR|off,..."`
	HTTPProxy             string          `help:"The HTTP proxy for all requests, including those to the manager, without a password." name:"http-proxy" placeholder:"URL"`
	HTTPProxyPasswordFile string          `help:"A file with the proxy's password." name:"http-proxy-password-file" type:"path" placeholder:"FILE"`
	NoProxy               string          `help:"Names, addresses and prefixes to connect to without the proxy, separated by commas." placeholder:"HOST,..."`
	Gateway               string          `help:"The gateway to ping; 'off' for none. Default: the default gateway of the routing table." placeholder:"IP|off"`
	PingTarget            string          `help:"The public address to ping; 'off' for none. Default: a public resolver, every five minutes." placeholder:"IP|off"`
	HTTPTarget            string          `help:"The public site to request; 'off' for none. Default: a public site, every five minutes." name:"http-target" placeholder:"URL|off"`
	ProbeInterval         time.Duration   `help:"The interval between network probes." default:"10s"`
	Engine                string          `help:"The name server: portolan, or bind. With bind, Portolan writes the configuration and zone files of BIND." enum:"portolan,bind" default:"portolan"`
	bindFlags
	NetworkNamespace map[string]string `help:"The network namespace (ip netns) of an application, such as dhcp-service=lan. Requires root on Linux." placeholder:"APPLICATION=NAME"`
	UpdateTrial      time.Duration     `help:"The time for a new release to become healthy. After it, the agent returns to the previous release." default:"3m"`
	UpdateRoot       string            `help:"The trusted root of the release repository, a file root.json. Default: the manager's root at the first update." type:"existingfile" placeholder:"FILE"`
}

// Help returns examples.
func (agentCommand) Help() string {
	return `Examples:

  PORTOLAN_REGISTRATION_KEY=ptlk_... portolan agent --state /var/lib/portolan-agent \
      --registration-endpoint https://portolan.example.net:8443/enrol/v1
  portolan agent --config /etc/portolan/agent.yaml`
}

// Run runs the service point until it is interrupted, in the release that it was last updated to.
func (c *agentCommand) Run(s *session) error {
	ctx, stop := endsOnHangUp(s.ctx)
	defer stop()
	s.ctx = ctx
	if c.UpdateTrial < time.Second {
		return usageError{errors.New("--update-trial must be 1s or more")}
	}
	if c.UpdateRoot != "" {
		if err := servicepoint.TrustRoot(c.State, c.UpdateRoot); err != nil {
			return err
		}
	}
	if release := os.Getenv(servicepoint.ReleaseVariable); release != "" { // the launcher started this process
		ctx, cancel := servicepoint.WithLauncher(s.ctx)
		defer cancel()
		err := c.run(ctx, s, release, os.Getenv(servicepoint.BaseVariable))
		if errors.Is(err, servicepoint.ErrSwitch) {
			return nil
		}
		return err
	}
	l := servicepoint.Launcher{State: c.State, Version: versionText(), Trial: c.UpdateTrial, Log: s.log, Args: os.Args[1:],
		Base: func(ctx context.Context) error { return c.run(ctx, s, versionText(), versionText()) }}
	return l.Run(s.ctx)
}

// run runs the agent of a release. base is the version of the installed program.
func (c *agentCommand) run(ctx context.Context, s *session, version, base string) error {
	targets, err := c.targets()
	if err != nil {
		return usageError{err}
	}
	key := c.RegistrationKey
	if c.RegistrationKeyFile != "" {
		text, err := os.ReadFile(c.RegistrationKeyFile)
		if err != nil {
			return usageError{fmt.Errorf("read the registration key: %w", err)}
		}
		key = strings.TrimSpace(string(text))
	}
	program, err := applicationProgram()
	if err != nil {
		return err
	}
	statusListen := c.StatusListen
	if slices.Contains(statusListen, servicepoint.Off) {
		if statusListen = nil; len(c.StatusListen) > 1 {
			return usageError{errors.New("--status-listen: off cannot be combined with addresses")}
		}
	}
	if err := checkNamespaces(c.NetworkNamespace); err != nil {
		return usageError{err}
	}
	driving := map[string][]string{}
	if c.Engine == "bind" {
		if _, err := c.bind(); err != nil {
			return err
		}
		driving[checkin.Authority] = c.args()
	}
	a, err := servicepoint.New(servicepoint.Options{Driving: driving, Namespaces: c.NetworkNamespace, Program: program,
		Versions: applicationVersions(),
		Stateful: all.Stateful(), State: c.State, Endpoint: c.RegistrationEndpoint, Key: key, Variant: c.Variant,
		DiagnosticsListen: c.DiagnosticsListen, Names: c.DiagnosticsName, StatusListen: statusListen, Targets: targets,
		Version: version, Base: base, Launched: true,
		Log:           s.log,
		ProbeInterval: c.ProbeInterval})
	if err != nil {
		if errors.Is(err, checkin.ErrKeyDamaged) {
			return usageError{err}
		}
		return err
	}
	s.log.Info("service point running", "state", c.State, "version", version)
	return a.Run(ctx)
}

// checkNamespaces rejects applications that do not exist, and texts that cannot be the name of a network namespace.
func checkNamespaces(all map[string]string) error {
	for application, name := range all {
		if _, ok := applicationVersions()[application]; !ok {
			return fmt.Errorf("--network-namespace: application %q does not exist", application)
		}
		if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
			return fmt.Errorf("--network-namespace: %q is not the name of a network namespace", name)
		}
	}
	return nil
}

func (c *agentCommand) targets() (t servicepoint.Targets, err error) {
	t = servicepoint.Targets{Gateway: c.Gateway, Ping: c.PingTarget, HTTP: c.HTTPTarget}
	for flag, ip := range map[string]string{"--gateway": c.Gateway, "--ping-target": c.PingTarget} {
		if ip != "" && ip != servicepoint.Off && net.ParseIP(ip) == nil {
			return t, fmt.Errorf("%s: %q is neither an IP address nor %s", flag, ip, servicepoint.Off)
		}
	}
	if c.HTTPTarget != "" && c.HTTPTarget != servicepoint.Off {
		if u, err := url.Parse(c.HTTPTarget); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return t, fmt.Errorf("--http-target: %q is neither an http URL nor %s", c.HTTPTarget, servicepoint.Off)
		}
	}
	if c.HTTPProxy == "" {
		for flag, value := range map[string]string{"--http-proxy-password-file": c.HTTPProxyPasswordFile, "--no-proxy": c.NoProxy} {
			if value != "" {
				return t, errors.New(flag + " needs --http-proxy")
			}
		}
		return t, nil
	}
	u, err := url.Parse(c.HTTPProxy)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return t, errors.New("--http-proxy: not an http or https URL") // not repeated: the value may contain a password
	}
	if _, set := u.User.Password(); set {
		return t, errors.New("--http-proxy: every user of this machine can read a password in an argument; use --http-proxy-password-file")
	}
	if c.HTTPProxyPasswordFile != "" {
		if u.User.Username() == "" {
			return t, errors.New("--http-proxy-password-file needs a user in --http-proxy, as in http://user@proxy:3128")
		}
		text, err := os.ReadFile(c.HTTPProxyPasswordFile)
		if err != nil {
			return t, fmt.Errorf("read the proxy's password: %w", err)
		}
		u.User = url.UserPassword(u.User.Username(), strings.TrimRight(string(text), "\r\n"))
	}
	t.Proxy, t.NoProxy = u, c.NoProxy
	return t, nil
}
