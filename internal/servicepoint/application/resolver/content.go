package resolver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// content is the deployed content for resolving: permitted clients, forwarders and response policies. It is immutable except for the
// rules of its policies; the next revision replaces it.
type content struct {
	revision string
	settings []byte
	// hashes are the content hashes of all zones by id. Zones other than policies have no further data here.
	hashes map[string]zonedata.Hash
	// policies are the response policy zones by id.
	policies map[string]*policyZone
	views    []*view
}

// view is a view with its active policies in order.
type view struct {
	zonedata.View
	policies []activePolicy
}

// activePolicy is an active response policy zone. override replaces the actions of its records if it is not nil.
type activePolicy struct {
	*policyZone
	override *rule
}

// viewFor returns the index of the first view that allows a client; -1 if there is none.
func (c *content) viewFor(client netip.Addr) int {
	return slices.IndexFunc(c.views, func(v *view) bool { return zonedata.Allows(v.Clients, zonedata.Client{Address: client}, true) })
}

// resolves reports whether a view contains recursion settings or policies.
func (c *content) resolves() bool {
	return slices.ContainsFunc(c.views, func(v *view) bool { return v.Recursion != nil || len(v.Policies) > 0 })
}

// sizes returns the numbers of rules of the active policies by name.
func (c *content) sizes() map[string]int {
	all := map[string]int{}
	for _, v := range c.views {
		for _, p := range v.policies {
			all[p.name] = p.size()
		}
	}
	return all
}

// Content returns the revision in use; empty if there is none.
func (r *resolver) Content() string { return r.content.Load().revision }

// streamBuffer is the size of the read buffer in bytes.
const streamBuffer = 128 << 10

// ApplyContent applies consecutive content streams.
func (r *resolver) ApplyContent(in io.Reader) error {
	r.applyLock.Lock()
	defer r.applyLock.Unlock()
	streams := bufio.NewReaderSize(in, streamBuffer)
	now := r.content.Load()
	for hidden := false; ; { // hidden: after a stream that begins at nothing, only the result of the last stream is applied
		t := &contentReader{before: now, changes: map[string]*policyChange{}, hashes: map[string]zonedata.Hash{}, deleted: map[string]bool{}}
		err := zonedata.Read(streams, t)
		var next *content
		if err == nil {
			next, err = t.make()
		}
		if err != nil {
			return err
		}
		_, err = streams.Peek(1)
		last := errors.Is(err, io.EOF)
		if hidden = hidden || t.isWhole; (last || !hidden) && r.instance != nil {
			if err := r.start(r.requested, next); err != nil { // the previous content remains in use
				return err
			}
		}
		t.apply(next)
		if now = next; last || !hidden {
			r.content.Store(now)
			r.contents.Add(1) // cached answers of the previous content are not used any more
		}
		if last {
			break
		}
	}
	r.log.Info("content applied", "revision", now.revision, "policies", len(now.policies))
	return nil
}

// contentReader is a stream that is being read. It changes nothing before apply.
type contentReader struct {
	before   *content
	to       string
	settings []byte
	parsed   zonedata.Settings
	isPolicy map[string]bool
	changes  map[string]*policyChange
	hashes   map[string]zonedata.Hash
	deleted  map[string]bool
	// isWhole reports that the stream begins at nothing.
	isWhole bool
	// The following fields belong to the zone that is being read.
	id       string
	hash     zonedata.Hash
	expected string
	now      *policyChange
	isBegun  bool
}

// policyChange is the change of a policy in a stream: the whole policy if whole is set, else the changed records.
type policyChange struct {
	whole          *policyZone
	removed, added []zonedata.Record
}

func (t *contentReader) Start(h zonedata.Header) error {
	if h.From != "" && h.From != t.before.revision {
		return errors.New("the data does not start at the current revision")
	}
	if t.isWhole = h.From == ""; t.isWhole {
		t.before = &content{}
	}
	t.to = h.To
	return t.read(t.before.settings)
}

// read decodes settings.
func (t *contentReader) read(text []byte) error {
	t.settings, t.isPolicy, t.parsed = text, map[string]bool{}, zonedata.Settings{}
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, &t.parsed); err != nil {
		return fmt.Errorf("the settings of zones cannot be read: %w", err)
	}
	for _, v := range t.parsed.Views {
		for _, p := range v.Policies {
			t.isPolicy[p.Zone] = true
		}
	}
	return nil
}

func (t *contentReader) Settings(text []byte) error { return t.read(text) }

// finish checks the hash of the zone that was read.
func (t *contentReader) finish() error {
	if !t.isBegun {
		return nil
	}
	if t.hash.String() != t.expected {
		return fmt.Errorf("the content of zone %s does not match its hash", t.id)
	}
	t.hashes[t.id] = t.hash
	return nil
}

