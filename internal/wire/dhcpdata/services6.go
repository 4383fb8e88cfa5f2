package dhcpdata

// without6 is the reason for options of DHCPv6 that are refused.
const without6 = "DHCPv6 is not served yet"

// services6 are the service options of DHCPv6.
var services6 = []ServiceOption{
	{Name: "abandon-lease-time", V6: true, Value: Number, Refusal: without6},
	{Name: "authoritative", V6: true, Value: Boolean, Refusal: without6},
	{Name: "boot-unknown-clients", V6: true, Value: Boolean, Refusal: without6},
	{Name: "client-updates", V6: true, Value: Boolean, Refusal: without6},
	{Name: "ddns-domainname", V6: true, Value: Text, Refusal: without6},
	{Name: "ddns-dual-stack-mixed-mode", V6: true, Value: Boolean, Refusal: without6},
	{Name: "ddns-guard-id-must-match", V6: true, Value: Boolean, Refusal: without6},
	{Name: "ddns-hostname", V6: true, Value: Texts, Refusal: without6},
	{Name: "ddns-local-address6", V6: true, Value: Address, Refusal: without6},
	{Name: "ddns-other-guard-is-dynamic", V6: true, Value: Boolean, Refusal: without6},
	{Name: "ddns-rev-domainname", V6: true, Value: Text, Refusal: without6},
	{Name: "ddns-ttl", V6: true, Value: Number, Refusal: without6},
	{Name: "ddns-update-style", V6: true, Value: Text, Refusal: without6},
	{Name: "ddns-updates", V6: true, Value: Boolean, Refusal: without6},
	{Name: "default-lease-time", V6: true, Value: Number, Refusal: without6},
	{Name: "dhcp-cache-threshold", V6: true, Value: Number, Max: 100, Refusal: without6},
	{Name: "dhcpv6-set-tee-times", V6: true, Value: Boolean, Refusal: without6},
	{Name: "do-forward-updates", V6: true, Value: Boolean, Refusal: without6},
	{Name: "do-reverse-updates", V6: true, Value: Boolean, Refusal: without6},
	{Name: "leasequery", V6: true, Value: Boolean, Refusal: without6},
	{Name: "limit-addresses-per-ia", V6: true, Value: Number, Refusal: without6},
	{Name: "limit-prefixes-per-ia", V6: true, Value: Number, Refusal: without6},
	{Name: "log-threshold-high", V6: true, Value: Number, Max: 100, Refusal: without6},
	{Name: "log-threshold-low", V6: true, Value: Number, Max: 100, Refusal: without6},
	{Name: "max-lease-time", V6: true, Value: Number, Refusal: without6},
	{Name: "min-lease-time", V6: true, Value: Number, Refusal: without6},
	{Name: "one-lease-per-client", V6: true, Value: Boolean, Refusal: without6},
	{Name: "preference", V6: true, Value: Number, Max: 255, Refusal: without6},
	{Name: "preferred-lifetime", V6: true, Value: Number, Refusal: without6},
	{Name: "prefix-length-mode", V6: true, Value: Text, Refusal: without6},
	{Name: "rapid-commit", V6: true, Value: Boolean, Refusal: without6},
	{Name: "release-on-roam", V6: true, Value: Boolean, Refusal: without6},
	{Name: "update-conflict-detection", V6: true, Value: Boolean, Refusal: without6},
	{Name: "update-optimization", V6: true, Value: Boolean, Refusal: without6},
	{Name: "update-static-leases", V6: true, Value: Boolean, Refusal: without6},
}
