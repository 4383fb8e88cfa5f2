package serverconfig

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"portolan/internal/engine/schema"
	"portolan/internal/manager/sink"
)

// Telemetry is what services that send telemetry have.
type Telemetry struct {
	// Enabled says whether it is sent.
	Enabled bool `api:"enabled,required"`
	// Destination is where it goes.
	Destination *sink.Destination `api:"destination"`
}

// DHCPActivityService sends what DHCP servers do.
type DHCPActivityService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is how many wait for a receiver that is away.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"101588000" default:"100000"`
	// DHCPv4Enabled says whether that of DHCPv4 is sent.
	DHCPv4Enabled bool `api:"dhcpv4Enabled,required"`
	// DHCPv6Enabled says whether that of DHCPv6 is sent.
	DHCPv6Enabled bool `api:"dhcpv6Enabled,required"`
}

// DHCPStatisticsService sends figures of DHCP servers.
type DHCPStatisticsService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is how many wait for a receiver that is away.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"188235000" default:"100000"`
	// DHCPv4Enabled says whether that of DHCPv4 is sent.
	DHCPv4Enabled bool `api:"dhcpv4Enabled,required"`
	// DHCPv6Enabled says whether that of DHCPv6 is sent.
	DHCPv6Enabled bool `api:"dhcpv6Enabled,required"`
}

// DNSActivityService sends what name servers are asked, and answer.
type DNSActivityService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is how many wait for a receiver that is away.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"64000000" default:"100000"`
	// Filters are what is not sent.
	Filters []Filter `api:"filters,required"`
}

// Filter is what is not sent of the activity of name servers.
type Filter struct {
	// Category is what is looked at.
	Category string `api:"category,required" enum:"DOMAIN_NAME|QUERY|RESPONSE|SOURCE_ADDRESS"`
	// Value is a name with * in it or not, a prefix, or a kind of questions and answers.
	Value string `api:"value,required,nonblank"`
}

// filtered are the kinds of questions and answers that a filter may name.
var filtered = []string{"ALL", "CLIENT", "AUTH", "RESOLVER", "FORWARDER", "UPDATE"}

// Check reads the value.
func (x *Filter) Check() error {
	switch x.Category {
	case "SOURCE_ADDRESS":
		if _, err := netip.ParsePrefix(x.Value); err != nil {
			return schema.At("value", "%q is no prefix", x.Value)
		}
	case "QUERY", "RESPONSE":
		if !slices.Contains(filtered, x.Value) {
			return schema.At("value", "%q is none of %s", x.Value, strings.Join(filtered, ", "))
		}
	default:
		if _, err := path.Match(x.Value, ""); err != nil {
			return schema.At("value", "%q is no pattern of names", x.Value)
		}
	}
	return nil
}

// DNSStatisticsService sends figures of name servers.
type DNSStatisticsService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Telemetry
	// MaximumBufferedEvents is how many wait for a receiver that is away.
	MaximumBufferedEvents int64 `api:"maximumBufferedEvents,required" also:"maxBufferedEvents" min:"1" max:"36436000" default:"100000"`
	// PollingInterval is how often they are taken.
	PollingInterval string `api:"pollingInterval,required,duration" default:"PT1M"`
}
