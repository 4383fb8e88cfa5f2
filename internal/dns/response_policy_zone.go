package dns

import (
	"fmt"
	"net/netip"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"

	"github.com/miekg/dns"
)

// registerResponsePolicyZones declares the zones that response policies are served by.
func registerResponsePolicyZones(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &ResponsePolicyZone{})
}

// ResponsePolicyZone tells resolvers to answer otherwise for some names.
type ResponsePolicyZone struct {
	schema.Head `head:"required,nonblank" parents:"views"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// ResponsePolicyZoneType says whose the names are: LOCAL ones come from the response policy.
	ResponsePolicyZoneType string `api:"responsePolicyZoneType,required" enum:"LOCAL|FEED|EXTERNAL"`
	// ResponsePolicy has the names of a local zone.
	ResponsePolicy schema.Ref `api:"responsePolicy" ref:"ResponsePolicy" back:"zones"`
	// OverridePolicyType is what is done instead of what the names say.
	OverridePolicyType string `api:"overridePolicyType" enum:"ALLOWLIST|BLACKHOLE|BLOCKLIST|REDIRECT"`
	// OverrideRefreshTime is how often a zone of others is asked for.
	OverrideRefreshTime string `api:"overrideRefreshTime"`
	// RedirectTarget is where a redirection leads: a name or an address.
	RedirectTarget string `api:"redirectTarget"`
	// FeedCategories are the categories of a feed.
	FeedCategories []string `api:"feedCategories"`
}

// BeforeWrite places the zone, and reads its name.
func (x *ResponsePolicyZone) BeforeWrite(*resource.Change) error {
	x.Name, x.View = naming.Clean(x.Name), schema.Ref{ID: x.Parent}
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	if x.ResponsePolicy.ID != 0 && x.ResponsePolicyZoneType != "LOCAL" {
		return problem.Invalid("responsePolicy", "is for LOCAL zones alone")
	}
	return checkRedirect(x.OverridePolicyType, &x.RedirectTarget)
}

// Validate refuses a name that another zone of the view has.
func (x *ResponsePolicyZone) Validate(c *resource.Change) error {
	return freeZoneName(c, &x.Head, x.View.ID, x.Name)
}

// Key is the zone's name as names compare.
func (x *ResponsePolicyZone) Key() string { return naming.Key(x.Name) }

// responses adds what a response policy zone answers for the names of its policy.
func (z *zoneReader) responses(zone *store.Resource) error {
	o, err := z.api.Object(zone)
	if err != nil {
		return err
	}
	x, ok := o.(*ResponsePolicyZone)
	if !ok || x.ResponsePolicy.ID == 0 {
		return nil
	}
	row, err := z.tx.Get(x.ResponsePolicy.ID)
	if err != nil {
		return err
	}
	if o, err = z.api.Object(row); err != nil {
		return err
	}
	p, ok := o.(*ResponsePolicy)
	if !ok {
		return fmt.Errorf("resource %d is no response policy", row.ID)
	}
	kind, target, ttl := p.PolicyType, p.RedirectTarget, uint32(DefaultTTL)
	if x.OverridePolicyType != "" {
		kind, target = x.OverridePolicyType, x.RedirectTarget
	}
	if p.TTL != nil {
		ttl = uint32(*p.TTL) //nolint:gosec // within its bounds
	}
	z.latest = max(z.latest, row.Version)
	return z.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("policyItems"),
		store.HasParent(row.ID)}},
		func(r *store.Resource) error {
			z.latest = max(z.latest, r.Version)
			owner, err := fqdn(naming.Join(r.Name, zone.Key))
			if err != nil {
				return err
			}
			rr, err := response(owner, ttl, kind, target)
			if err == nil {
				z.records = append(z.records, rr)
			}
			return err
		})
}

// response gives the record that tells a resolver what to answer for a name.
func response(owner string, ttl uint32, kind, target string) (dns.RR, error) {
	head := dns.RR_Header{Name: owner, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: ttl}
	switch kind {
	case "ALLOWLIST":
		return &dns.CNAME{Hdr: head, Target: "rpz-passthru."}, nil
	case "BLACKHOLE":
		return &dns.CNAME{Hdr: head, Target: "*."}, nil
	case "BLOCKLIST":
		return &dns.CNAME{Hdr: head, Target: root}, nil
	}
	if a, err := netip.ParseAddr(target); err == nil {
		if a.Is4() {
			head.Rrtype = dns.TypeA
			return &dns.A{Hdr: head, A: a.AsSlice()}, nil
		}
		head.Rrtype = dns.TypeAAAA
		return &dns.AAAA{Hdr: head, AAAA: a.AsSlice()}, nil
	}
	name, err := fqdn(target)
	return &dns.CNAME{Hdr: head, Target: name}, err
}
