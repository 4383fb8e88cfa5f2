package dnspublish

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/wire/zonedata"
)

// packedZone collects the records of a large zone in wire form. Their bytes are in large blocks, so that a zone takes little more memory
// than its records.
type packedZone struct {
	apex    string
	key     []byte
	entries []zonedata.Entry
	block   zonedata.Block
}

// packedBlock is the size of a block in octets.
const packedBlock = 1 << 18

// packZone returns an empty packedZone with space for the records of a zone.
func (p *plan) packZone(z *plannedZone) (*packedZone, error) {
	name, err := zonedata.WireName(z.fqdn())
	if err != nil {
		return nil, err
	}
	n := 0
	if z.row.ID != 0 { // a list that grows would need its memory twice
		err = p.tx.QueryRow("SELECT count(*) FROM resource WHERE parent = ? AND collection = 'resourceRecords'", z.row.ID).Scan(&n)
	}
	return &packedZone{apex: z.fqdn(), key: zonedata.Key([]byte(name)), entries: make([]zonedata.Entry, 0, n+n/64)}, err
}

// add adds a record, which must be in the zone.
func (p *packedZone) add(rr wire.RR) error {
	r, err := zonedata.NewRecord(rr)
	if err != nil {
		return err
	}
	e, ok := p.block.Add(r)
	if !ok {
		p.block = zonedata.NewBlock(max(packedBlock, 4*len(r)))
		e, _ = p.block.Add(r) // its key has at most twice the octets of its owner
	}
	if !bytes.HasPrefix(e.Key(), p.key) {
		return fmt.Errorf("%s is not in the zone %s", rr.Header().Name, p.apex)
	}
	p.entries = append(p.entries, e)
	return nil
}

// sortEntries returns the records in order, each set without duplicates and with its lowest TTL.
func (p *packedZone) sortEntries() ([]zonedata.Entry, error) {
	all := p.entries
	slices.SortFunc(all, zonedata.Entry.Compare)
	kept := all[:0]
	for from := 0; from < len(all); {
		to, kind := from+1, all[from].Record().Type()
		for to < len(all) && all[to].Record().Type() == kind && bytes.Equal(all[to].Key(), all[from].Key()) {
			to++
		}
		set := all[from:to]
		if len(set) > 1 {
			var err error
			if set, err = unifySet(set); err != nil {
				return nil, err
			}
		}
		kept = append(kept, set...) // at most as many as were read
		from = to
	}
	return kept, p.checkAliases(kept)
}

// unifySet returns a set of more than one record without duplicates and with its lowest TTL.
func unifySet(set []zonedata.Entry) ([]zonedata.Entry, error) {
	rrs := make([]wire.RR, len(set))
	for i, e := range set {
		rr, err := e.Record().RR()
		if err != nil {
			return nil, err
		}
		rrs[i] = rr
	}
	all, err := entriesOfRecords(naming.Unify(rrs))
	return inOrder(all), err
}

// checkAliases returns an error if a name has a CNAME record and other records (RFC 1034 section 3.6.2).
func (p *packedZone) checkAliases(all []zonedata.Entry) error {
	for i, e := range all {
		if e.Record().Type() != wire.TypeCNAME {
			continue
		}
		if i > 0 && bytes.Equal(all[i-1].Key(), e.Key()) || i+1 < len(all) && bytes.Equal(all[i+1].Key(), e.Key()) {
			name, _, err := wire.UnpackDomainName(e.Record().Owner(), 0)
			if err != nil {
				return err
			}
			return fmt.Errorf("%s has a CNAME record and other records", name)
		}
	}
	return nil
}

// largeZoneLock limits the manager to one large zone that is examined as a whole, because that needs much memory.
type largeZoneLock struct {
	mu sync.Mutex
	// held reports that the current deployment holds mu. Only runDeployments uses it.
	held bool
}

// errLargeZone reports that another deployment examines a large zone. Retry later.
var errLargeZone = errors.New("another large zone is examined")

// acquireFor acquires the lock if a zone is large and the deployment does not hold the lock yet. It returns errLargeZone instead of
// waiting, because the snapshot would be old by then. The caller calls release when the deployment ends.
func (l *largeZoneLock) acquireFor(p *plan, z *plannedZone, is deployedZone) error {
	if l.held {
		return nil
	}
	large, err := isLarge(p, z, is)
	if err != nil || !large {
		return err
	}
	p.tx.ReadOnce()
	if !l.mu.TryLock() {
		return errLargeZone
	}
	l.held = true
	return nil
}

// release releases the lock if the deployment holds it.
func (l *largeZoneLock) release() {
	if l.held {
		l.held = false
		l.mu.Unlock()
	}
}

// await waits until no large zone is examined, and keeps the lock for the next attempt of the deployment: large zones of live views may
// wait all the time. The caller calls release if there is no attempt.
func (l *largeZoneLock) await() {
	l.mu.Lock()
	l.held = true
}
