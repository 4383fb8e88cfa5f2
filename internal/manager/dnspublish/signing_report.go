package dnspublish

import (
	"slices"
	"time"

	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/serverconfig"
)

// signingReport describes how the zones of a resource are signed: a zone itself, or the first reverse zone of a block or network.
type signingReport struct {
	// Signed reports whether it has a policy and keys. Policy is the name of the policy; empty where the caller cannot see it.
	Signed bool   `json:"signed"`
	Policy string `json:"policy,omitempty"`
	// Automatic reports whether keys are replaced automatically (keyAutoRegenerationEnabled).
	Automatic bool `json:"automatic"`
	// Zones are the zone in each view that it is deployed in; a single entry without a view where it is not deployed.
	Zones []signingZone `json:"zones"`
}

// signingZone is a signed zone in a view.
type signingZone struct {
	// Zone is the name of the zone. View is the name of the view; null where the zone is not deployed or the caller cannot see the view.
	Zone string  `json:"zone"`
	View *string `json:"view"`
	// ParentHere reports whether the parent zone is deployed by this manager, with its DS records.
	ParentHere bool `json:"parentHere"`
	// Keys are the keys of the zone: zone-signing keys, then key-signing keys, each from the oldest to the newest.
	Keys []signingKeyReport `json:"keys"`
}

// signingKeyReport is a key of a zone, its state, and its next step.
type signingKeyReport struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Tag is the key tag (RFC 4034 appendix B), Algorithm the name of the algorithm in policies.
	Tag       uint16 `json:"tag"`
	Algorithm string `json:"algorithm"`
	// State is the state of the key (RFC 7583 section 3.1). Signs reports whether its signatures are served.
	State string `json:"state" enum:"GENERATED|PUBLISHED|READY|ACTIVE|RETIRED"`
	Signs bool   `json:"signs"`
	// DSRecord is the DS record, if it should be in the parent zone; else null.
	DSRecord *string `json:"dsRecord"`
	// DSWithdrawn reports whether the DS record is kept out of the parent zone.
	DSWithdrawn bool `json:"dsWithdrawn"`
	// PublishedDateTime is the time since when the DNSKEY record is served. ExpirationDateTime is the end of the key's lifetime.
	PublishedDateTime  *time.Time `json:"publishedDateTime"`
	ExpirationDateTime *time.Time `json:"expirationDateTime"`
	// Next is the next step: a successor is created (FOLLOWED), the key expires without a successor (ENDS), it takes over (TAKES_OVER), its
	// successor takes over (REPLACED), or it is removed (REMOVED). NextDateTime is the earliest time of the step. Where the time is not
	// known, WaitsFor is the reason, as a sentence.
	Next         string     `json:"next" enum:"FOLLOWED|ENDS|TAKES_OVER|REPLACED|REMOVED"`
	NextDateTime *time.Time `json:"nextDateTime"`
	WaitsFor     *string    `json:"waitsFor"`
}

// reportSigning declares the reports on the signing of zones, blocks and networks.
func reportSigning(r *resource.Registry) {
	for collection, description := range map[string]string{"zones": "", "blocks": "For the first reverse zone, in each view.",
		"networks": "For the first reverse zone, in each view."} {
		r.Report(collection, resource.Report{Name: "signing", Summary: "The signing of the zones, the state of each key, and its next step",
			Description: description, Answer: signingReport{}, Of: signingOfResource})
	}
}

