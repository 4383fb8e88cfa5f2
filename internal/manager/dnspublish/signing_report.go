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

// signingReport is how the zones are signed that a resource has the keys of: a zone itself, a block or network its first reverse zone.
type signingReport struct {
	// Signed: it has a policy and keys. Policy is the policy's name; empty where the caller does not see it.
	Signed bool   `json:"signed"`
	Policy string `json:"policy,omitempty"`
	// Automatic: keys follow each other by themselves (keyAutoRegenerationEnabled).
	Automatic bool `json:"automatic"`
	// Zones has the zone in each view that it is deployed in; one without a view where it is deployed in none.
	Zones []signingZone `json:"zones"`
}

// signingZone is a signed zone in a view.
type signingZone struct {
	// Zone is its name; View that of the view, null where the zone is not deployed or the caller does not see it.
	Zone string  `json:"zone"`
	View *string `json:"view"`
	// ParentHere: the zone above is deployed from here, and so are its DS records.
	ParentHere bool `json:"parentHere"`
	// Keys are its keys: those that sign records, then those that sign keys, each kind from the oldest to the newest.
	Keys []signingKeyReport `json:"keys"`
}

// signingKeyReport is a key of a zone, how it is, and what comes next for it.
type signingKeyReport struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Tag is its tag (RFC 4034 appendix B), Algorithm what it is called in policies.
	Tag       uint16 `json:"tag"`
	Algorithm string `json:"algorithm"`
	// State is how it is (RFC 7583 section 3.1). Signs: signatures by it are served.
	State string `json:"state" enum:"GENERATED|PUBLISHED|READY|ACTIVE|RETIRED"`
	Signs bool   `json:"signs"`
	// DSRecord is its DS record, where that is to be in the zone above; null elsewhere.
	DSRecord *string `json:"dsRecord"`
	// DSWithdrawn: it is kept out of there.
	DSWithdrawn bool `json:"dsWithdrawn"`
	// PublishedDateTime is since when its DNSKEY record is deployed, ExpirationDateTime when its time ends.
	PublishedDateTime  *time.Time `json:"publishedDateTime"`
	ExpirationDateTime *time.Time `json:"expirationDateTime"`
	// Next is what comes next: another key is made to follow it, its time ends and none follows, it takes over, the one that follows takes
	// over, or it is removed. NextDateTime is when, at the earliest. Where that cannot be said WaitsFor says why, in a sentence.
	Next         string     `json:"next" enum:"FOLLOWED|ENDS|TAKES_OVER|REPLACED|REMOVED"`
	NextDateTime *time.Time `json:"nextDateTime"`
	WaitsFor     *string    `json:"waitsFor"`
}

// reportSigning declares what is told of how zones are signed.
func reportSigning(r *resource.Registry) {
	for collection, description := range map[string]string{"zones": "", "blocks": "Of its first reverse zone, in each view.",
		"networks": "Of its first reverse zone, in each view."} {
		r.Report(collection, resource.Report{Name: "signing", Summary: "How it is signed, which of its keys sign, and what comes next for each",
			Description: description, Answer: signingReport{}, Of: signingOfResource})
	}
}

// signingOfResource tells how the zones of a resource are signed, as far as a caller sees their keys.
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
	seen, err := a.Seen(tx, caller, append(ids, views...))
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

// zoneKeys are the keys of a zone in a view: seen is since when they are deployed there, by tag, parent says that the zone above is ours.
type zoneKeys struct {
	*dnssec.Signed
	seen   map[uint16]dnssec.Seen
	parent bool
}

// signingIn reads what was seen of the keys of a zone in a view.
func signingIn(tx *store.Tx, signed *dnssec.Signed, of *store.Resource, view int64, name string) (z zoneKeys, err error) {
	z = zoneKeys{Signed: signed, seen: map[uint16]dnssec.Seen{}}
	kept, err := readSeen(tx, zoneID(view, name))
	if err != nil {
		return z, err
	}
	for tag, one := range kept {
		z.seen[tag] = one.Seen
	}
	z.parent, err = parentDeployed(tx, of, view, name)
	return z, err
}

// parentDeployed reports whether the zone that delegates a zone is deployed from here, as plan.above finds it: the nearest above it that is
// deployed, and, of a zone that somebody made, none but the one that it lies in or the root.
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

// report tells how the keys are at a time: those that are seen, by their ids.
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

// timeOf gives a time in UTC, to the second; nil for the zero time.
func timeOf(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC().Truncate(time.Second)
	return &at
}
