package convert

import (
	"encoding/json"
	"net/netip"
)

type keaFile struct {
	Dhcp4 *keaServer
	Dhcp6 *keaServer
}

// keaLevel are the settings that the levels of a configuration have: the server, shared networks, subnets, pools, classes and reservations.
type keaLevel struct {
	Options           []keaOption     `json:"option-data"`
	Valid             *int            `json:"valid-lifetime"`
	MinValid          *int            `json:"min-valid-lifetime"`
	MaxValid          *int            `json:"max-valid-lifetime"`
	Preferred         *int            `json:"preferred-lifetime"`
	MinPreferred      *int            `json:"min-preferred-lifetime"`
	MaxPreferred      *int            `json:"max-preferred-lifetime"`
	Renew             *int            `json:"renew-timer"`
	Rebind            *int            `json:"rebind-timer"`
	NextServer        string          `json:"next-server"`
	ServerName        string          `json:"server-hostname"`
	FileName          string          `json:"boot-file-name"`
	MatchClientID     *bool           `json:"match-client-id"`
	Authoritative     *bool           `json:"authoritative"`
	RapidCommit       *bool           `json:"rapid-commit"`
	CacheThreshold    json.RawMessage `json:"cache-threshold"`
	SendUpdates       *bool           `json:"ddns-send-updates"`
	OverrideNoUpdate  *bool           `json:"ddns-override-no-update"`
	OverrideUpdate    *bool           `json:"ddns-override-client-update"`
	ReplaceName       string          `json:"ddns-replace-client-name"`
	GeneratedPrefix   string          `json:"ddns-generated-prefix"`
	Suffix            string          `json:"ddns-qualifying-suffix"`
	UpdateOnRenew     *bool           `json:"ddns-update-on-renew"`
	ResolveConflicts  *bool           `json:"ddns-use-conflict-resolution"`
	ConflictMode      string          `json:"ddns-conflict-resolution-mode"`
	Class             string          `json:"client-class"`
	Classes           []string        `json:"client-classes"`
	RequiredClasses   []string        `json:"require-client-classes"`
	AdditionalClasses []string        `json:"evaluate-additional-classes"`
}

type keaServer struct {
	keaLevel
	Subnet4        []keaSubnet      `json:"subnet4"`
	Subnet6        []keaSubnet      `json:"subnet6"`
	SharedNetworks []keaShared      `json:"shared-networks"`
	Reservations   []keaReservation `json:"reservations"`
	ClassList      []keaClass       `json:"client-classes"`
	Definitions    []keaDefinition  `json:"option-def"`
	EchoClientID   *bool            `json:"echo-client-id"`
	Probation      *int             `json:"decline-probation-period"`
	Updates        struct {
		Enabled *bool `json:"enable-updates"`
		// The other members are about the connection to the program that sends the updates, except for former settings of names.
		Suffix          string `json:"qualifying-suffix"`
		ReplaceName     string `json:"replace-client-name"`
		GeneratedPrefix string `json:"generated-prefix"`
	} `json:"dhcp-ddns"`
	Hooks []keaHook `json:"hooks-libraries"`
}

// reserved returns the addresses of all reservations.
func (s *keaServer) reserved() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	add := func(reservations []keaReservation) {
		for _, one := range reservations {
			if a, err := netip.ParseAddr(one.IPAddress); err == nil {
				all[a] = true
			}
		}
	}
	subnets := func(list []keaSubnet) {
		for _, one := range list {
			add(one.Reservations)
		}
	}
	add(s.Reservations)
	subnets(append(s.Subnet4, s.Subnet6...))
	for _, shared := range s.SharedNetworks {
		add(shared.Reservations)
		subnets(append(shared.Subnet4, shared.Subnet6...))
	}
	return all
}

type keaShared struct {
	keaLevel
	Name         string           `json:"name"`
	Subnet4      []keaSubnet      `json:"subnet4"`
	Subnet6      []keaSubnet      `json:"subnet6"`
	Reservations []keaReservation `json:"reservations"`
}

type keaSubnet struct {
	keaLevel
	ID           json.RawMessage  `json:"id"`
	Subnet       string           `json:"subnet"`
	Pools        []keaPool        `json:"pools"`
	PDPools      []keaPrefixPool  `json:"pd-pools"`
	Reservations []keaReservation `json:"reservations"`
	Relay        keaRelay         `json:"relay"`
	Context      struct {
		Name string `json:"name"`
	} `json:"user-context"`
	wrong error
}

// keaRelay are the relays of a subnet.
type keaRelay struct {
	Address   string   `json:"ip-address"`
	Addresses []string `json:"ip-addresses"`
}

// UnmarshalJSON reads the valid parts of a subnet.
func (s *keaSubnet) UnmarshalJSON(raw []byte) (err error) {
	type plain keaSubnet
	s.wrong, err = readPart(raw, (*plain)(s))
	return err
}

type keaPool struct {
	keaLevel
	Pool  string `json:"pool"`
	wrong error
}

