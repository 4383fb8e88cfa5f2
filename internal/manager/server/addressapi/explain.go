package addressapi

import (
	"net/http"
	"net/netip"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcppublish"
)

// explainPath is the path of explanations of DHCP.
const explainPath = published.Base + "/dhcpExplanation"

// explanationPath declares the explanation of a DHCP client's lease and options.
func (a *API) explanationPath() family.Path {
	text := family.Schema{"type": "string"}
	return family.Path{Pattern: explainPath, Operations: []family.Operation{{
		Method: http.MethodGet, ID: "getDhcpExplanation", Summary: "What a DHCP client would get, and why (Portolan extension)",
		Description: "The answer of the server of a network to a DISCOVER or, in DHCPv6, a SOLICIT of a client, with the object that each " +
			"option comes from. It is computed by the function that the server itself uses, over the deployed content.",
		Access: family.Access{Schemes: schemes, Admit: a.admit},
		Query: []family.Parameter{
			{Name: "network", Description: "The id of the network of the client; without it, the network that contains relay.",
				Schema: family.Schema{"type": "integer", "format": "int64"}},
			{Name: "relay", Description: "The address of the relay agent: giaddr, in DHCPv6 the link address. By default the first address " +
				"of the network.", Schema: text},
			{Name: "macAddress", Description: "The hardware address of the client.", Schema: text},
			{Name: "clientIdentifier", Description: "The client identifier: a text, or octets such as 0x0A0B. In DHCPv6 the DUID, in " +
				"hexadecimal digits; without one it follows from the hardware address.", Schema: text},
			{Name: "iaid", Description: "The number of the identity association of DHCPv6, by default 1.",
				Schema: family.Schema{"type": "integer", "format": "int64"}},
			{Name: "circuitId", Description: "The circuit id of the relay agent.", Schema: text},
			{Name: "remoteId", Description: "The remote id of the relay agent.", Schema: text},
			{Name: "vendorClassIdentifier", Description: "The vendor class of the client.", Schema: text},
			{Name: "options", Description: "Other options that the client sends in DHCPv4, as CODE:VALUE separated by commas, such as " +
				"93:0x0007,77:iPXE. A value is a text, or octets such as 0x0A0B.", Schema: text},
			{Name: "prefix", Description: "true asks for a delegated prefix (IA_PD) instead of an address, in DHCPv6.",
				Schema: family.Schema{"type": "boolean"}},
			{Name: "requested", Description: "The address that the client requests. With prefix, a prefix such as 2001:db8:100::/56, or " +
				"::/56 for any prefix of a length.", Schema: text},
			{Name: "planned", Description: "true asks about the current settings, not about the deployed ones.",
				Schema: family.Schema{"type": "boolean"}},
		},
		Success:  family.Success{Status: http.StatusOK, Description: "The explanation.", Schema: family.Ref("DhcpExplanation")},
		Problems: []int{400, 404, 409}, Handle: a.explain,
	}}}
}

// readRequested reads the kind of the question, and the address or prefix that the client requests.
func readRequested(q *dhcppublish.Question, prefix, requested string) (err error) {
	if prefix != "" {
		if q.Prefix, err = strconv.ParseBool(prefix); err != nil {
			return problem.Query("prefix", "must be true or false")
		}
	}
	switch {
	case requested == "":
	case q.Prefix:
		p, err := netip.ParsePrefix(requested)
		if err != nil || p.Bits() == 0 {
			return problem.Query("requested", "must be a prefix such as 2001:db8:100::/56, not %q", requested)
		}
		q.Requested, q.RequestedLength = p.Masked().Addr(), p.Bits()
	default:
		if q.Requested, err = netip.ParseAddr(requested); err != nil || q.Requested.Zone() != "" {
			return problem.Query("requested", "must be an IP address, not %q", requested)
		}
	}
	return nil
}

// explain answers with the explanation.
func (a *API) explain(w http.ResponseWriter, r *family.Request) error {
	query := r.URL.Query()
	q := dhcppublish.Question{MACAddress: query.Get("macAddress"), ClientIdentifier: query.Get("clientIdentifier"),
		CircuitID: query.Get("circuitId"), RemoteID: query.Get("remoteId"), VendorClass: query.Get("vendorClassIdentifier"),
		Options: query.Get("options")}
	var err error
	if text := query.Get("relay"); text != "" {
		if q.Relay, err = netip.ParseAddr(text); err != nil || q.Relay.Zone() != "" {
			return problem.Query("relay", "must be an IP address, not %q", text)
		}
		q.Relay = q.Relay.Unmap()
	}
	if text := query.Get("network"); text != "" {
		if q.Network, err = strconv.ParseInt(text, 10, 64); err != nil || q.Network <= 0 {
			return problem.Query("network", "%q is not the id of a network", text)
		}
	}
	if err := readRequested(&q, query.Get("prefix"), query.Get("requested")); err != nil {
		return err
	}
	q.IAID = 1
	if text := query.Get("iaid"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return problem.Query("iaid", "must be a number of 32 bits, not %q", text)
		}
		q.IAID = uint32(n)
	}
	if text := query.Get("planned"); text != "" {
		if q.Planned, err = strconv.ParseBool(text); err != nil {
			return problem.Query("planned", "must be true or false")
		}
	}
	var answer dhcppublish.Explanation
	if err := a.Address.Store.View(r.Context(), func(tx *store.Tx) (err error) {
		answer, err = dhcppublish.Explain(tx, a.Address, callerOf(r), q)
		return err
	}); err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, answer)
	return nil
}
