package addressapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// lookupPath is the path of DNS look-ups.
const lookupPath = published.Base + "/dnsLookup"

// Limits of a look-up: the time for each transport, and the size of answers over UDP (RFC 9715).
const (
	lookupTime = 2 * time.Second
	lookupSize = 1232
)

// Lookup is the answer to a DNS query that the manager sent.
type Lookup struct {
	// Name and RecordType are the question. Server is the address and port that was asked, Protocol is udp or tcp.
	Name       string `json:"name"`
	RecordType string `json:"recordType"`
	Server     string `json:"server"`
	Protocol   string `json:"protocol" enum:"udp|tcp"`
	// Status is the response code, such as NOERROR; empty without an answer. Flags are the flags of the answer, such as aa.
	Status string   `json:"status"`
	Flags  []string `json:"flags"`
	// Answers, Authority and Additional are the records in zone file format.
	Answers    []string `json:"answers"`
	Authority  []string `json:"authority"`
	Additional []string `json:"additional"`
	// Milliseconds is the duration until the answer.
	Milliseconds int64 `json:"milliseconds"`
	// Reason explains a missing answer, and what to check; empty with an answer.
	Reason string `json:"reason,omitempty"`
}

// lookupDeclaration declares the look-ups.
func (a *API) lookupDeclaration() family.Path {
	id := family.Schema{"type": "integer", "format": "int64"}
	return family.Path{Pattern: lookupPath, Operations: []family.Operation{{
		Method: http.MethodGet, ID: "getDnsLookup", Summary: "Ask a name server (Portolan extension)",
		Description: "With server, the manager asks the name server application on the service point of that server. With zone, it asks its " +
			"own name servers for records of that zone's name: type DS shows the delegation in the parent zone.",
		Access: family.Access{Schemes: schemes, Admit: a.admit},
		Query: []family.Parameter{
			{Name: "server", Description: "The id of the server to ask.", Schema: id},
			{Name: "zone", Description: "The id of a zone, to ask the name servers of the manager.", Schema: id},
			{Name: "name", Description: "The name to ask for, with server.", Schema: family.Schema{"type": "string"}},
			{Name: "recordType", Description: "The record type; the default is SOA, with zone DS.", Schema: family.Schema{"type": "string"}},
			{Name: "dnssec", Description: "true requests signatures.", Schema: family.Schema{"type": "boolean"}},
		},
		Success: family.Success{Status: http.StatusOK, Description: "The answer, or the reason for a missing answer.",
			Schema: family.Ref("DnsLookup")},
		Problems: []int{400, 404, 409}, Handle: a.lookup,
	}}}
}

