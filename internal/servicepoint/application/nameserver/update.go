package nameserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/zonedata"
)

// Limits of update messages. updateTime is the time until an update is answered with SERVFAIL. changeWait is the time to wait until the
// content includes the change. maxUpdates is the maximum number of pending updates; further ones are ignored.
const (
	updateTime = 10 * time.Second
	changeWait = 2 * time.Second
	maxUpdates = 256
)

// updates are the dynamic update messages (RFC 2136) that wait for the manager's decision.
type updates struct {
	mu sync.Mutex
	// The following fields are guarded by mu. pending are the updates that were not collected yet. waiting are all pending updates by id.
	// byMessage are the pending updates by message and client, because clients repeat slow updates.
	lastID    int64
	pending   []application.Update
	waiting   map[int64]*pendingUpdate
	byMessage map[[32]byte]*pendingUpdate
	// added is closed when an update is added.
	added chan struct{}
}

// pendingUpdate is a pending update. done is closed when answer is set.
type pendingUpdate struct {
	done   chan struct{}
	answer application.UpdateAnswer
	digest [32]byte
}

// add adds an update or a NOTIFY message. It returns nil if too many are pending.
func (u *updates) add(one application.Update, notice bool) *pendingUpdate {
	digest := sha256.Sum256(append([]byte(one.Client.String()+"\x00"+one.Key+"\x00"), one.Message...))
	if notice { // one NOTIFY per zone is sufficient
		digest = sha256.Sum256(fmt.Appendf(nil, "%d %s", one.View, one.Zone))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if there := u.byMessage[digest]; there != nil {
		return there
	}
	if len(u.waiting) >= maxUpdates {
		return nil
	}
	if u.waiting == nil {
		u.waiting, u.byMessage = map[int64]*pendingUpdate{}, map[[32]byte]*pendingUpdate{}
	}
	u.lastID++
	one.ID, one.Deadline = u.lastID, time.Now().Add(updateTime)
	a := &pendingUpdate{done: make(chan struct{}), digest: digest}
	u.waiting[one.ID], u.byMessage[digest] = a, a
	if u.pending = append(u.pending, one); u.added != nil {
		close(u.added)
		u.added = nil
	}
	time.AfterFunc(updateTime, func() { u.expire(one.ID) })
	return a
}

// expire answers an expired update with SERVFAIL and removes it from the queue.
func (u *updates) expire(id int64) {
	u.mu.Lock()
	u.pending = slices.DeleteFunc(u.pending, func(one application.Update) bool { return one.ID == id })
	u.mu.Unlock()
	u.resolve(application.UpdateAnswer{ID: id, Code: dns.RcodeServerFailure})
}

// collect waits for updates and returns them; none when ctx ends.
func (u *updates) collect(ctx context.Context) (all []application.Update) {
	for {
		u.mu.Lock()
		if all, u.pending = u.pending, nil; len(all) > 0 {
			u.mu.Unlock()
			return all
		}
		if u.added == nil {
			u.added = make(chan struct{})
		}
		some := u.added
		u.mu.Unlock()
		select {
		case <-some:
		case <-ctx.Done():
			return nil
		}
	}
}

// resolve sets the answer of an update. It ignores an update that is already answered.
func (u *updates) resolve(answer application.UpdateAnswer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.waiting[answer.ID]
	if a == nil {
		return
	}
	delete(u.waiting, answer.ID)
	delete(u.byMessage, a.digest)
	a.answer = answer
	close(a.done)
}

// close answers all pending updates with SERVFAIL.
func (u *updates) close() {
	u.mu.Lock()
	ids := slices.Collect(maps.Keys(u.waiting))
	u.mu.Unlock()
	for _, id := range ids {
		u.resolve(application.UpdateAnswer{ID: id, Code: dns.RcodeServerFailure})
	}
}

// Updates implements application.UpdateReceiver.
func (a *nameServer) Updates(ctx context.Context) []application.Update { return a.updates.collect(ctx) }

// Decide implements application.UpdateReceiver.
func (a *nameServer) Decide(answers []application.UpdateAnswer) {
	for _, one := range answers {
		a.updates.resolve(one)
	}
}

// isUpdate reports whether a message is an UPDATE or a NOTIFY (RFC 1996).
func isUpdate(m []byte) bool {
	if len(m) < headerSize || m[2]&0x80 != 0 {
		return false
	}
	opcode := m[2] >> 3 & 15
	return opcode == dns.OpcodeUpdate || opcode == dns.OpcodeNotify
}

// update answers an UPDATE or NOTIFY message (RFC 2136 section 3). It waits for the manager's decision, and returns nil if there must be
// no answer.
func (a *nameServer) update(m []byte, client netip.Addr) (wire []byte) {
	defer func() { // a panic costs only this message
		if p := recover(); p != nil {
			a.log.Error("panic while answering an update", "message", fmt.Sprintf("%x", m), "panic", p,
				"stack", string(debug.Stack()))
			wire = nil
		}
	}()
	var q query
	code, ok := q.parse(m)
	if !ok {
		a.counts.ignored.Add(1)
		return nil
	}
	served := a.served.Load()
	w := zonedata.Client{Address: client}
	var sign *signer
	if code == 0 {
		if w, sign, code = a.identify(served, m, &q, w); code != 0 {
			a.refuse(&q, w, code, "its signature is invalid: check the key, its secret and the clock")
		}
	}
	if code == 0 {
		if code, ok = a.decideOnce(served, &q, m, w, sign); !ok {
			a.counts.ignored.Add(1)
			return nil
		}
	}
	var out answer
	out.start(&q, nil, 65535)
	out.authoritative = code == 0 && q.opcode == dns.OpcodeNotify
	out.code = code
	a.counts.codes[code&15].Add(1)
	wire = out.finish()
	if sign != nil {
		wire = sign.sign(wire, time.Now())
	}
	return wire
}

// decideOnce calls decideUpdate, but only once for repeated copies of a signed update. When it returns or panics, the goroutines that
// wait for the same message are released.
func (a *nameServer) decideOnce(s *served, q *query, m []byte, w zonedata.Client, sign *signer) (code int, ok bool) {
	if sign == nil || q.opcode != dns.OpcodeUpdate {
		return a.decideUpdate(s, q, m, w)
	}
	one, again, late := a.replays.register(sign.key, &q.signature, time.Now())
	switch {
	case late:
		sign.problem = badTime
		return a.refuse(q, w, dns.RcodeNotAuth, "it was signed before the oldest remembered message"), true
	case again:
		<-one.done
		return one.code, one.ok
	}
	defer func() { a.replays.complete(one, code, ok) }()
	return a.decideUpdate(s, q, m, w)
}

// decideUpdate checks a message and waits for the manager's decision. ok is false if too many are pending.
func (a *nameServer) decideUpdate(s *served, q *query, m []byte, w zonedata.Client) (code int, ok bool) {
	v := s.viewFor(w)
	if q.kind != dns.TypeSOA || q.class != dns.ClassINET {
		return dns.RcodeFormatError, true
	}
	if v == nil {
		return a.refuse(q, w, dns.RcodeRefused, "no view matches the client"), true
	}
	z := v.zones[q.name]
	if z == nil {
		return a.refuse(q, w, dns.RcodeNotAuth, "the zone is not served here"), true
	}
	if q.opcode == dns.OpcodeNotify {
		if !slices.Contains(z.settings.Primaries, w.Address) {
			return a.refuse(q, w, dns.RcodeRefused, "the client has none of the addresses of the zone's primary servers"), true
		}
		taken := a.updates.add(application.Update{View: v.ID, Zone: z.settings.Name, Client: w.Address, Key: w.Key, Message: m}, true)
		return 0, taken != nil // the client does not wait for the transfer, and repeats an unanswered NOTIFY
	}
	if z.settings.Update == nil {
		return a.refuse(q, w, dns.RcodeRefused, "the zone does not accept updates (dynamicUpdateEnabled, allow-update)"), true
	}
	if !zonedata.Allows(z.settings.Update, w, false) {
		return a.refuse(q, w, dns.RcodeRefused, "allow-update of the zone does not permit the client"), true
	}
	before := z.serialNow()
	waiting := a.updates.add(application.Update{View: v.ID, Zone: z.settings.Name, Client: w.Address, Key: w.Key, Message: m}, false)
	if waiting == nil {
		return 0, false
	}
	<-waiting.done
	if waiting.answer.Changed { // the next query must see the change
		a.awaitChange(z, before)
	}
	return waiting.answer.Code, true
}

// refuse logs the reason of a refusal, at most once a second, and returns the code.
func (a *nameServer) refuse(q *query, w zonedata.Client, code int, why string) int {
	now := time.Now().Unix()
	if last := a.lastRefusal.Load(); last != now && a.lastRefusal.CompareAndSwap(last, now) {
		name, _, _ := dns.UnpackDomainName([]byte(q.name), 0)
		a.log.Info("update refused", "zone", name, "client", w.Address, "key", w.Key, "code", dns.RcodeToString[code],
			"reason", why)
	}
	return code
}

// awaitChange waits until the serial of a zone differs from before, or changeWait has passed.
func (a *nameServer) awaitChange(z *servedZone, before uint32) {
	late := time.NewTimer(changeWait)
	defer late.Stop()
	for {
		another := a.revisionChanged.Load()
		if z.serialNow() != before {
			return
		}
		select {
		case <-*another:
		case <-late.C:
			return
		}
	}
}

// notifyRevision notifies waiting goroutines that another revision is served.
func (a *nameServer) notifyRevision() {
	next := make(chan struct{})
	close(*a.revisionChanged.Swap(&next))
}
