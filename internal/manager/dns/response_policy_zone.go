package dns

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerResponsePolicyZones declares the zones that serve response policies.
func registerResponsePolicyZones(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &ResponsePolicyZone{})
}

// ResponsePolicyZone changes the responses of resolvers for some names.
type ResponsePolicyZone struct {
	schema.Head `head:"required,nonblank" parents:"views"`
	// Configuration is the configuration that contains the zone.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view that contains the zone.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// ResponsePolicyZoneType is the source of the names. The names of a LOCAL zone come from the response policy.
	ResponsePolicyZoneType string `api:"responsePolicyZoneType,required" enum:"LOCAL|FEED|EXTERNAL"`
	// ResponsePolicy is the response policy of a local zone.
	ResponsePolicy schema.Ref `api:"responsePolicy" ref:"ResponsePolicy" back:"zones"`
	// OverridePolicyType replaces the response of the policy.
	OverridePolicyType string `api:"overridePolicyType" enum:"ALLOWLIST|BLACKHOLE|BLOCKLIST|REDIRECT"`
	// OverrideRefreshTime is the refresh interval of a FEED or EXTERNAL zone, from one minute to 30 days: a number of seconds, or an ISO
	// 8601 duration.
	OverrideRefreshTime string `api:"overrideRefreshTime"`
	// RedirectTarget is the target of a redirection: a name or an address.
	RedirectTarget string `api:"redirectTarget"`
	// FeedCategories are the categories of a feed: letters, digits, hyphens and underscores.
	FeedCategories []string `api:"feedCategories"`
}

// BeforeWrite places the zone and checks its fields.
func (x *ResponsePolicyZone) BeforeWrite(*resource.Change) error {
	x.Name, x.View = naming.Clean(x.Name), schema.Ref{ID: x.Parent}
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	if x.ResponsePolicy.ID != 0 && !x.IsLocal() {
		return problem.Invalid("responsePolicy", "is only supported for LOCAL zones")
	}
	if err := x.checkSource(); err != nil {
		return err
	}
	return checkRedirect(x.OverridePolicyType, &x.RedirectTarget)
}

// checkSource checks the fields for zones that are not local.
func (x *ResponsePolicyZone) checkSource() error {
	if len(x.FeedCategories) > 0 && x.ResponsePolicyZoneType != FeedPolicy {
		return problem.Invalid("feedCategories", "are only supported for FEED zones")
	}
	for _, category := range x.FeedCategories {
		if category == "" || len(category) > 100 || strings.ContainsFunc(category, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return problem.Invalid("feedCategories", "%q is not a category: use at most 100 letters, digits, hyphens and underscores", category)
		}
	}
	if x.OverrideRefreshTime == "" {
		return nil
	}
	if x.IsLocal() {
		return problem.Invalid("overrideRefreshTime", "is only supported for FEED and EXTERNAL zones")
	}
	if every := x.RefreshTime(); every < MinRefreshTime || every > MaxRefreshTime {
		return problem.Invalid("overrideRefreshTime", "must be a number of seconds or an ISO 8601 duration, from %s to %s, not %q",
			MinRefreshTime, MaxRefreshTime, x.OverrideRefreshTime)
	}
	return nil
}

// Bounds of overrideRefreshTime.
const (
	MinRefreshTime = time.Minute
	MaxRefreshTime = 30 * 24 * time.Hour
)

// RefreshTime returns the override of the refresh interval; 0 if the interval of the zone itself applies.
func (x *ResponsePolicyZone) RefreshTime() time.Duration {
	if seconds, err := strconv.ParseUint(x.OverrideRefreshTime, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return schema.LengthOf(x.OverrideRefreshTime)
}

// Validate rejects the name of another zone of the view, and a name that is too long together with a name of the policy.
func (x *ResponsePolicyZone) Validate(c *resource.Change) error {
	if err := checkZoneNameUnique(c, &x.Head, x.View.ID, x.Name); err != nil || x.ResponsePolicy.ID == 0 {
		return err
	}
	if old, ok := c.Old.(*ResponsePolicyZone); ok && old.ResponsePolicy == x.ResponsePolicy && old.Name == x.Name {
		return nil
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("policyItems"),
		store.HasParent(x.ResponsePolicy.ID)}},
		func(r *store.Resource) error {
			if fitsInZone(r.Name, x.Name) {
				return nil
			}
			return problem.Invalid("responsePolicy", "its name %q is too long together with the name of the zone",
				problem.Describe(r.ID, r.Name))
		})
}

