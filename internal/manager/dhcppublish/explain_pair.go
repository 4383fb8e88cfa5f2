package dhcppublish

import (
	"fmt"
	"net/netip"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"
)

// pairOfExplained is the failover pair of the network of an explanation.
type pairOfExplained struct {
	dhcpdata.Pair
	// alone is true while the server leases without its partner: nothing limits its leases.
	alone bool
}

var _ dhcpdata.Limiter = (*reportedLeases)(nil)

// readPair returns the pair of a network in the content of a server; nil without one.
func readPair(tx *store.Tx, a *resource.API, c *dhcpdata.Content, server, network int64) (*pairOfExplained, error) {
	x, paired := c.Pairs[c.PairOfNetwork(network)]
	if !paired {
		return nil, nil
	}
	alone, err := dhcp.IsWithoutPartner(tx, a, server, x.Partner)
	return &pairOfExplained{x, alone}, err
}

// Limit implements dhcpdata.Limiter: a client without a lease gets one for MCLT at first. How long the next ones are is known to the
// servers only, and usually as long as configured.
func (l *reportedLeases) Limit(network int64, _ netip.Addr, client string, wanted, now int64) int64 {
	if l.pair == nil || l.pair.alone {
		return wanted
	}
	if s, has := l.ClientLease(network, client); has && s.State == dhcpdata.Leased {
		return wanted
	}
	return min(wanted, now+int64(l.pair.MCLT))
}

// addTo adds the rule that chooses the server of the pair for a new client. id is the client identifier, the hardware address or the
// DUID.
func (p *pairOfExplained) addTo(e *Explanation, id []byte) {
	if p == nil {
		return
	}
	this, first, second := "this server", "this server", p.PartnerName
	if !p.Primary {
		first, second = second, this
	}
	if int(dhcppair.Bucket(id)) >= p.Split {
		first, second = second, first
	}
	result := fmt.Sprintf("%s answers a new client, and %s after %d s; a new lease lasts at most %d s", first, second, p.Override, p.MCLT)
	if p.alone {
		result = "the partner " + p.PartnerName + " is down: this server answers, and nothing limits its leases"
	}
	e.Steps = append(e.Steps, ExplainedStep{"failover pair", result, ExplainedPlace{string(dhcpdata.AtServer), e.Server.ID, e.Server.Name}})
}
