package dnspublish

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/manager/dns/transfer"
)

// source is an address that a zone is copied from, and the key that signs the requests. The port is always that of DNS.
type source struct {
	netip.Addr
	// key is nil where requests are not signed. unkeyed is the reason why no request can be sent, where the key is not usable.
	key     *transfer.TransferKey
	unkeyed string
}

// String returns the address with the port.
func (s source) String() string { return netip.AddrPortFrom(s.Addr, dnsPort).String() }

// equals reports whether both sources have the same address and key.
func (s source) equals(o source) bool {
	return s.Addr == o.Addr && s.unkeyed == o.unkeyed && (s.key == nil) == (o.key == nil) && (s.key == nil || *s.key == *o.key)
}

// authority requests the SOA of a zone from the source.
func (s source) authority(ctx context.Context, zone string) (*wire.SOA, error) {
	if s.unkeyed != "" {
		return nil, fmt.Errorf("query %s: %s", s, s.unkeyed)
	}
	return transfer.FetchAuthority(ctx, s.String(), zone, s.key)
}

// sources returns the sources of an interface of a foreign server.
func (p *plan) sources(iface int64) (all []source) {
	at := p.interfaces[iface]
	var key *transfer.TransferKey
	unkeyed := ""
	if name := p.transferKeys[at.server]; name != "" {
		k, there := p.keys[name]
		if !there {
			unkeyed = fmt.Sprintf("the key %s has no secret", name)
		}
		key = &transfer.TransferKey{Name: k.Name, Algorithm: k.Algorithm, Secret: base64.StdEncoding.EncodeToString(k.Secret)}
	}
	for _, a := range at.addresses {
		all = append(all, source{a, key, unkeyed})
	}
	return all
}
