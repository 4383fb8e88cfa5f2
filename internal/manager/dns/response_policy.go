package dns

import (
	"net/netip"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerResponsePolicies declares the collections of response policies and their items.
func registerResponsePolicies(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "responsePolicies", Parents: []string{"configurations"}}, &ResponsePolicy{})
	r.Collection(resource.Collection{Name: "policyItems", Parents: []string{"responsePolicies"}}, &ResponsePolicyItem{})
}

// checkRedirect rejects a redirection without a valid target, and normalizes the target.
func checkRedirect(kind string, target *string) error {
	if kind != "REDIRECT" {
		return nil
	}
	if *target == "" {
		return problem.Invalid("redirectTarget", "is required with REDIRECT")
	}
	if _, err := netip.ParseAddr(*target); err == nil {
		return nil
	}
	*target = naming.Clean(*target)
	if err := naming.Check(*target, naming.AnyName); err != nil {
		return problem.Invalid("redirectTarget", "must be an address or a name: %v", err)
	}
	return nil
}

// ResponsePolicy is a list of names with a common response.
type ResponsePolicy struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the policy.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// PolicyType is the response: the normal one (ALLOWLIST), no data (BLACKHOLE), no such name (BLOCKLIST), or a redirection (REDIRECT).
	PolicyType string `api:"policyType,required" enum:"ALLOWLIST|BLACKHOLE|BLOCKLIST|REDIRECT"`
	// TTL is the time to live of the responses in seconds.
	TTL *int64 `api:"ttl" min:"0" max:"2147483647"`
	// RedirectTarget is the target of a redirection: a name or an address.
	RedirectTarget string `api:"redirectTarget"`
}

// BeforeWrite checks the target of a redirection.
func (x *ResponsePolicy) BeforeWrite(*resource.Change) error {
	return checkRedirect(x.PolicyType, &x.RedirectTarget)
}

// ResponsePolicyItem is a name in a response policy.
type ResponsePolicyItem struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
}

// BeforeWrite normalizes and checks the name.
func (x *ResponsePolicyItem) BeforeWrite(*resource.Change) error {
	x.Name = strings.ToLower(naming.Clean(x.Name))
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	return nil
}

// Validate rejects a name that is too long together with the name of a zone of the policy.
func (x *ResponsePolicyItem) Validate(c *resource.Change) error {
	links, err := c.Tx.Referring(x.Parent)
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Field != "responsePolicy" {
			continue
		}
		zone, err := c.Tx.Get(l.Target)
		if err != nil {
			return err
		}
		if !fitsInZone(x.Name, zone.Key) {
			return problem.Invalid("name", "the name is too long together with the zone %s", problem.Describe(zone.ID, zone.Key))
		}
	}
	return nil
}
