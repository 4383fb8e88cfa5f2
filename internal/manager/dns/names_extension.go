package dns

import (
	"errors"

	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// namesName is the name of the store extension for DNS names.
const namesName = "names"

// namesExtension caches facts about DNS names and verifies them. It has no tables.
type namesExtension struct {
	// policies caches under a single key whether naming policies exist, so that checks are skipped when there are none.
	policies *store.Cache[struct{}, bool]
}

// registerNames declares the store extension for DNS names.
func registerNames(r *resource.Registry) {
	r.Extension(newNamesExtension())
	r.StaleName(staleName)
}

// newNamesExtension returns the extension for one store.
func newNamesExtension() *store.Extension {
	n := &namesExtension{}
	return &store.Extension{Name: namesName, State: n, Verify: verifyNames,
		Opened: func(s *store.Store) {
			n.policies = store.NewCache[struct{}](s, store.CacheOptions[bool]{Topics: []string{namingTopic}, Late: true, Max: 1})
		}}
}

// namingTopic is touched by changes of naming policies.
const namingTopic = "namingPolicies"

// hasPolicies reports whether naming policies exist.
func hasPolicies(tx *store.Tx) (there bool, err error) {
	n, ok := tx.Extension(namesName).State.(*namesExtension)
	if !ok {
		return false, errors.New("the database was opened without the extension of names")
	}
	if known, ok := n.policies.Get(tx, struct{}{}); ok {
		return known, nil
	}
	count, err := tx.Count(store.Query{From: store.Resources, Where: store.InCollection("namingPolicies")})
	if err == nil {
		n.policies.Put(tx, struct{}{}, count > 0)
	}
	return count > 0, err
}

// maxZones is the maximum number of zone names that verifyNames caches.
const maxZones = 100_000

// verifyNames checks that stored absolute names match the names of the records and zones.
func verifyNames(tx *store.Tx, fault func(string, ...any)) error {
	zones := map[int64]string{}
	return tx.List(store.Query{From: store.Resources, Where: store.Any{store.InCollection("zones"), store.InCollection("resourceRecords")}},
		func(r *store.Resource) error {
			if !hasAbsoluteName(r) {
				return nil
			}
			zone, known := zones[r.Parent]
			if !known {
				_, name, err := resolveParent(tx, r.Parent)
				if errors.Is(err, store.ErrNotFound) { // another check reports the missing parent
					return nil
				}
				if err != nil {
					return err
				}
				if len(zones) > maxZones {
					clear(zones)
				}
				zone, zones[r.Parent] = name, name
			}
			if want := naming.Join(r.Name, zone); !isCalled(r, want) {
				fault("%s %d is called %q and should be %q", r.Type, r.ID, absoluteName(r), want)
			}
			return nil
		})
}

// hasAbsoluteName reports whether a zone or record has an absolute name.
func hasAbsoluteName(r *store.Resource) bool {
	return r.Type != "ExternalHostsZone" && r.Type != "InternalRootZone" && r.Type != "ResponsePolicyZone"
}

// isCalled reports whether the stored absolute name of a zone or record is a given name.
func isCalled(r *store.Resource, name string) bool {
	return absoluteName(r) == name && r.Key == naming.Key(name)
}

// staleName implements resource.API.StaleName for zones and records. The absolute name of a row consists of its name and that of its zone.
func staleName(tx *store.Tx, row *store.Resource) (parent *store.Resource, err error) {
	if row.Collection != "zones" && row.Collection != "resourceRecords" || !hasAbsoluteName(row) {
		return nil, nil
	}
	_, zone, err := resolveParent(tx, row.Parent)
	if err != nil || isCalled(row, naming.Join(row.Name, zone)) {
		return nil, err
	}
	return tx.Get(row.Parent)
}
