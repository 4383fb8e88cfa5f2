package deploy

import (
	"slices"
	"time"

	"portolan/internal/dns"
	"portolan/internal/resource"
	"portolan/internal/store"

	wire "github.com/miekg/dns"
)

// zoneSigns is how a zone is signed.
type zoneSigns struct {
	// Signed: it has a policy and keys. Policy is the policy's name.
	Signed bool   `json:"signed"`
	Policy string `json:"policy,omitempty"`
	// Zone is the zone's name, of a block or network that of its first reverse zone.
	Zone string `json:"zone,omitempty"`
	// Automatic: keys follow each other by themselves (keyAutoRegenerationEnabled). ParentHere: the zone above is deployed from here, and so
	// are its DS records.
	Automatic  bool `json:"automatic"`
	ParentHere bool `json:"parentHere"`
	// Keys are its keys: those that sign records, then those that sign keys, each kind from the oldest to the newest.
	Keys []zoneSignsKey `json:"keys"`
}

// zoneSignsKey is a key of a zone, how it is, and what comes next for it.
type zoneSignsKey struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Tag is its tag (RFC 4034 appendix B), Algorithm what it is called in policies.
	Tag       uint16 `json:"tag"`
	Algorithm string `json:"algorithm"`
	// State is GENERATED, PUBLISHED, READY, ACTIVE or RETIRED (RFC 7583 section 3.1). Signs: signatures by it are served.
	State string `json:"state"`
	Signs bool   `json:"signs"`
	// DSRecord is its DS record, where that is to be in the zone above; null elsewhere.
	DSRecord *string `json:"dsRecord"`
	// PublishedDateTime is since when its DNSKEY record is deployed, ExpirationDateTime when its time ends.
	PublishedDateTime  *time.Time `json:"publishedDateTime"`
	ExpirationDateTime *time.Time `json:"expirationDateTime"`
	// Next is what comes next: FOLLOWED, ENDS, TAKES_OVER, REPLACED or REMOVED; NextDateTime when, at the earliest. Where that cannot be said
	// WaitsFor says why.
	Next         string     `json:"next"`
	NextDateTime *time.Time `json:"nextDateTime"`
	WaitsFor     *string    `json:"waitsFor"`
}

// signingReport tells how a zone is signed: of a block or network, its first reverse zone.
func signingReport() resource.Report {
	return resource.Report{Name: "signing", Summary: "How a zone is signed, which of its keys sign, and what comes next for each",
		Answer: zoneSigns{}, Description: "Of a block or network it is told of its first reverse zone.",
		Of: func(tx *store.Tx, a *resource.API, caller resource.Caller, of *store.Resource) (any, error) {
			answer := zoneSigns{Keys: []zoneSignsKey{}}
			if of.Ref("signingPolicy") == 0 && of.Ref("reverseZoneSigningPolicy") == 0 {
				return answer, nil
			}
			p, err := newPlan(tx, a, of.Configuration)
			if err != nil {
				return nil, err
			}
			now := a.Store.Now()
			s, zone, err := p.signingHeld(of, now)
			if err != nil || s == nil {
				return answer, err
			}
			answer.Signed, answer.Zone, answer.Automatic, answer.ParentHere = true, zone, s.Auto, s.above != nil
			ids := []int64{s.Policy.ID}
			for _, k := range s.Keys {
				ids = append(ids, k.Row.ID)
			}
			seen, err := a.Seen(tx, caller, ids)
			if err != nil {
				return nil, err
			}
			if seen[s.Policy.ID] != nil {
				answer.Policy = s.Policy.Name
			}
			for _, k := range s.Outlook(s.seenKeys(), now, s.above != nil) {
				if seen[k.Row.ID] != nil {
					answer.Keys = append(answer.Keys, s.told(k))
				}
			}
			return answer, nil
		}}
}

// signingHeld gives how the zone is signed whose keys a resource has, and the zone's name; nil where none is signed.
func (p *plan) signingHeld(of *store.Resource, now time.Time) (*zoneSigning, string, error) {
	for _, z := range p.zones {
		if z.row.ID != of.ID && (z.row.ID != 0 || z.chain[0] != of.ID) {
			continue
		}
		if s, err := p.signingOf(z, now); err != nil || s != nil {
			return s, z.row.Key, err
		}
	}
	name := dns.NameHeld(of) // it is not deployed
	signed, err := dns.SignedBy(p.tx, p.api, of, name)
	if err != nil || signed == nil {
		return nil, "", err
	}
	s := &zoneSigning{Signed: signed}
	s.stageAt(now)
	return s, name, nil
}

// told is what the report says of a key.
func (s *zoneSigning) told(k dns.KeyOutlook) zoneSignsKey {
	one := zoneSignsKey{ID: k.Row.ID, Type: k.Row.Type, Tag: k.Tag(), Algorithm: k.Algorithm, State: k.State, Next: k.Next,
		PublishedDateTime: timeOf(s.seen[k.Tag()].Key), ExpirationDateTime: timeOf(k.KeyExpirationDateTime), NextDateTime: timeOf(k.At),
		Signs: k.State != dns.KeyGenerated && slices.Contains(s.stage.Signing, k.SignedKey)}
	if k.WaitsFor != "" {
		one.WaitsFor = &k.WaitsFor
	}
	if slices.Contains(s.stage.DS, k.SignedKey) {
		ds := s.DS(k.SignedKey)
		ds.Hdr.Class = wire.ClassINET
		text := ds.String()
		one.DSRecord = &text
	}
	return one
}

// timeOf gives a time in UTC, to the second; nil for the zero time.
func timeOf(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC().Truncate(time.Second)
	return &at
}