// fitsInZone reports whether a name, followed by the name of a response policy zone, has a valid length.
func fitsInZone(name, zone string) bool {
	whole, err := FQDN(naming.Join(name, zone))
	if err != nil {
		return false
	}
	n, err := dns.PackDomainName(whole, make([]byte, 256), 0, nil, false)
	return err == nil && n <= 255
}

// Key returns the name in the form used for comparison.
func (x *ResponsePolicyZone) Key() string { return naming.Key(x.Name) }

// RuleOf returns the override of a response policy zone, and the type of its policy. Each may be empty.
func (x *ResponsePolicyZone) RuleOf(policies map[int64]*ResponsePolicy) (override, kind string) {
	if p := policies[x.ResponsePolicy.ID]; p != nil {
		kind = p.PolicyType
	}
	return x.OverridePolicyType, kind
}

// IsLocal reports whether the names come from the response policy.
func (x *ResponsePolicyZone) IsLocal() bool { return x.ResponsePolicyZoneType == LocalPolicy }

// Types of response policy zones.
const (
	LocalPolicy    = "LOCAL"
	FeedPolicy     = "FEED"
	ExternalPolicy = "EXTERNAL"
)

// policyRule is the response of a response policy zone for the names of its policy.
type policyRule struct {
	policy       *store.Resource
	kind, target string
	ttl          uint32
}

// readRule returns the rule of a response policy zone. Its policy is nil if the zone has none.
func (z *ZoneReader) readRule(zone *store.Resource) (rule policyRule, err error) {
	o, err := z.API.Object(zone)
	if err != nil {
		return rule, err
	}
	x, ok := o.(*ResponsePolicyZone)
	if !ok || x.ResponsePolicy.ID == 0 || !x.IsLocal() {
		return rule, nil
	}
	if rule.policy, err = z.Tx.Get(x.ResponsePolicy.ID); err != nil {
		return rule, err
	}
	if o, err = z.API.Object(rule.policy); err != nil {
		return rule, err
	}
	p, ok := o.(*ResponsePolicy)
	if !ok {
		return rule, fmt.Errorf("resource %d is not a response policy", rule.policy.ID)
	}
	rule.kind, rule.target, rule.ttl = p.PolicyType, p.RedirectTarget, uint32(DefaultTTL)
	if x.OverridePolicyType != "" {
		rule.kind, rule.target = x.OverridePolicyType, x.RedirectTarget
	}
	if p.TTL != nil {
		rule.ttl = uint32(*p.TTL) //nolint:gosec // within its bounds
	}
	return rule, nil
}

// addResponses adds the records of a response policy zone for the names of its policy. If only is not nil, it limits the names.
func (z *ZoneReader) addResponses(zone *store.Resource, only []string) error {
	rule, err := z.readRule(zone)
	if err != nil || rule.policy == nil {
		return err
	}
	z.latest = max(z.latest, rule.policy.Version)
	add := func(r *store.Resource) error {
		z.latest = max(z.latest, r.Version)
		owner, err := FQDN(naming.Join(r.Name, zone.Key))
		if err != nil {
			return err
		}
		rr, err := Response(owner, rule.ttl, rule.kind, rule.target)
		if err != nil {
			return err
		}
		return z.add(rr)
	}
	if only == nil {
		return z.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("policyItems"),
			store.HasParent(rule.policy.ID)}}, add)
	}
	for _, name := range only {
		rows, err := z.Tx.ByName("policyItems", rule.policy.ID, name)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := add(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Response returns the record that defines the response for a name. The kind is the normal response (ALLOWLIST), no data (BLACKHOLE), no
// such name (BLOCKLIST), or the data of target (REDIRECT), which is a name or an address.
func Response(owner string, ttl uint32, kind, target string) (dns.RR, error) {
	head := dns.RR_Header{Name: owner, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: ttl}
	switch kind {
	case "ALLOWLIST":
		return &dns.CNAME{Hdr: head, Target: "rpz-passthru."}, nil
	case "BLACKHOLE":
		return &dns.CNAME{Hdr: head, Target: "*."}, nil
	case "BLOCKLIST":
		return &dns.CNAME{Hdr: head, Target: RootName}, nil
	}
	if a, err := netip.ParseAddr(target); err == nil {
		if a.Is4() {
			head.Rrtype = dns.TypeA
			return &dns.A{Hdr: head, A: a.AsSlice()}, nil
		}
		head.Rrtype = dns.TypeAAAA
		return &dns.AAAA{Hdr: head, AAAA: a.AsSlice()}, nil
	}
	name, err := FQDN(target)
	return &dns.CNAME{Hdr: head, Target: name}, err
}