// UnmarshalJSON reads the valid parts of a pool.
func (p *keaPool) UnmarshalJSON(raw []byte) (err error) {
	type plain keaPool
	p.wrong, err = readPart(raw, (*plain)(p))
	return err
}

// keaPrefixPool is a pool of delegated prefixes.
type keaPrefixPool struct {
	Prefix    string          `json:"prefix"`
	Length    json.RawMessage `json:"prefix-len"`
	Delegated json.RawMessage `json:"delegated-len"`
}

type keaReservation struct {
	keaLevel
	wrong       error
	Prefixes    []string `json:"prefixes"`
	HWAddress   string   `json:"hw-address"`
	DUID        string   `json:"duid"`
	ClientID    string   `json:"client-id"`
	CircuitID   string   `json:"circuit-id"`
	FlexID      string   `json:"flex-id"`
	IPAddress   string   `json:"ip-address"`
	IPAddresses []string `json:"ip-addresses"`
	Hostname    string   `json:"hostname"`
}

type keaOption struct {
	Name  string `json:"name"`
	Code  int    `json:"code"`
	Space string `json:"space"`
	Data  string `json:"data"`
	// CSV reports that the data are values with commas, and not octets; true if it is absent.
	CSV        *bool `json:"csv-format"`
	AlwaysSend *bool `json:"always-send"`
	NeverSend  *bool `json:"never-send"`
}

// keaDefinition is the definition of an option.
type keaDefinition struct {
	Name        string `json:"name"`
	Code        int    `json:"code"`
	Space       string `json:"space"`
	Type        string `json:"type"`
	Array       bool   `json:"array"`
	RecordTypes string `json:"record-types"`
	Encapsulate string `json:"encapsulate"`
}

// keaClass is a class of clients.
type keaClass struct {
	keaLevel
	Name        string          `json:"name"`
	Test        string          `json:"test"`
	Template    string          `json:"template-test"`
	OnlyIf      *bool           `json:"only-if-required"`
	OnlyIn      *bool           `json:"only-in-additional-list"`
	Definitions []keaDefinition `json:"option-def"`
}

// UnmarshalJSON reads the valid parts of a reservation.
func (r *keaReservation) UnmarshalJSON(raw []byte) (err error) {
	type plain keaReservation
	r.wrong, err = readPart(raw, (*plain)(r))
	return err
}

// keaReasons are the settings that are not imported, with the reason.
var keaReasons = map[string]string{
	"interfaces-config": "a server serves the interfaces with an address of a served network", "lease-database": processOnly,
	"hosts-database": hostsDatabase, "hosts-databases": hostsDatabase, "control-socket": processOnly, "control-sockets": processOnly,
	"loggers":         processOnly,
	"multi-threading": processOnly, "expired-leases-processing": processOnly, "sanity-checks": processOnly, "config-control": processOnly,
	"statistic-default-sample-count": processOnly, "statistic-default-sample-age": processOnly, "dhcp-queue-control": processOnly,
	"server-tag": processOnly, "dhcp4o6-port": processOnly, "parked-packet-limit": processOnly,
	"server-id":                    "the server has a DUID of its own",
	"host-reservation-identifiers": "reservations are found by client identifier, hardware address and DUID",
	"reservation-mode":             reservationsFound, "reservations-global": reservationsFound,
	"reservations-in-subnet":   reservationsFound,
	"reservations-out-of-pool": reservationsFound, "ip-reservations-unique": "an address is reserved for one client",
	"reservations-lookup-first": reservationsFound, "store-extended-info": "relay information is always stored",
	"interface":    "the network of a client without a relay is that of the interface's address",
	"interface-id": "networks are found by addresses",
	"option-def":   "definitions of classes are not imported", "user-context": "comments", "comment": "comments", "logging": processOnly,
	"cache-max-age": "only cache-threshold limits it", "calculate-tee-times": "T1 and T2 are always sent",
	"t1-percent": "T1 is half of the lease",
	"t2-percent": "T2 is seven eighths of the lease", "hostname-char-set": hostNames, "hostname-char-replacement": hostNames,
	"allocator": "the address that was free for longest is chosen", "pd-allocator": "a client gets the same prefix again if it can",
	"offer-lifetime": "offers are held for two minutes",
	"4o6-subnet":     "DHCPv4 over DHCPv6 is not served", "4o6-interface": "DHCPv4 over DHCPv6 is not served",
	"4o6-interface-id": "DHCPv4 over DHCPv6 is not served", "mac-sources": "the relay and the DUID tell the hardware address",
	"relay-supplied-options": "options of relays are not sent to clients", "data-directory": processOnly, "dhcp-ddns": processOnly,
	"early-global-reservations-lookup": reservationsFound, "ddns-ttl-percent": "a third of the lease, or ddns-ttl",
	"compatibility": processOnly, "stash-agent-options": "relay information is always used for renewals",
}

const (
	hostsDatabase     = "reservations in databases: import them from a configuration file"
	reservationsFound = "a reservation always wins"
	hostNames         = "names of clients become valid host names"
)
