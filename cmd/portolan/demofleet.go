package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portolan/client"
	"portolan/internal/application"
	"portolan/internal/fleet"
	"portolan/internal/release"
	"portolan/internal/server"

	"github.com/miekg/dns"
)

// demoVersion is the release that the demo's service points can be updated to: the same program under another name.
func demoVersion() string { return versionText() + "+demo" }

// publishDemo makes the demo's releases, with this program as the only one.
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

// demoUpstream is a DNS server on loopback that answers for the addresses of the sample's hosts: whom the demo's resolver asks.
type demoUpstream struct {
	server *dns.Server
	api    *client.Client
	at     string
}

func newDemoUpstream(m *server.Manager, token string) (*demoUpstream, error) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &demoUpstream{api: &client.Client{Base: m.URL(), Token: token}, at: packets.LocalAddr().String()}
	u.server = &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(u.answer)}
	return u, nil
}

// answer answers one question.
func (u *demoUpstream) answer(w dns.ResponseWriter, r *dns.Msg) {
	answer := new(dns.Msg)
	answer.SetReply(r)
	answer.RecursionAvailable = true
	if len(r.Question) == 1 && r.Question[0].Qtype == dns.TypeA {
		addresses, err := u.addresses(context.Background(), strings.TrimSuffix(r.Question[0].Name, "."))
		if err != nil {
			answer.Rcode = dns.RcodeServerFailure
		} else if addresses == nil {
			answer.Rcode = dns.RcodeNameError
		}
		for _, a := range addresses {
			answer.Answer = append(answer.Answer, &dns.A{A: net.ParseIP(a),
				Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}})
		}
	}
	_ = w.WriteMsg(answer) // who has asked asks again
}

// addresses gives the addresses of a host; nil where there is none of the name.
func (u *demoUpstream) addresses(ctx context.Context, name string) (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if strings.ContainsAny(name, `'\`) { // no host is called so
		return nil, nil
	}
	hosts, err := u.api.List(ctx, "resourceRecords", client.Query{Limit: 1, Fields: "id",
		Filter: "absoluteName:'" + name + "' and type:'HostRecord'"})
	if err != nil || len(hosts.Data) == 0 {
		return nil, err
	}
	var host struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(hosts.Data[0], &host); err != nil {
		return nil, err
	}
	found, err := u.api.List(ctx, fmt.Sprintf("resourceRecords/%d/addresses", host.ID), client.Query{Fields: "address"})
	for _, text := range found.Data {
		var a struct {
			Address string `json:"address"`
		}
		if err := json.Unmarshal(text, &a); err != nil {
			return nil, err
		}
		addresses = append(addresses, a.Address)
	}
	return addresses, err
}

// demoResolver lets a service point answer DNS at an address, by the upstream of this demo.
func demoResolver(ctx context.Context, m *server.Manager, servicePoint, at, upstream string) error {
	listen, port, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	const name = application.Resolver
	configuration := fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}],"upstreams":[{"address":%q}]}`, listen, port, upstream)
	all, err := m.Fleet.Applications(ctx, servicePoint)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name == name {
			return m.Fleet.Change(ctx, servicePoint, one.ID, fleet.ApplicationChange{Configuration: configuration})
		}
	}
	called := string(name)
	_, err = m.Fleet.Deploy(ctx, servicePoint, fleet.ApplicationChange{Name: &called, Configuration: configuration})
	return err
}

// freeForDNS gives the address or, where it cannot be had, another one that is free for UDP and TCP.
func freeForDNS(address string) (string, error) {
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
	return "", fmt.Errorf("no address is free for DNS, neither %s nor on 127.0.0.1", address)
}

// demoStatus is where the status of the demo's resolver is found.
const demoStatus = "127.0.0.2:2021"

// agentArgs is the command line of a service point of the demo, for a release that it is updated to.
func agentArgs(state, diagnostics, target string) []string {
	return []string{"agent", "--state", state, "--diagnostics-listen", diagnostics, "--status-listen", demoStatus, "--gateway", "127.0.0.1",
		"--ping-target", "127.0.0.1",
		"--http-target", target}
}