// signingOfResource returns the report for a resource, limited to the keys that the caller can see.
func signingOfResource(tx *store.Tx, a *resource.API, caller resource.Caller, of *store.Resource) (any, error) {
	answer := signingReport{Zones: []signingZone{}}
	name := dnssec.SignedZoneName(of)
	signed, err := dnssec.SignedBy(tx, a, of, name)
	if err != nil || signed == nil {
		return answer, err
	}
	ids := []int64{signed.Policy.ID}
	for _, k := range signed.Keys {
		ids = append(ids, k.Row.ID)
	}
	views := []int64{of.Ref("view")}
	if of.Collection != "zones" {
		if views, err = serverconfig.ConfigurationViews(tx, of.Configuration); err != nil {
			return nil, err
		}
	}
	seen, err := a.VisibleResources(tx, caller, append(ids, views...))
	if err != nil {
		return nil, err
	}
	answer.Signed, answer.Automatic = true, signed.Auto
	if row := seen[signed.Policy.ID]; row != nil {
		answer.Policy = row.Name
	}
	for _, view := range views {
		_, there, err := readDeployed(tx, zoneID(view, name))
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		z, err := signingIn(tx, signed, of, view, name)
		if err != nil {
			return nil, err
		}
		one := signingZone{Zone: name, ParentHere: z.parent, Keys: z.report(a.Store.Now(), seen)}
		if row := seen[view]; row != nil {
			one.View = &row.Name
		}
		answer.Zones = append(answer.Zones, one)
	}
	if len(answer.Zones) == 0 {
		z := zoneKeys{Signed: signed}
		answer.Zones = append(answer.Zones, signingZone{Zone: name, Keys: z.report(a.Store.Now(), seen)})
	}
	return answer, nil
}

// zoneKeys are the keys of a zone in a view. seen are the times since when their data is served, by tag; parent reports whether the parent
// zone is deployed by this manager.
type zoneKeys struct {
	*dnssec.Signed
	seen   map[uint16]dnssec.CachedSince
	parent bool
}

// signingIn returns the stored times of the keys of a zone in a view.
func signingIn(tx *store.Tx, signed *dnssec.Signed, of *store.Resource, view int64, name string) (z zoneKeys, err error) {
	z = zoneKeys{Signed: signed, seen: map[uint16]dnssec.CachedSince{}}
	kept, err := readSeen(tx, zoneID(view, name))
	if err != nil {
		return z, err
	}
	for tag, one := range kept {
		z.seen[tag] = one.CachedSince
	}
	z.parent, err = parentDeployed(tx, of, view, name)
	return z, err
}

// parentDeployed reports whether the parent zone is deployed by this manager, by the same rules as plan.above. That is the nearest deployed
// zone above. For a zone created by a user it must be its parent zone or the root.
func parentDeployed(tx *store.Tx, of *store.Resource, view int64, name string) (bool, error) {
	for at := name; at != ""; {
		_, at, _ = naming.Cut(at)
		id := zoneID(view, at)
		if _, there, err := readDeployed(tx, id); err != nil || !there {
			if err != nil {
				return false, err
			}
			continue
		}
		var copied bool
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM dns_copy WHERE zone = ?)", id).Scan(&copied); err != nil || copied {
			return false, err
		}
		if of.Collection != "zones" || at == "" {
			return true, nil
		}
		parent, err := tx.Get(of.Parent)
		return err == nil && parent.Key == at, err
	}
	return false, nil
}

// report returns the reports of the keys at a time. seen are the rows that the caller can see, by id.
func (z zoneKeys) report(now time.Time, seen map[int64]*store.Resource) []signingKeyReport {
	all, stage := []signingKeyReport{}, z.Stage(z.seen, now, z.parent)
	for _, k := range z.Schedule(z.seen, now, z.parent) {
		if seen[k.Row.ID] == nil {
			continue
		}
		one := signingKeyReport{ID: k.Row.ID, Type: k.Row.Type, Tag: k.Tag(), Algorithm: k.Algorithm, State: k.State, Next: k.Next,
			PublishedDateTime: timeOf(z.seen[k.Tag()].Key), ExpirationDateTime: timeOf(k.KeyExpirationDateTime), NextDateTime: timeOf(k.At),
			DSWithdrawn: k.Withdrawn, Signs: k.State != dnssec.KeyGenerated && slices.Contains(stage.Signing, k.SignedKey)}
		if k.WaitsFor != "" {
			one.WaitsFor = &k.WaitsFor
		}
		if slices.Contains(stage.DS, k.SignedKey) {
			text := z.DS(k.SignedKey).String()
			one.DSRecord = &text
		}
		all = append(all, one)
	}
	return all
}

// timeOf returns a time in UTC, to the second; nil for the zero time.
func timeOf(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC().Truncate(time.Second)
	return &at
}