func (t *contentReader) Zone(c zonedata.Change) error {
	if err := t.finish(); err != nil {
		return err
	}
	t.id, t.expected, t.isBegun, t.now = c.ID, c.To, true, nil
	var known bool
	if t.hash, known = t.before.hashes[c.ID]; c.From == "" {
		t.hash = zonedata.Hash{}
	} else if !known || t.hash.String() != c.From {
		return fmt.Errorf("change of zone %s: the zone does not exist", c.ID)
	}
	if !t.isPolicy[c.ID] {
		return nil
	}
	t.now = &policyChange{}
	if t.changes[c.ID] = t.now; c.From == "" {
		i := slices.IndexFunc(t.parsed.Zones, func(z zonedata.Zone) bool { return z.ID == c.ID })
		if i < 0 {
			return fmt.Errorf("zone %s is a policy, and not among the zones", c.ID)
		}
		var err error
		t.now.whole, err = newPolicyZone(t.parsed.Zones[i].Name)
		return err
	}
	return nil
}

func (t *contentReader) Removed(r zonedata.Record) error {
	t.hash.Remove(r)
	if t.now != nil {
		t.now.removed = append(t.now.removed, r)
	}
	return nil
}

func (t *contentReader) Added(r zonedata.Record) error {
	t.hash.Add(r)
	switch {
	case t.now == nil:
	case t.now.whole != nil:
		t.now.whole.add(r)
	default:
		t.now.added = append(t.now.added, r)
	}
	return nil
}

func (t *contentReader) Deleted(id string) error {
	if err := t.finish(); err != nil {
		return err
	}
	t.isBegun, t.deleted[id] = false, true
	return nil
}

func (t *contentReader) End() error { return t.finish() }

// make returns the new content; its changed policies are not updated yet.
func (t *contentReader) make() (*content, error) {
	next := &content{revision: t.to, settings: t.settings, hashes: map[string]zonedata.Hash{}, policies: map[string]*policyZone{}}
	texts := map[string]string{}
	for _, all := range []map[string]zonedata.Hash{t.before.hashes, t.hashes} {
		for id, hash := range all {
			if _, again := t.hashes[id]; again || !t.deleted[id] {
				next.hashes[id], texts[id] = hash, hash.String()
			}
		}
	}
	if to, err := zonedata.ParseRevision(t.to); err != nil || to.Hash != zonedata.Total(t.settings, texts) {
		return nil, errors.New("the data of the zones does not match its revision")
	}
	void := map[string]bool{}
	for _, z := range t.parsed.Zones {
		void[z.ID] = z.Void
	}
	for _, of := range t.parsed.Views {
		one := &view{View: of}
		for _, p := range of.Policies {
			zone := t.before.policies[p.Zone]
			if c := t.changes[p.Zone]; c != nil && c.whole != nil {
				zone = c.whole
			}
			if zone == nil || t.before.hashes[p.Zone] == (zonedata.Hash{}) && t.hashes[p.Zone] == (zonedata.Hash{}) {
				return nil, fmt.Errorf("the policy %s has no data", p.Zone)
			}
			next.policies[p.Zone] = zone
			active := activePolicy{policyZone: zone}
			if p.Override != "" {
				is, err := overrideOf(p.Override, p.Target)
				if err != nil {
					return nil, err
				}
				active.override = &is
			}
			if !void[p.Zone] {
				one.policies = append(one.policies, active)
			}
		}
		next.views = append(next.views, one)
	}
	return next, nil
}

// apply updates the policies that the stream changes.
func (t *contentReader) apply(next *content) {
	for id, c := range t.changes {
		if zone := next.policies[id]; zone != nil && c.whole == nil {
			zone.change(c.removed, c.added)
		}
	}
}

// configurationFor returns the configuration with the forwarders and zones of deployed roles.
func (c *content) configurationFor(given Configuration) Configuration {
	addresses := func(all []netip.AddrPort) (to []string) {
		for _, at := range all {
			if !given.listensHere(at.String()) { // avoid a loop to the resolver itself
				to = append(to, at.String())
			}
		}
		return to[:min(len(to), maxUpstreams)]
	}
	forwarders := false
	for _, v := range c.views {
		if v.Recursion == nil {
			continue
		}
		if to := addresses(v.Recursion.Forwarders); len(to) > 0 && !forwarders {
			given.Upstreams, forwarders = nil, true
			for _, at := range to {
				given.Upstreams = append(given.Upstreams, Upstream{Address: at})
			}
		}
		for _, z := range v.Recursion.Zones {
			to := addresses(z.To)
			if len(to) == 0 || slices.ContainsFunc(given.Zones, func(o Zone) bool { return dns.CanonicalName(o.Name) == z.Name }) {
				continue
			}
			given.Zones = append(slices.Clip(given.Zones), Zone{Name: z.Name, Upstreams: to})
		}
	}
	return given
}
