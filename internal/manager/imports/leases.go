package imports

import (
	"fmt"
	"io"
	"strings"

	"portolan/internal/base/leasefile"
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// The types of rows of an import of leases. Each of them stands for both families.
const (
	lease4Type = "DHCPv4Lease"
	lease6Type = "DHCPv6Lease"
)

// LeaseTaker imports leases into a configuration, in one transaction.
type LeaseTaker interface {
	// Add imports a lease. changes reports whether the lease was imported; it is false for one that is not active, or that is known.
	// created reports whether the address had no lease before. A lease that cannot be imported is a problem, and changes nothing.
	Add(l leasefile.Lease) (changes, created bool, err error)
	// Close must be called after the last lease.
	Close() error
}

// importsLeases reports whether the rows of an import are leases of another DHCP server.
func (x *ResourceImport) importsLeases() bool {
	return x.ResourceType == lease4Type || x.ResourceType == lease6Type
}

// checkLeases returns a problem for settings that leases do not have.
func (x *ResourceImport) checkLeases() error {
	switch {
	case x.Tag != "" || x.Prune:
		return problem.Invalid("tag", "leases have no tags: remove tag and prune")
	case len(x.Columns) > 0:
		return problem.Invalid("columns", "the columns of a lease file are fixed")
	case x.Action != createOrUpdate:
		return problem.Invalid("action", "leases are imported with %s", createOrUpdate)
	}
	return nil
}

// readLeases reads a lease file as a whole: a later entry of an address replaces an earlier one.
func readLeases(from io.Reader) (*leaseReader, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	all, err := leasefile.Read(text)
	if err != nil {
		return nil, badFile("%v", err)
	}
	return &leaseReader{all: all}, nil
}

// leaseReader is a rowReader of leases.
type leaseReader struct {
	all  []leasefile.Lease
	read int64
}

func (r *leaseReader) next() (*row, error) {
	if r.read >= int64(len(r.all)) {
		return nil, io.EOF
	}
	l := &r.all[r.read]
	r.read++
	return &row{number: r.read, at: fmt.Sprintf("line %d", l.Line), lease: l}, nil
}

// applyLease imports a lease.
func (p *executor) applyLease(r *row) (o outcome, err error) {
	if p.taker == nil {
		configuration, err := p.configurationOfLeases()
		if err != nil {
			return o, err
		}
		p.taker = p.Leases(p.Tx, configuration)
	}
	changes, isNew, err := p.taker.Add(*r.lease)
	switch {
	case err != nil || !changes:
		return o, err
	case isNew:
		o.result = created
	default:
		o.result = updated
	}
	return o, nil
}

// configurationOfLeases returns the configuration into which leases are imported: the one that contains into, or the only one.
func (p *executor) configurationOfLeases() (int64, error) {
	if within := p.at.within; within.ID != 0 {
		row, err := p.API.Visible(p.Tx, within.ID, p.Caller)
		if err != nil {
			return 0, err
		}
		if row.Collection == configurations {
			return row.ID, nil
		}
		return 0, badPlace(within.Collection.Name, "must be a configuration")
	}
	var ids []int64
	only := store.Query{From: store.Resources, Limit: 2, Where: store.InCollection(configurations)}
	if err := p.Tx.List(only, func(r *store.Resource) error {
		ids = append(ids, r.ID)
		return nil
	}); err != nil {
		return 0, err
	}
	if len(ids) != 1 {
		return 0, problem.Missing("into")
	}
	return ids[0], nil
}

// configurations is the name of the collection of configurations.
const configurations = "configurations"

// atConfiguration returns a problem if leases are not imported into a configuration as a whole.
func atConfiguration(at target, path string) error {
	if at.list != nil || at.within.ID != 0 && at.within.Collection.Name != configurations {
		return badPlace(strings.TrimSpace(path), "must be a configuration, such as configurations/100007")
	}
	return nil
}
