package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"

	"github.com/miekg/dns"
)

// registerResponsePolicies declares the collections of response policies and their items.
func registerResponsePolicies(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "responsePolicies", Parents: []string{"configurations"}}, &ResponsePolicy{})
	r.Collection(resource.Collection{Name: "policyItems", Parents: []string{"responsePolicies"}}, &ResponsePolicyItem{})
}

// ENUMZone holds telephone numbers as names (RFC 6116), such as e164.arpa.
type ENUMZone struct {
	schema.Head `head:"required,nonblank"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// DeploymentEnabled says whether the zone is put on the wire.
	DeploymentEnabled bool `api:"deploymentEnabled,put"`
	// AbsoluteName is the zone's whole name.
	AbsoluteName string `api:"absoluteName,readOnly,dns,inline" length:"1020"`
}

// BeforeWrite places the zone: below a view or a zone of names.
func (x *ENUMZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.Above(x.Parent)
	if err != nil {
		return err
	}
	if parent.Collection != "views" && parent.Type != "Zone" {
		return problem.Invalid("type", "an ENUMZone lies in a view or a Zone, not in %s %d", parent.Type, parent.ID)
	}
	x.Name = naming.Clean(x.Name)
	x.View.ID, x.AbsoluteName, err = zonePlace(c, x.Parent, x.Name)
	return err
}

// zonePlace gives the view and the absolute name of a zone.
func zonePlace(c *resource.Change, parent int64, name string) (view int64, absolute string, err error) {
	if err := naming.Check(name, naming.AnyName); err != nil {
		return 0, "", problem.Invalid("name", "%v", err)
	}
	view, zone, err := above(c.Tx, parent)
	if err != nil {
		return 0, "", err
	}
	absolute = naming.Join(name, zone)
	if err := naming.Check(absolute, naming.AnyName); err != nil {
		return 0, "", problem.Invalid("name", "%v", err)
	}
	return view, absolute, nil
}

// freeZoneName refuses the name of another zone of the view.
func freeZoneName(c *resource.Change, h *schema.Head, view int64, absolute string) error {
	same, err := sameName(c.Tx, h.Config, view, "zones", absolute)
	for _, r := range same {
		if r.ID != h.ID {
			return problem.Conflict("ResourceAlreadyExists", "name: %q is zone %d already", absolute, r.ID)
		}
	}
	return err
}

// Validate refuses a name that another zone of the view has.
func (x *ENUMZone) Validate(c *resource.Change) error {
	return freeZoneName(c, &x.Head, x.View.ID, x.AbsoluteName)
}

// AfterWrite renames what lies below a zone that was renamed.
func (x *ENUMZone) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*ENUMZone); !ok || old.AbsoluteName == x.AbsoluteName {
		return nil
	}
	return renameBelow(c, x.ID)
}

// Key is the zone's absolute name as names compare.
func (x *ENUMZone) Key() string { return naming.Key(x.AbsoluteName) }

// String is the zone's absolute name.
func (x *ENUMZone) String() string { return x.AbsoluteName }

// ENUMNumberZone is a telephone number, or the beginning of some, below an ENUM zone: its digits, the last
// one first, as names have them.
type ENUMNumberZone struct {
	schema.Head `head:"required,nonblank"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// NumberName is the number as it is dialled; it follows the name where it is not given.
	NumberName string `api:"numberName,nonblank"`
	// AbsoluteName is the zone's whole name.
	AbsoluteName string `api:"absoluteName,readOnly,dns,inline" length:"1020"`
}

// BeforeWrite places the number, and lets name and number agree.
func (x *ENUMNumberZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.Above(x.Parent)
	if err != nil {
		return err
	}
	if parent.Type != "ENUMZone" && parent.Type != "ENUMNumberZone" {
		return problem.Invalid("type", "an ENUMNumberZone lies in an ENUMZone or below another number, not in %s %d", parent.Type, parent.ID)
	}
	x.Name = naming.Clean(x.Name)
	labels := strings.Split(x.Name, ".")
	for _, label := range labels {
		if len(label) != 1 || !isDigits(label) {
			return problem.Invalid("name", "%q is no number: single digits with dots between them, the last one first (RFC 6116 section 3.2)",
				x.Name)
		}
	}
	slices.Reverse(labels)
	number := strings.Join(labels, "")
	if x.NumberName == "" || !c.Given["numberName"] {
		x.NumberName = number
	}
	if digits := strings.NewReplacer("+", "", "-", "", " ", "").Replace(x.NumberName); digits != number {
		return problem.Invalid("numberName", "%q is not the number of the name %q, which is %s", x.NumberName, x.Name, number)
	}
	x.View.ID, x.AbsoluteName, err = zonePlace(c, x.Parent, x.Name)
	return err
}

// Validate refuses a name that another zone of the view has.
func (x *ENUMNumberZone) Validate(c *resource.Change) error {
	return freeZoneName(c, &x.Head, x.View.ID, x.AbsoluteName)
}

