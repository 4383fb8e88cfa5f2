package dns

import (
	"errors"

	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// namesName is the name of the extension of DNS names.
const namesName = "names"

// namesExtension is what is remembered of DNS names, and how they are verified; it has no tables.
type namesExtension struct {
	// policies says whether there are naming policies, under the one key there is: what nobody uses costs nothing.
	policies *store.Cache[struct{}, bool]
}

// registerNames declares what is remembered of DNS names.
func registerNames(r *resource.Registry) { r.Extension(newNamesExtension()) }

// newNamesExtension gives the extension for one store.
func newNamesExtension() *store.Extension {
	n := &namesExtension{}
	return &store.Extension{Name: namesName, State: n, Verify: verifyNames,
		Opened: func(s *store.Store) {
			n.policies = store.NewCache[struct{}](s, store.CacheOptions[bool]{Topics: []string{namingTopic}, Late: true, Max: 1})
		}}
}

// namingTopic is the topic of changes to naming policies.
const namingTopic = "namingPolicies"

// anyPolicies reports whether there are naming policies.
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

// maxZones bounds the names of zones that verifyNames keeps.
const maxZones = 100_000

// verifyNames checks that absolute names follow names and zones.
func verifyNames(tx *store.Tx, fault func(string, ...any)) error {
	zones := map[int64]string{}
	return tx.List(store.Query{From: store.Resources, Where: store.Any{store.InCollection("zones"), store.InCollection("resourceRecords")}},
		func(r *store.Resource) error {
			if r.Type == "ExternalHostsZone" || r.Type == "InternalRootZone" || r.Type == "ResponsePolicyZone" { // they have no absoluteName
				return nil
			}
			zone, known := zones[r.Parent]
			if !known {
				_, name, err := resolveParent(tx, r.Parent)
				if errors.Is(err, store.ErrNotFound) { // a fault already
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
			if name, want := absoluteName(r), naming.Join(r.Name, zone); name != want || r.Key != naming.Key(want) {
				fault("%s %d is called %q and should be %q", r.Type, r.ID, name, want)
			}
			return nil
		})
}
