package serverconfig

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/sink"
)

// Telemetry are the fields of services that send telemetry.
type Telemetry struct {
	// Enabled controls whether telemetry is sent.
	Enabled bool `api:"enabled,required"`
	// Destination is the receiver of the telemetry.
	Destination *sink.Destination `api:"destination"`
}

// DHCPActivityService sends the beginnings and ends of leases of a DHCP server to a destination.
type DHCPActivityService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is the number of events that wait for the receiver. Beyond it, the oldest are dropped.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"101588000" default:"100000"`
	// DHCPv4Enabled controls whether leases of DHCPv4 are sent.
	DHCPv4Enabled bool `api:"dhcpv4Enabled,required"`
	// DHCPv6Enabled controls whether leases of DHCPv6 are sent.
	DHCPv6Enabled bool `api:"dhcpv6Enabled,required"`
}

// BeforeWrite requires a destination that can be sent to while the service is enabled.
func (x *DHCPActivityService) BeforeWrite(c *resource.Change) error {
	switch d := x.Destination; {
	case !x.Enabled:
	case d == nil:
		return problem.Invalid("destination", "is required while enabled is true")
	case d.SinkType == "KAFKA":
		return problem.NotYet("destination.sinkType: KAFKA is not supported yet: use HTTP, for example with a Kafka REST proxy")
	case d.SinkType == "ELASTICSEARCH" && d.Index == "":
		return problem.Invalid("destination.index", "is required with ELASTICSEARCH")
	}
	old, is := c.Old.(*DHCPActivityService)
	if is && x.Destination != nil && old.Destination != nil && hostOf(x.Destination) != hostOf(old.Destination) {
		for name, secret := range map[string]schema.Secret{"token": x.Destination.Token, "password": x.Destination.Password} {
			if secret.Sealed != "" && !secret.IsSet { // a user who cannot read a secret must not send it to another host
				return problem.Invalid("destination."+name, "must be given again, because destination.url has another host")
			}
		}
	}
	return x.Service.BeforeWrite(c)
}

// hostOf returns the scheme and the host of a destination.
func hostOf(d *sink.Destination) string {
	u, err := url.Parse(d.URL)
	if err != nil {
		return d.URL
	}
	return u.Scheme + "://" + u.Host
}

// DHCPStatisticsService sends statistics of DHCP servers.
type DHCPStatisticsService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is the number of events that are buffered while the receiver is unreachable.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"188235000" default:"100000"`
	// DHCPv4Enabled controls whether DHCPv4 statistics are sent.
	DHCPv4Enabled bool `api:"dhcpv4Enabled,required"`
	// DHCPv6Enabled controls whether DHCPv6 statistics are sent.
	DHCPv6Enabled bool `api:"dhcpv6Enabled,required"`
}

// DNSActivityService sends the queries and responses of name servers.
type DNSActivityService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is the number of events that are buffered while the receiver is unreachable.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"64000000" default:"100000"`
	// Filters select the activity that is not sent.
	Filters []Filter `api:"filters,required"`
}

// Filter selects activity of name servers that is not sent.
type Filter struct {
	// Category is the property that the filter compares.
	Category string `api:"category,required" enum:"DOMAIN_NAME|QUERY|RESPONSE|SOURCE_ADDRESS"`
	// Value is a domain name, optionally with *, an address prefix, or a kind of query or response.
	Value string `api:"value,required,nonblank"`
}

// filtered are the kinds of queries and responses that a filter may name.
var filtered = []string{"ALL", "CLIENT", "AUTH", "RESOLVER", "FORWARDER", "UPDATE"}

// Check returns an error for a value that does not fit the category.
func (x *Filter) Check() error {
	switch x.Category {
	case "SOURCE_ADDRESS":
		if _, err := netip.ParsePrefix(x.Value); err != nil {
			return schema.MemberError("value", "%q is not a prefix", x.Value)
		}
	case "QUERY", "RESPONSE":
		if !slices.Contains(filtered, x.Value) {
			return schema.MemberError("value", "must be one of %s, not %q", strings.Join(filtered, ", "), x.Value)
		}
	default:
		if _, err := path.Match(x.Value, ""); err != nil {
			return schema.MemberError("value", "%q is not a name pattern", x.Value)
		}
	}
	return nil
}

// DNSStatisticsService sends statistics of name servers.
type DNSStatisticsService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is the number of events that are buffered while the receiver is unreachable.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"36436000" default:"100000"`
	// PollingInterval is the time between two collections of statistics.
	PollingInterval string `api:"pollingInterval,required,duration" default:"PT1M"`
}