// AfterWrite renames what lies below a number that was changed.
func (x *ENUMNumberZone) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*ENUMNumberZone); !ok || old.AbsoluteName == x.AbsoluteName {
		return nil
	}
	return renameBelow(c, x.ID)
}

// Key is the zone's absolute name as names compare.
func (x *ENUMNumberZone) Key() string { return naming.Key(x.AbsoluteName) }

// String is the zone's absolute name.
func (x *ENUMNumberZone) String() string { return x.AbsoluteName }

// root is the name of the root zone.
const root = "."

// InternalRootZone is a view's own root of the names: one in a view.
type InternalRootZone struct {
	schema.Head `head:"readOnly"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// DeploymentEnabled says whether the zone is put on the wire.
	DeploymentEnabled bool `api:"deploymentEnabled,put"`
}

// BeforeWrite places the zone.
func (x *InternalRootZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.Above(x.Parent)
	if err != nil {
		return err
	}
	if parent.Collection != "views" {
		return problem.Invalid("type", "an InternalRootZone lies right below a view")
	}
	x.Name, x.View = root, schema.Ref{ID: parent.ID}
	return nil
}

// Validate refuses a second one in a view.
func (x *InternalRootZone) Validate(c *resource.Change) error {
	return freeRoot(c, x.ID, x.View.ID)
}

func freeRoot(c *resource.Change, id, view int64) error {
	found, err := c.Tx.ByName("zones", view, root)
	for _, r := range found {
		if r.ID != id {
			return problem.Conflict("ResourceAlreadyExists", "view %d has a root already: zone %d", view, r.ID)
		}
	}
	return err
}

// Key is what the zone is found by.
func (x *InternalRootZone) Key() string { return root }

// ResponsePolicyZone tells resolvers to answer otherwise for some names.
type ResponsePolicyZone struct {
	schema.Head `head:"required,nonblank"`
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

// BeforeWrite places the zone, right below a view.
func (x *ResponsePolicyZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.Above(x.Parent)
	if err != nil {
		return err
	}
	if parent.Collection != "views" {
		return problem.Invalid("type", "a ResponsePolicyZone lies right below a view")
	}
	x.Name, x.View = naming.Clean(x.Name), schema.Ref{ID: parent.ID}
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	if x.ResponsePolicy.ID != 0 && x.ResponsePolicyZoneType != "LOCAL" {
		return problem.Invalid("responsePolicy", "is for LOCAL zones alone")
	}
	return checkRedirect(x.OverridePolicyType, &x.RedirectTarget)
}

// checkRedirect asks for the target of a redirection.
func checkRedirect(kind string, target *string) error {
	if kind != "REDIRECT" {
		return nil
	}
	if *target == "" {
		return problem.Invalid("redirectTarget", "is needed with REDIRECT")
	}
	if _, err := netip.ParseAddr(*target); err == nil {
		return nil
	}
	*target = naming.Clean(*target)
	if err := naming.Check(*target, naming.AnyName); err != nil {
		return problem.Invalid("redirectTarget", "is neither an address nor a name: %v", err)
	}
	return nil
}

// Validate refuses a name that another zone of the view has.
func (x *ResponsePolicyZone) Validate(c *resource.Change) error {
	return freeZoneName(c, &x.Head, x.View.ID, x.Name)
}

// Key is the zone's name as names compare.
func (x *ResponsePolicyZone) Key() string { return naming.Key(x.Name) }

// ResponsePolicy is a list of names and what is answered for them.
type ResponsePolicy struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration it lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// PolicyType is what is answered: as ever, nothing, that there is no such name, or something else.
	PolicyType string `api:"policyType,required" enum:"ALLOWLIST|BLACKHOLE|BLOCKLIST|REDIRECT"`
	// TTL is the time to live of the answers in seconds.
	TTL *int64 `api:"ttl" min:"0" max:"2147483647"`
	// RedirectTarget is where a redirection leads: a name or an address.
	RedirectTarget string `api:"redirectTarget"`
}

// BeforeWrite asks for the target of a redirection.
func (x *ResponsePolicy) BeforeWrite(*resource.Change) error {
	return checkRedirect(x.PolicyType, &x.RedirectTarget)
}

// ResponsePolicyItem is one name of a response policy.
type ResponsePolicyItem struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
}

// BeforeWrite reads the name.
func (x *ResponsePolicyItem) BeforeWrite(*resource.Change) error {
	x.Name = strings.ToLower(naming.Clean(x.Name))
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	return nil
}

// numbers adds the records of the numbers below an ENUM zone, which are no zones of their own in DNS.
func (z *zoneReader) numbers(zone *store.Resource) error {
	var below []*store.Resource
	if err := z.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"),
		store.HasParent(zone.ID)}},
		func(r *store.Resource) error {
			if r.Type == "ENUMNumberZone" {
				below = append(below, r.Clone())
			}
			return nil
		}); err != nil {
		return err
	}
	for _, number := range below {
		if err := z.read(number, func(dns.RR) bool { return true }); err != nil {
			return err
		}
		if err := z.numbers(number); err != nil {
			return err
		}
	}
	return nil
}

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
