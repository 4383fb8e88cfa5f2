package address

import (
	"net/http"

	"portolan/internal/resource"
)

// headers are the request headers that the rules of the types look at (reference/address-manager-behaviour.md,
// Request headers).
func headers() []resource.RequestHeader {
	create, write, read := []string{http.MethodPost}, []string{http.MethodPost, http.MethodPut, http.MethodPatch}, []string{http.MethodGet}
	space := []string{"IPv4Block", "IPv6Block", "IPv4Network", "IPv6Network"}
	addresses := []string{"IPv4Address", "IPv6Address"}
	records := []string{"HostRecord", "AliasRecord", "MXRecord", "SRVRecord", "TXTRecord", "NAPTRRecord", "HINFORecord", "GenericRecord"}
	return []resource.RequestHeader{
		{Name: "x-bcn-traversal-method", Description: "Where space of a given size is looked for: right below the parent, or through its blocks.",
			Values: []string{"NO_TRAVERSAL", "DEPTH_FIRST", "BREADTH_FIRST"}, Methods: create, Types: space},
		{Name: "x-bcn-reuse-existing", Description: "With DEPTH_FIRST or BREADTH_FIRST, take an empty one that is there already.", Values: resource.Flag, Methods: create, Types: space},
		{Name: "x-bcn-no-gateway", Description: "Make no gateway.", Values: resource.Flag, Methods: write, Types: []string{"IPv4Network"}},
		{Name: withinHeader, Description: "The id of a DHCP range or IP group of the network: the next free address is taken out of it. Ours.", Methods: create, Types: addresses},
		{Name: reverseHeader, Description: "Whether the address leads back to the host that is named with it.", Values: resource.Flag, Methods: write, Types: addresses},
		{Name: "x-bcn-auto-create-network", Description: "Make the network that an address of the host lacks.", Values: resource.Flag, Methods: write, Types: []string{"HostRecord"}},
		{Name: "x-bcn-allow-address-overlap", Description: "With x-bcn-auto-create-network, take the largest smaller network where others are in the way.", Values: resource.Flag, Methods: write, Types: []string{"HostRecord"}},
		{Name: "x-bcn-same-as-zone", Description: "Give the record the zone's own name.", Values: resource.Flag, Methods: create, Types: records},
		{Name: "x-bcn-link-to-external-host", Description: "Link to an external host where no record has the name.", Values: resource.Flag, Methods: write, Types: []string{"AliasRecord", "MXRecord", "SRVRecord"}},
		{Name: "x-bcn-override-naming-policy", Description: "Do not ask the naming policies.", Values: resource.Flag, Methods: write, Types: append([]string{"Zone"}, records...)},
		{Name: "x-bcn-allow-multi-label-zonenames", Description: "Make one dotted zone instead of the zones in between.", Values: resource.Flag, Methods: write, Types: []string{"Zone"}},
		{Name: "x-bcn-orphaned-address-state", Description: "The state of the addresses that a smaller DHCP range leaves outside.", Values: orphanStates, Methods: []string{http.MethodPut, http.MethodPatch}, Types: []string{"IPv4DHCPRange"}},
		{Name: "x-bcn-force-undo", Description: "Undo also where the same resources were changed since.", Values: resource.Flag, Methods: create, Types: []string{"Transaction"}},
		{Name: "x-bcn-skip-cache", Description: "Taken, and of no effect: every answer is fresh.", Methods: read},
		{Name: "x-bcn-calculate-inherited", Description: "Taken, and of no effect: what is inherited is always calculated.", Methods: read},
	}
}
