package dhcp

import (
	"container/list"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
)

// offer holds an address for a client for a short time. Offers are not stored on the disk.
type offer struct {
	address  netip.Addr
	network  int64
	pool     int64
	client   string
	hardware []byte
	relay    netip.Addr
	until    int64
	element  *list.Element
	// probing is true while the address is probed: the offer is not sent before. probed is true after a probe without an answer.
	probing, probed bool
}

// offers are the offers of all networks, the oldest first.
type offers struct {
	all       list.List
	clients   map[string]*offer
	addresses map[netip.Addr]*offer
	relays    map[netip.Addr]int
}

// Limits of offers: their number, the number through one relay, and their duration in seconds.
const (
	maxOffers         = 64 << 10
	maxOffersPerRelay = maxOffers / 4
	offerSeconds      = 120
)

func newOffers() offers {
	return offers{clients: map[string]*offer{}, addresses: map[netip.Addr]*offer{}, relays: map[netip.Addr]int{}}
}

// offer holds an address for a client. It returns false if there are too many offers already. A client has one offer at a time.
func (t *table) offer(o offer, a netip.Addr) bool {
	t.withdraw(o.client)
	if t.offers.all.Len() >= maxOffers || t.offers.relays[o.relay] >= maxOffersPerRelay {
		return false
	}
	if before := t.offers.addresses[a]; before != nil { // it has expired, or the address was reserved meanwhile
		t.drop(before)
	}
	if l := t.lease(a); l != nil { // so that the search does not pass through offered addresses
		t.unlist(t.slots.find(a), l.pool)
	}
	o.address, o.until = a, t.now()+offerSeconds
	o.element = t.offers.all.PushBack(&o)
	t.offers.addresses[a] = &o
	t.offers.clients[o.client] = &o
	t.offers.relays[o.relay]++
	return true
}

// withdraw drops the offer to a client.
func (t *table) withdraw(client string) {
	if o := t.offers.clients[client]; o != nil {
		t.drop(o)
	}
}

// withdraw drops the offers to the client of a message. A client with an identifier can have one by its hardware address as well, of an
// address that is reserved for that. The caller holds mu.
func (e *engine) withdraw(r *request, d *dhcpdata.Decision) {
	e.table.withdraw(d.Client)
	e.table.withdraw(dhcpdata.Identity(r.facts.HardwareType, r.facts.Hardware, r.facts.Options[optClientID]))
	e.table.withdraw(dhcpdata.Identity(r.facts.HardwareType, r.facts.Hardware, nil))
}

// drop drops an offer. An address that was never leased is the next one to be offered.
func (t *table) drop(o *offer) {
	t.offers.all.Remove(o.element)
	delete(t.offers.clients, o.client)
	if t.offers.relays[o.relay]--; t.offers.relays[o.relay] == 0 {
		delete(t.offers.relays, o.relay)
	}
	delete(t.offers.addresses, o.address)
	if l := t.lease(o.address); l != nil {
		t.list(t.slots.find(o.address), l, true)
		return
	}
	t.giveBack(o.pool, o.address)
}

// dropExpired drops the offers that have expired.
func (t *table) dropExpired() {
	now := t.now()
	for e := t.offers.all.Front(); e != nil; e = t.offers.all.Front() {
		o := e.Value.(*offer)
		if o.until > now {
			return
		}
		t.drop(o)
	}
}
