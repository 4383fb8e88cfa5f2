package nameserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// served is one revision of the content. Its fields do not change; the next revision replaces it. Only the zones are shared with the next
// revision, and change under their own locks.
type served struct {
	revision string
	settings []byte
	views    []*view
	// zones are all zones by id.
	zones map[string]*zone
	// keys are the TSIG keys by name in wire format.
	keys map[string]*key
}

// view is a view with its zones by apex.
type view struct {
	zonedata.View
	zones map[string]*servedZone
}

// servedZone is a zone in a view with its access rules. signing is nil if the name server does not sign it.
type servedZone struct {
	*zone
	settings zonedata.Zone
	signing  *signing
}

// viewFor returns the first view that allows a client; nil if there is none.
func (s *served) viewFor(w zonedata.Client) *view {
	for _, v := range s.views {
		if zonedata.Allows(v.Clients, w, true) {
			return v
		}
	}
	return nil
}

// zoneOf returns the deepest zone of the view that contains a name. If above is set it prefers a zone above the name, which holds the DS
// records of an apex (RFC 4035 section 3.1.4.1).
func (v *view) zoneOf(name string, above bool) *servedZone {
	if above && len(name) > 1 {
		if z := v.zoneOf(parent(name), false); z != nil {
			return z
		}
	}
	for {
		if z, ok := v.zones[name]; ok {
			return z
		}
		if len(name) <= 1 {
			return nil
		}
		name = parent(name)
	}
}

// streamBuffer is the size of the read buffer in bytes.
const streamBuffer = 128 << 10

// applyContent reads consecutive streams and applies each completely or not at all. If the first stream begins at nothing, the name
// server never answers from the revisions in between. It returns the zones that are new or have another serial, also with an error: they
// are those of the streams before.
func (a *nameServer) applyContent(in io.Reader) (changed map[string]*servedZone, err error) {
	a.contentLock.Lock()
	defer a.contentLock.Unlock()
	streams := bufio.NewReaderSize(in, streamBuffer)
	now, hidden := a.served.Load(), false
	first := now
	var due []map[zoneKey]*namesToSign
	changed, later := map[string]*servedZone{}, map[string]*servedZone{} // later are those of the hidden streams
	for {
		next, read, anew, err := now.next(streams, &a.signatures)
		if err != nil {
			return changed, err
		}
		due = append(due, read.findUnsigned(next))
		read.findChanged(next, later)
		if now, hidden = next, hidden || anew; !hidden { // zones in use have changed
			a.served.Store(now)
			a.ahead.add(due...)
			due = nil
			maps.Copy(changed, later)
		}
		if _, err := streams.Peek(1); errors.Is(err, io.EOF) {
			break
		}
	}
	a.served.Store(now)
	a.ahead.add(due...)
	maps.DeleteFunc(later, func(id string, _ *servedZone) bool { return now.zones[id] == nil }) // a later stream has deleted it
	if len(now.views) > 0 && len(first.views) > 0 && now.views[0] == first.views[0] {           // the same zones
		return later, nil
	}
	if current := now.signings(); !maps.Equal(current, first.signings()) {
		a.signatures.forget(current)
	}
	return later, nil
}

// signings returns the signings of all zones.
func (s *served) signings() map[*signing]bool {
	out := map[*signing]bool{}
	for _, v := range s.views {
		for _, z := range v.zones {
			if z.signing != nil {
				out[z.signing] = true
			}
		}
	}
	return out
}

