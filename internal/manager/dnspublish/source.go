package dnspublish

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/manager/dns/transfer"
)

// source is where a zone is copied from: an address of a server, asked at the port of DNS, with the key that it is asked by.
type source struct {
	netip.Addr
	// key is nil where what is asked is not signed; unkeyed says why it cannot be asked, where the key is wrong.
	key     *transfer.TransferKey
	unkeyed string
}

// String is the address with the port.
func (s source) String() string { return netip.AddrPortFrom(s.Addr, dnsPort).String() }

// same reports whether both are asked alike.
func (s source) same(o source) bool {
	return s.Addr == o.Addr && s.unkeyed == o.unkeyed && (s.key == nil) == (o.key == nil) && (s.key == nil || *s.key == *o.key)
}

// authority asks it for the SOA of a zone.
func (s source) authority(ctx context.Context, zone string) (*wire.SOA, error) {
	if s.unkeyed != "" {
		return nil, fmt.Errorf("asking %s: %s", s, s.unkeyed)
	}
	return transfer.FetchAuthority(ctx, s.String(), zone, s.key)
}

// sources gives where zones are copied from that an interface of a server of others has.
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
