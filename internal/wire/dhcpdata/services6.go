package dhcpdata

// The reasons for options of DHCPv6 that are refused.
const (
	without6     = "the server does not support it for DHCPv6"
	withoutDNS6  = "the server does not update DNS for clients of DHCPv6"
	withoutLogs6 = "use the water marks of the range"
)

// services6 are the service options of DHCPv6.
var services6 = []ServiceOption{
	{Name: "abandon-lease-time", V6: true, Value: Number, Effect: "A declined address is not leased for this number of seconds."},
	{Name: "authoritative", V6: true, Value: Boolean, Refusal: without6},
	{Name: "boot-unknown-clients", V6: true, Value: Boolean, Effect: "Off: ranges do not serve clients without a reservation."},
	{Name: "client-updates", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "ddns-domainname", V6: true, Value: Text, Refusal: withoutDNS6},
	{Name: "ddns-dual-stack-mixed-mode", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "ddns-guard-id-must-match", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "ddns-hostname", V6: true, Value: Texts, Refusal: withoutDNS6},
	{Name: "ddns-local-address6", V6: true, Value: Address, Refusal: withoutDNS6},
	{Name: "ddns-other-guard-is-dynamic", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "ddns-rev-domainname", V6: true, Value: Text, Refusal: withoutDNS6},
	{Name: "ddns-ttl", V6: true, Value: Number, Refusal: withoutDNS6},
	{Name: "ddns-update-style", V6: true, Value: Text, Refusal: withoutDNS6},
	{Name: "ddns-updates", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "default-lease-time", V6: true, Value: Number, Min: 1, Effect: "Valid lifetime in seconds for clients that ask for none."},
	{Name: "dhcp-cache-threshold", V6: true, Value: Number, Max: 100,
		Effect: "A renewal in this first percentage of a lease gets the rest of it, and is not stored."},
	{Name: "dhcpv6-set-tee-times", V6: true, Value: Boolean,
		Effect: "Off: T1 and T2 are 0, and the client chooses them. On, the default: 0.5 and 0.8 of the preferred lifetime."},
	{Name: "do-forward-updates", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "do-reverse-updates", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "leasequery", V6: true, Value: Boolean, Refusal: without6},
	{Name: "limit-addresses-per-ia", V6: true, Value: Number, Min: 1, Max: 1,
		Effect: "An identity association has one address; other numbers are refused."},
	{Name: "limit-prefixes-per-ia", V6: true, Value: Number, Min: 1, Max: 1,
		Effect: "An identity association has one prefix; other numbers are refused."},
	{Name: "log-threshold-high", V6: true, Value: Number, Max: 100, Refusal: withoutLogs6},
	{Name: "log-threshold-low", V6: true, Value: Number, Max: 100, Refusal: withoutLogs6},
	{Name: "max-lease-time", V6: true, Value: Number, Min: 1, Effect: "Longest valid lifetime in seconds."},
	{Name: "min-lease-time", V6: true, Value: Number, Min: 1, Effect: "Shortest valid lifetime in seconds."},
	{Name: "one-lease-per-client", V6: true, Value: Boolean, Refusal: without6},
	{Name: "preference", V6: true, Value: Number, Max: 255, Effect: "The preference option of ADVERTISE messages."},
	{Name: "preferred-lifetime", V6: true, Value: Number,
		Effect: "Preferred lifetime in seconds, at most the valid lifetime; without it five eighths of that."},
	{Name: "prefix-length-mode", V6: true, Value: Text, Values: []string{"prefer", "exact", "minimum", "maximum", "ignore"},
		Effect: "Which ranges serve a client that asks for a length: prefer, exact, minimum, maximum or ignore."},
	{Name: "rapid-commit", V6: true, Value: Boolean,
		Effect: "A SOLICIT with the option rapid commit gets a REPLY with leases at once."},
	{Name: "release-on-roam", V6: true, Value: Boolean,
		Effect: "A lease on a new link releases the leases of the association on other links."},
	{Name: "update-conflict-detection", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "update-optimization", V6: true, Value: Boolean, Refusal: withoutDNS6},
	{Name: "update-static-leases", V6: true, Value: Boolean, Refusal: withoutDNS6},
}
