package convert

import (
	"encoding/json"
	"slices"
	"strings"
)

// pairNote is the note about a failover pair. Serve removes it if the networks get both servers.
const pairNote = "the failover pair: give the networks a role with both servers (--server and --partner)"

// keaHook is a program that Kea loads.
type keaHook struct {
	Library string `json:"library"`
	// Parameters are those of libdhcp_ha. The parameters of other programs may have any format.
	Parameters json.RawMessage `json:"parameters"`
}

// isPair reports whether the program is libdhcp_ha.
func (h *keaHook) isPair() bool { return strings.Contains(h.Library, "libdhcp_ha") }

// keaPair are the servers of libdhcp_ha.
type keaPair struct {
	Mode  string `json:"mode"`
	Peers []struct {
		Name string `json:"name"`
		Role string `json:"role"`
	} `json:"peers"`
}

// allOfOnePeer is the share of the primary server, of 256, in the mode hot-standby.
const allOfOnePeer = 256

// defaultLead is the maximum client lead time of a pair without the option mclt, in seconds.
const defaultLead = 3600

// alwaysTrue is a condition that each client meets.
const alwaysTrue = "exists dhcp-message-type"

// pairs reads the parameters of libdhcp_ha: the share of the primary server, and the classes of the clients of one server (HA_NAME). A
// failover pair divides free addresses by itself, so ranges for these classes serve all clients.
func (k *kea) pairs(s *keaServer) {
	for _, hook := range s.Hooks {
		if !hook.isPair() {
			k.leave("the hook %s: programs of other servers are not loaded", hook.Library[strings.LastIndexByte(hook.Library, '/')+1:])
			continue
		}
		k.leave(pairNote)
		var all struct {
			Pairs []keaPair `json:"high-availability"`
		}
		if err := json.Unmarshal(hook.Parameters, &all); err != nil {
			k.leave("the parameters of the hook libdhcp_ha, which are invalid: %v", err)
			continue
		}
		k.leave("the intervals and limits of the hook libdhcp_ha: see mclt, max-response-delay and load-balance-override")
		if shortest := s.shortestLease(); shortest <= defaultLead {
			k.pairOption("mclt", shortest/2)
		}
		for _, pair := range all.Pairs {
			for _, peer := range pair.Peers {
				if k.halves["HA_"+peer.Name] = true; peer.Role == "backup" {
					k.leave("the backup server %s: a failover pair has two servers", peer.Name)
				}
			}
			if pair.Mode == "hot-standby" {
				k.pairOption("load-balance-split", allOfOnePeer)
			}
		}
	}
}

// pairOption adds an option of failover pairs. It is one of DHCPv4 and applies to both families.
func (k *kea) pairOption(name string, value int) {
	k.emit("", &settings{[]setting{{k.rowName, true, name, value}}}, false)
}

// shortestLease returns the shortest lease time of the server and its networks and ranges, in seconds. Kea has no maximum client lead time,
// and that of Portolan is shorter than each lease.
func (s *keaServer) shortestLease() int {
	shortest := defaultOfKea
	if s.Valid != nil {
		shortest = *s.Valid
	}
	of := func(l *keaLevel) {
		if l.Valid != nil && *l.Valid > 0 {
			shortest = min(shortest, *l.Valid)
		}
	}
	all := slices.Concat(s.Subnet4, s.Subnet6)
	for _, one := range s.SharedNetworks {
		of(&one.keaLevel)
		all = slices.Concat(all, one.Subnet4, one.Subnet6)
	}
	for _, subnet := range all {
		of(&subnet.keaLevel)
		for _, pool := range subnet.Pools {
			of(&pool.keaLevel)
		}
	}
	return shortest
}
