// Package externaldns implements the webhook provider protocol of Kubernetes external-dns. external-dns stores its records in Portolan
// through it. The package is a client of the manager's API, and only the command line imports it.
package externaldns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"portolan/client"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// mediaType is the media type of the protocol's messages.
const mediaType = "application/external.dns.webhook+json;version=1"

// maxBody is the maximum size of a request from external-dns, in bytes.
const maxBody = 32 << 20

// comment is the comment of the records that external-dns creates and of its changes in the history.
const comment = "external-dns"

// Endpoint is a record set in external-dns' format.
type Endpoint struct {
	DNSName    string   `json:"dnsName"`
	Targets    []string `json:"targets"`
	RecordType string   `json:"recordType"`
	// RecordTTL is in seconds; 0 means the zone's TTL.
	RecordTTL        int64             `json:"recordTTL,omitempty"`
	SetIdentifier    string            `json:"setIdentifier,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	ProviderSpecific json.RawMessage   `json:"providerSpecific,omitempty"`
}

// Changes are the changes that external-dns requests.
type Changes struct {
	Create    []Endpoint `json:"create"`
	UpdateOld []Endpoint `json:"updateOld"`
	UpdateNew []Endpoint `json:"updateNew"`
	Delete    []Endpoint `json:"delete"`
}

// Provider handles the requests of external-dns.
type Provider struct {
	Client *client.Client
	// Configuration and View are the IDs of the view that contains the managed zones, and of its configuration. Domains limits the names to
	// these domains and those below them. Empty means all zones of the view.
	Configuration, View int64
	Domains             []string
	Log                 *slog.Logger

	// changeMutex is held while changes are applied.
	changeMutex sync.Mutex
	changes     *prometheus.CounterVec
}

// kinds are the supported record types.
var kinds = []string{"A", "AAAA", "CNAME", "TXT"}

// Handler serves the protocol, /healthz and /metrics.
func (p *Provider) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	p.changes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_external_dns_changes_total",
		Help: "Records that external-dns created or deleted, and its failed requests."}, []string{"what"})
	registry.MustRegister(p.changes)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := p.zones(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /{$}", p.negotiate)
	mux.HandleFunc("GET /records", p.records)
	mux.HandleFunc("POST /records", p.apply)
	mux.HandleFunc("POST /adjustendpoints", p.adjust)
	return mux
}

// writeError writes an error response. If the manager rejected a change, the status is 400. For all other errors it is 500, so that
// external-dns retries.
func (p *Provider) writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var refusal *client.Error
	if errors.As(err, &refusal) && refusal.Status < 500 && refusal.Status != http.StatusUnauthorized {
		status = http.StatusBadRequest
	}
	p.changes.WithLabelValues("failed").Inc()
	p.Log.Error("external-dns request failed", "reason", err)
	http.Error(w, err.Error(), status)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", mediaType)
	_ = json.NewEncoder(w).Encode(body) // external-dns retries
}

// negotiate returns the domains that external-dns may manage.
func (p *Provider) negotiate(w http.ResponseWriter, r *http.Request) {
	zones, err := p.zones(r.Context())
	if err != nil {
		p.writeError(w, err)
		return
	}
	names := []string{}
	for _, d := range p.Domains {
		names = append(names, cleanName(d))
	}
	for _, z := range zones {
		if len(p.Domains) == 0 {
			names = append(names, z.name)
		}
	}
	answer(w, map[string]any{"include": names})
}

// adjust removes unsupported endpoints, so that external-dns does not plan them.
func (p *Provider) adjust(w http.ResponseWriter, r *http.Request) {
	var all []Endpoint
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&all); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kept := []Endpoint{}
	for _, e := range all {
		if !slices.Contains(kinds, e.RecordType) || e.SetIdentifier != "" {
			p.Log.Warn("external-dns record ignored: type or set not supported", "name", e.DNSName, "type", e.RecordType,
				"set", e.SetIdentifier)
			continue
		}
		kept = append(kept, e)
	}
	answer(w, kept)
}

// records lists the records of all managed zones.
func (p *Provider) records(w http.ResponseWriter, r *http.Request) {
	found, err := p.read(r.Context())
	if err != nil {
		p.writeError(w, err)
		return
	}
	all := []Endpoint{}
	at := map[string]int{}
	for _, one := range found {
		key := one.name + " " + one.kind
		i, there := at[key]
		if !there {
			i = len(all)
			at[key] = i
			all = append(all, Endpoint{DNSName: one.name, RecordType: one.kind, RecordTTL: one.ttl})
		}
		all[i].Targets = append(all[i].Targets, one.target)
	}
	answer(w, all)
}

// apply applies the changes of a request, all of them or none.
func (p *Provider) apply(w http.ResponseWriter, r *http.Request) {
	var c Changes
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.changeMutex.Lock()
	defer p.changeMutex.Unlock()
	removed, made, err := p.change(r.Context(), &c)
	if err != nil {
		p.writeError(w, err)
		return
	}
	p.changes.WithLabelValues("removed").Add(float64(removed))
	p.changes.WithLabelValues("made").Add(float64(made))
	p.Log.Info("external-dns records changed", "removed", removed, "made", made)
	w.WriteHeader(http.StatusNoContent)
}

// change applies changes in one batch, deletions first.
func (p *Provider) change(ctx context.Context, c *Changes) (removed, made int, err error) {
	zones, err := p.zones(ctx)
	if err != nil {
		return 0, 0, err
	}
	var parts []client.BatchChange
	if going := slices.Concat(c.Delete, c.UpdateOld); len(going) > 0 {
		there, err := p.read(ctx)
		if err != nil {
			return 0, 0, err
		}
		gone := map[int64]bool{}
		for _, e := range going {
			for _, one := range there {
				if one.id == 0 && one.belongsTo(e) {
					return 0, 0, &client.Error{Status: http.StatusBadRequest, Code: "NotOurs",
						Message: fmt.Sprintf("%s %s was not created by external-dns "+
							"and is not deleted", e.DNSName, e.RecordType)}
				}
				if one.id != 0 && one.belongsTo(e) && !gone[one.id] { // a host record of several addresses is deleted once
					gone[one.id] = true
					parts = append(parts, client.BatchChange{Method: http.MethodDelete, Path: "resourceRecords/" + strconv.FormatInt(one.id, 10)})
				}
			}
		}
	}
	removed = len(parts)
	for _, e := range slices.Concat(c.Create, c.UpdateNew) {
		zone := zoneOf(zones, e.DNSName)
		if zone == nil || !p.isManaged(e.DNSName) {
			return 0, 0, &client.Error{Status: http.StatusBadRequest, Code: "NoZone",
				Message: fmt.Sprintf("%s is not in a managed zone", e.DNSName)}
		}
		made, err := p.createChanges(ctx, zone, e)
		if err != nil {
			return 0, 0, err
		}
		parts = append(parts, made...)
	}
	if len(parts) == 0 {
		return 0, 0, nil
	}
	_, err = p.Client.Batch(ctx, parts, client.BatchOptions{Comment: comment})
	return removed, len(parts) - removed, err
}

// belongsTo reports whether a record belongs to an endpoint.
func (r *record) belongsTo(e Endpoint) bool {
	return r.name == cleanName(e.DNSName) && r.kind == e.RecordType && slices.ContainsFunc(e.Targets, func(target string) bool {
		return normalizeTarget(r.kind, r.target) == normalizeTarget(r.kind, target)
	})
}

// createChanges returns the changes that create the records of an endpoint. Addresses inside networks become one host record. Every other
// target becomes a record of its own.
func (p *Provider) createChanges(ctx context.Context, zone *zone, e Endpoint) (parts []client.BatchChange, err error) {
	var inside []map[string]any
	for _, target := range e.Targets {
		if e.RecordType == "A" || e.RecordType == "AAAA" {
			there, err := p.isInNetwork(ctx, target)
			if err != nil {
				return nil, err
			}
			if there && !strings.HasPrefix(e.DNSName, "*") {
				inside = append(inside, map[string]any{"address": target})
				continue
			}
		}
		part, err := createChange(zone, e, target)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(inside) > 0 {
		part := newRecord(zone, e)
		body, _ := part.Body.(map[string]any)
		body["type"], body["addresses"] = "HostRecord", inside
		parts = append(parts, part)
	}
	return parts, nil
}

// isInNetwork reports whether an address is in a network of the configuration.
func (p *Provider) isInNetwork(ctx context.Context, address string) (found bool, err error) {
	if _, err := netip.ParseAddr(address); err != nil {
		return false, &client.Error{Status: http.StatusBadRequest, Code: "NoAddress", Message: fmt.Sprintf("%q is not an IP address", address)}
	}
	filter := fmt.Sprintf("configuration.id:%d and range:contains('%s')", p.Configuration, address)
	err = p.Client.All(ctx, "networks", client.Query{Filter: filter, Fields: "id", Limit: 1}, func(json.RawMessage) error {
		found = true
		return nil
	})
	return found, err
}

// newRecord returns the change that creates a record, without the members of its type.
func newRecord(zone *zone, e Endpoint) client.BatchChange {
	body := map[string]any{"absoluteName": cleanName(e.DNSName), "comment": comment}
	if e.RecordTTL > 0 {
		body["ttl"] = e.RecordTTL
	}
	if cleanName(e.DNSName) == zone.name {
		delete(body, "absoluteName")
		body["name"] = "@"
	}
	return client.BatchChange{Method: http.MethodPost, Path: "zones/" + strconv.FormatInt(zone.id, 10) + "/resourceRecords", Body: body}
}

// createChange returns the change that creates the record of one target.
func createChange(zone *zone, e Endpoint, target string) (client.BatchChange, error) {
	part := newRecord(zone, e)
	body, _ := part.Body.(map[string]any)
	switch e.RecordType {
	case "A", "AAAA":
		body["type"], body["recordType"], body["rdata"] = "GenericRecord", e.RecordType, target
	case "TXT":
		body["type"], body["text"] = "TXTRecord", unquote(target)
	case "CNAME":
		body["type"], body["linkedRecord"] = "AliasRecord", map[string]any{"absoluteName": cleanName(target)}
		part.Headers = map[string]string{"x-bcn-link-to-external-host": "true"}
	default:
		return part, &client.Error{Status: http.StatusBadRequest, Code: "NotKept", Message: fmt.Sprintf(
			"%s: records of the type %s are not supported",
			e.DNSName, e.RecordType)}
	}
	return part, nil
}

// cleanName returns a name in lower case, without the trailing dot.
func cleanName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// unquote removes the quotes that external-dns adds to a text.
func unquote(text string) string {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		return text[1 : len(text)-1]
	}
	return text
}

// normalizeTarget returns a target in the form used for comparisons.
func normalizeTarget(kind, target string) string {
	if kind == "TXT" {
		return unquote(target)
	}
	return cleanName(target)
}