// lookup asks a name server and returns its answer.
func (a *API) lookup(w http.ResponseWriter, r *family.Request) error {
	query := r.URL.Query()
	if query.Has("server") == query.Has("zone") {
		return problem.Query("server", "give either server or zone")
	}
	of, kind := "server", "SOA"
	if query.Has("zone") {
		of, kind = "zone", "DS"
	}
	id, err := strconv.ParseInt(query.Get(of), 10, 64)
	if err != nil || id <= 0 {
		return problem.Query(of, "%q is not the id of a %s", query.Get(of), of)
	}
	if text := query.Get("recordType"); text != "" {
		kind = strings.ToUpper(text)
	}
	number, known := dnsmsg.StringToType[kind]
	if !known || number == dnsmsg.TypeAXFR || number == dnsmsg.TypeIXFR || number == dnsmsg.TypeOPT || number == dnsmsg.TypeTSIG {
		return problem.Query("recordType", "must be a record type that can be queried, not %q", kind)
	}
	secure := false
	if text := query.Get("dnssec"); text != "" {
		if secure, err = strconv.ParseBool(text); err != nil {
			return problem.Query("dnssec", "must be true or false")
		}
	}
	row, err := a.seenResource(r.Context(), callerOf(r), id, of+"s")
	if err != nil {
		return err
	}
	name := query.Get("name")
	var at netip.AddrPort
	if of == "zone" {
		if name != "" {
			return problem.Query("name", "cannot be given with zone")
		}
		name = row.Key
		at, err = a.ownNameServer()
	} else {
		at, err = a.NameServer(r.Context(), row)
	}
	if err != nil {
		return err
	}
	if _, valid := dnsmsg.IsDomainName(name); !valid || len(name) > 1000 {
		return problem.Query("name", "must be a domain name, not %q", name)
	}
	answer := askServer(r.Context(), at, dnsmsg.Fqdn(name), number, secure)
	if of == "zone" && answer.Reason != "" {
		answer.Reason = fmt.Sprintf("The name server of the manager, %s, does not answer. Check /etc/resolv.conf on the manager's machine, and "+
			"its network.", at)
	}
	family.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// seenResource returns a resource of a collection that the caller can see.
func (a *API) seenResource(ctx context.Context, caller resource.Caller, id int64, collection string) (row *store.Resource, err error) {
	err = a.Address.Store.View(ctx, func(tx *store.Tx) error {
		all, err := a.Address.VisibleResources(tx, caller, []int64{id})
		if row = all[id]; err == nil && (row == nil || row.Collection != collection) {
			err = problem.NotFound("%s/%d does not exist", collection, id)
		}
		return err
	})
	return row, err
}

// ownNameServer returns the name server that the manager asks.
func (a *API) ownNameServer() (netip.AddrPort, error) {
	if a.Resolver.IsValid() {
		return a.Resolver, nil
	}
	config, err := dnsmsg.ClientConfigFromFile("/etc/resolv.conf")
	if err == nil {
		for _, text := range config.Servers {
			if address, err := netip.ParseAddr(text); err == nil {
				return netip.AddrPortFrom(address, 53), nil
			}
		}
	}
	return netip.AddrPort{}, problem.Conflict("NoNameServer", "the machine of the manager has no name servers in /etc/resolv.conf")
}

// askServer sends a query over UDP, and over TCP if the answer is truncated or missing.
func askServer(ctx context.Context, at netip.AddrPort, name string, kind uint16, secure bool) Lookup {
	q := new(dnsmsg.Msg)
	q.SetQuestion(name, kind)
	q.SetEdns0(lookupSize, secure)
	l := Lookup{Name: name, RecordType: dnsmsg.TypeToString[kind], Server: at.String(), Protocol: "udp", Flags: []string{},
		Answers: []string{}, Authority: []string{}, Additional: []string{}}
	answer, took, err := exchange(ctx, l.Protocol, at, q)
	overUDP := err
	if err != nil || answer.Truncated {
		l.Protocol = "tcp"
		answer, took, err = exchange(ctx, l.Protocol, at, q)
	}
	if err != nil {
		l.Reason = explainFailure(at, overUDP, err)
		return l
	}
	l.Milliseconds, l.Status = took.Milliseconds(), dnsmsg.RcodeToString[answer.Rcode]
	for _, flag := range []struct {
		is   bool
		name string
	}{{answer.Response, "qr"}, {answer.Authoritative, "aa"}, {answer.Truncated, "tc"}, {answer.RecursionDesired, "rd"},
		{answer.RecursionAvailable, "ra"}, {answer.AuthenticatedData, "ad"}} {
		if flag.is {
			l.Flags = append(l.Flags, flag.name)
		}
	}
	l.Answers, l.Authority, l.Additional = recordLines(answer.Answer), recordLines(answer.Ns), recordLines(answer.Extra)
	return l
}

// exchange sends a query over a transport.
func exchange(ctx context.Context, network string, at netip.AddrPort, q *dnsmsg.Msg) (*dnsmsg.Msg, time.Duration, error) {
	ctx, end := context.WithTimeout(ctx, lookupTime)
	defer end()
	client := dnsmsg.Client{Net: network, Timeout: lookupTime, UDPSize: lookupSize}
	return client.ExchangeContext(ctx, q, at.String())
}

// recordLines returns records in zone file format, without the OPT record.
func recordLines(all []dnsmsg.RR) []string {
	lines := []string{}
	for _, one := range all {
		if one.Header().Rrtype != dnsmsg.TypeOPT {
			lines = append(lines, one.String())
		}
	}
	return lines
}

// explainFailure explains why there is no answer over UDP and over TCP, and what to check.
func explainFailure(at netip.AddrPort, overUDP, overTCP error) string {
	var timeout net.Error
	late := func(err error) bool {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
	}
	switch {
	case errors.Is(overTCP, syscall.ECONNREFUSED):
		return fmt.Sprintf("No program listens at %s. Check that the name server application is healthy, and that it listens at this address "+
			"and port.", at)
	case errors.Is(overTCP, syscall.EHOSTUNREACH), errors.Is(overTCP, syscall.ENETUNREACH):
		return fmt.Sprintf("The manager has no route to %s. Check the network between the manager and the service point.", at)
	case late(overUDP) && late(overTCP):
		return fmt.Sprintf("No answer from %s within %d seconds over UDP, and then over TCP. Check that the service point runs, and that no "+
			"firewall blocks port %d between the manager and it.", at, int(lookupTime.Seconds()), at.Port())
	}
	return fmt.Sprintf("No answer from %s: %v", at, overTCP)
}