// next returns the content after a stream, and the stream. anew reports that the stream begins at nothing and shares no zone with the
// current content. Other streams change zones in place, for all revisions that contain them.
func (s *served) next(stream *bufio.Reader, made *signatures) (next *served, t *contentReader, anew bool, err error) {
	t = &contentReader{before: s, current: s, signatures: made, zones: map[string]*change{}, deleted: map[string]bool{}}
	if err := zonedata.Read(stream, t); err != nil {
		return nil, nil, false, err
	}
	if next, err = t.make(); err != nil {
		return nil, nil, false, err
	}
	for id, c := range t.zones {
		z := next.zones[id]
		if c.isWhole() {
			z.takeJournal(s.zones[id])
			continue
		}
		c.serial = z.serial
		if err := c.apply(z); err != nil { // check has passed before
			return nil, nil, false, fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	next.updateChains(t)
	return next, t, t.before != s, nil
}

// contentReader is a stream that is being read. It changes no zone in use.
type contentReader struct {
	before *served
	// current is the content in use, which is before unless the stream begins at nothing.
	current *served
	// signatures is the cache of signatures.
	signatures *signatures
	to         string
	settings   []byte
	zones      map[string]*change
	deleted    map[string]bool
	now        *change
}

func (t *contentReader) Start(h zonedata.Header) error {
	if h.From != "" && h.From != t.before.revision {
		return fmt.Errorf("the data does not start at the current revision")
	}
	if h.From == "" {
		t.before = &served{}
	}
	t.to, t.settings = h.To, t.before.settings
	return nil
}

func (t *contentReader) Settings(text []byte) error {
	t.settings = text
	return nil
}

func (t *contentReader) Zone(c zonedata.Change) error {
	if t.zones[c.ID] != nil {
		return fmt.Errorf("zone %s occurs twice", c.ID)
	}
	t.now = &change{Change: c}
	t.zones[c.ID] = t.now
	if !t.now.isWhole() && t.before.zones[c.ID] == nil {
		return fmt.Errorf("change of zone %s: the zone does not exist", c.ID)
	}
	return nil
}

func (t *contentReader) Removed(r zonedata.Record) error {
	t.now.removed = append(t.now.removed, r)
	return nil
}

func (t *contentReader) Added(r zonedata.Record) error {
	if !t.now.isWhole() {
		t.now.added = append(t.now.added, r)
		return nil
	}
	if t.now.whole == nil { // the SOA must be the first record
		if r.Type() != dns.TypeSOA {
			return fmt.Errorf("zone %s does not begin with its SOA", t.now.ID)
		}
		t.now.whole = newZone(string(r.Owner()))
	}
	if err := t.now.whole.checkOwner(r); err != nil {
		return fmt.Errorf("zone %s: %w", t.now.ID, err)
	}
	t.now.whole.add(r)
	return nil
}

func (t *contentReader) Deleted(id string) error {
	t.deleted[id] = true
	return nil
}

// End checks that the changes produce the announced content hashes.
func (t *contentReader) End() error {
	for id, c := range t.zones {
		if c.isWhole() {
			if c.whole == nil || c.whole.hash.String() != c.To {
				return fmt.Errorf("the content of zone %s does not match its hash", id)
			}
			continue
		}
		if err := c.check(t.before.zones[id]); err != nil {
			return err
		}
	}
	return nil
}

// changesRecordsOnly reports whether the stream changes records of existing zones alone.
func (t *contentReader) changesRecordsOnly() bool {
	if len(t.deleted) > 0 || len(t.before.views) == 0 || !bytes.Equal(t.settings, t.before.settings) {
		return false
	}
	for _, c := range t.zones {
		if c.isWhole() {
			return false
		}
	}
	return true
}

// makeShared returns the new content of a stream that changes records only: it shares all but the revision with the content before, so that
// the cost does not depend on the number of zones.
func (t *contentReader) makeShared() (*served, error) {
	before, err := zonedata.ParseRevision(t.before.revision)
	if err != nil {
		return nil, err
	}
	hash := before.Hash
	for id, c := range t.zones {
		z := t.before.zones[id]
		z.mu.RLock()
		hash.RemoveZone(id, z.hash.String())
		z.mu.RUnlock()
		hash.AddZone(id, c.To)
	}
	if to, err := zonedata.ParseRevision(t.to); err != nil || to.Hash != hash {
		return nil, errOtherRevision
	}
	next := *t.before
	next.revision = t.to
	return &next, nil
}

// errOtherRevision is the error for data whose hash is not that of its revision.
var errOtherRevision = errors.New("the data of the zones does not match its revision")

// make returns the new content; its changed zones are not updated yet.
func (t *contentReader) make() (*served, error) {
	if t.changesRecordsOnly() {
		return t.makeShared()
	}
	next := &served{revision: t.to, settings: t.settings, zones: map[string]*zone{}}
	hashes := map[string]string{}
	for id, z := range t.before.zones {
		if !t.deleted[id] {
			next.zones[id] = z
			z.mu.RLock()
			hashes[id] = z.hash.String()
			z.mu.RUnlock()
		}
	}
	for id, c := range t.zones {
		if hashes[id] = c.To; c.isWhole() {
			next.zones[id] = c.whole
		}
	}
	if to, err := zonedata.ParseRevision(t.to); err != nil || to.Hash != zonedata.Total(t.settings, hashes) {
		return nil, errOtherRevision
	}
	var s zonedata.Settings
	if err := json.Unmarshal(t.settings, &s); err != nil {
		return nil, fmt.Errorf("the settings of zones cannot be read: %w", err)
	}
	next.keys = map[string]*key{}
	for _, of := range s.Keys {
		k, err := newKey(of)
		if err != nil {
			return nil, err
		}
		next.keys[k.name] = k
	}
	views := map[int64]*view{}
	for _, v := range s.Views {
		one := &view{View: v, zones: map[string]*servedZone{}}
		views[v.ID] = one
		next.views = append(next.views, one)
	}
	for _, of := range s.Zones {
		v, z := views[of.View], next.zones[of.ID]
		if v == nil || z == nil {
			return nil, fmt.Errorf("zone %s has no view or no data", of.ID)
		}
		if apex, err := zonedata.WireName(of.Name); err != nil || apex != z.apex {
			return nil, fmt.Errorf("zone %s has the data of another zone", of.Name)
		}
		signing, err := t.signingOf(of, z.apex)
		if err != nil {
			return nil, err
		}
		v.zones[z.apex] = &servedZone{z, of, signing}
	}
	return next, nil
}

// signingOf returns the signer of a zone. It keeps the previous one if the signing settings are unchanged.
func (t *contentReader) signingOf(of zonedata.Zone, apex string) (*signing, error) {
	if of.Signing == nil {
		return nil, nil
	}
	for _, v := range t.current.views {
		if z := v.zones[apex]; z != nil && z.settings.ID == of.ID && z.signing != nil && reflect.DeepEqual(z.settings.Signing, of.Signing) {
			return z.signing, nil
		}
	}
	return newSigning(*of.Signing, apex, t.signatures)
}

// changedZones returns the zones of the new content that a stream can have changed, by view.
func (t *contentReader) changedZones(next *served) iter.Seq2[*view, *servedZone] {
	return func(yield func(*view, *servedZone) bool) {
		for _, v := range next.views {
			if !t.changesRecordsOnly() {
				for _, z := range v.zones {
					if !yield(v, z) {
						return
					}
				}
				continue
			}
			for id := range t.zones {
				if z := v.zones[next.zones[id].apex]; z != nil && z.settings.ID == id && !yield(v, z) {
					return
				}
			}
		}
	}
}

// findChanged adds the zones to out that the stream has made new in their view or given another serial, by id.
func (t *contentReader) findChanged(next *served, out map[string]*servedZone) {
	for v, z := range t.changedZones(next) {
		id := z.settings.ID
		before := t.current.zoneIn(zoneKey{v.ID, z.apex})
		switch c := t.zones[id]; {
		case before == nil || before.settings.ID != id:
		case c != nil && !c.isWhole():
			if c.serial == z.currentSerial() {
				continue
			}
		case before.currentSerial() == z.currentSerial():
			continue
		}
		out[id] = z
	}
}

// updateChains creates or removes the chains of changed zones before they are served. The caller ensures that no other goroutine changes
// zones.
func (s *served) updateChains(t *contentReader) {
	for _, z := range t.changedZones(s) {
		var next *chain
		if z.signing == nil && len(z.settings.Primaries) > 0 {
			if next = z.chain; next == nil {
				next = z.presigned()
			}
		}
		if z.signing != nil {
			if next = z.chain; next == nil || next.isPresigned || next.hashed != z.signing.settings.Hashed {
				next = z.newChain(z.signing.settings.Hashed)
			}
		}
		if next != z.chain {
			z.lock()
			z.chain = next
			z.unlock()
		}
	}
}
