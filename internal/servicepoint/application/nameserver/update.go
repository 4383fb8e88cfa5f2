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

// Limits of update messages. updateTime is the time until an update is answered with SERVFAIL. settleTime is the time to wait until the
// content includes the change. mostUpdates is the maximum number of pending updates; further ones are ignored.
const (
	updateTime  = 10 * time.Second
	settleTime  = 2 * time.Second
	mostUpdates = 256
)

// updates are the dynamic update messages (RFC 2136) that wait for the manager's decision.
type updates struct {
	mu sync.Mutex
	// The following fields are guarded by mu. due are the updates that were not collected yet. asked are all pending updates by id. same are
	// the pending updates by message and client, because clients repeat slow updates.
	next  int64
	due   []application.Update
	asked map[int64]*asked
	same  map[[32]byte]*asked
	// some is closed when an update is added.
	some chan struct{}
}

// asked is a pending update. done is closed when answer is set.
type asked struct {
	done   chan struct{}
	answer application.UpdateAnswer
	digest [32]byte
}

// add adds an update or a NOTIFY message. It returns nil if too many are pending.
func (u *updates) add(one application.Update, notice bool) *asked {
	digest := sha256.Sum256(append([]byte(one.Client.String()+"\x00"+one.Key+"\x00"), one.Message...))
	if notice { // one NOTIFY per zone is sufficient
		digest = sha256.Sum256(fmt.Appendf(nil, "%d %s", one.View, one.Zone))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if there := u.same[digest]; there != nil {
		return there
	}
	if len(u.asked) >= mostUpdates {
		return nil
	}
	if u.asked == nil {
		u.asked, u.same = map[int64]*asked{}, map[[32]byte]*asked{}
	}
	u.next++
	one.ID, one.Deadline = u.next, time.Now().Add(updateTime)
	a := &asked{done: make(chan struct{}), digest: digest}
	u.asked[one.ID], u.same[digest] = a, a
	if u.due = append(u.due, one); u.some != nil {
		close(u.some)
		u.some = nil
	}
	time.AfterFunc(updateTime, func() { u.giveUp(one.ID) })
	return a
}

// giveUp answers an expired update with SERVFAIL and removes it from the queue.
func (u *updates) giveUp(id int64) {
	u.mu.Lock()
	u.due = slices.DeleteFunc(u.due, func(one application.Update) bool { return one.ID == id })
	u.mu.Unlock()
	u.answer(application.UpdateAnswer{ID: id, Code: dns.RcodeServerFailure})
}

// take waits for updates and returns them; none when ctx ends.
func (u *updates) take(ctx context.Context) (all []application.Update) {
	for {
		u.mu.Lock()
		if all, u.due = u.due, nil; len(all) > 0 {
			u.mu.Unlock()
			return all
		}
		if u.some == nil {
			u.some = make(chan struct{})
		}
		some := u.some
		u.mu.Unlock()
		select {
		case <-some:
		case <-ctx.Done():
			return nil
		}
	}
}

// answer sets the answer of an update. It ignores an update that is already answered.
func (u *updates) answer(answer application.UpdateAnswer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.asked[answer.ID]
	if a == nil {
		return
	}
	delete(u.asked, answer.ID)
	delete(u.same, a.digest)
	a.answer = answer
	close(a.done)
}

// end answers all pending updates with SERVFAIL.
func (u *updates) end() {
	u.mu.Lock()
	ids := slices.Collect(maps.Keys(u.asked))
	u.mu.Unlock()
	for _, id := range ids {
		u.answer(application.UpdateAnswer{ID: id, Code: dns.RcodeServerFailure})
	}
}

// Updates implements application.Updated.
func (a *nameServer) Updates(ctx context.Context) []application.Update { return a.updates.take(ctx) }

// Decide implements application.Updated.
func (a *nameServer) Decide(answers []application.UpdateAnswer) {
	for _, one := range answers {
		a.updates.answer(one)
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
		a.counts.left.Add(1)
		return nil
	}
	served := a.served.Load()
	w := zonedata.Client{Address: client}
	var sign *signer
	if code == 0 {
		if w, sign, code = a.identify(served, m, &q, w); code != 0 {
			a.refuse(&q, w, code, "its signature is not good: the key, its secret, or the time")
		}
	}
	if code == 0 {
		if code, ok = a.askOnce(served, &q, m, w, sign); !ok {
			a.counts.left.Add(1)
			return nil
		}
	}
	var out answer
	out.begin(&q, nil, 65535)
	out.authoritative = code == 0 && q.opcode == dns.OpcodeNotify
	out.code = code
	a.counts.codes[code&15].Add(1)
	wire = out.end()
	if sign != nil {
		wire = sign.sign(wire, time.Now())
	}
	return wire
}

// askOnce calls askUpdate, but only once for repeated copies of a signed update. When it returns or panics, the goroutines that wait for
// the same message are released.
func (a *nameServer) askOnce(s *served, q *query, m []byte, w zonedata.Client, sign *signer) (code int, ok bool) {
	if sign == nil || q.opcode != dns.OpcodeUpdate {
		return a.askUpdate(s, q, m, w)
	}
	one, again, late := a.replays.take(sign.key, &q.signature, time.Now())
	switch {
	case late:
		sign.problem = badTime
		return a.refuse(q, w, dns.RcodeNotAuth, "it was signed before the latest message of which signatures are not remembered"), true
	case again:
		<-one.done
		return one.code, one.ok
	}
	defer func() { a.replays.answered(one, code, ok) }()
	return a.askUpdate(s, q, m, w)
}

// askUpdate checks a message and waits for the manager's decision. ok is false if too many are pending.
func (a *nameServer) askUpdate(s *served, q *query, m []byte, w zonedata.Client) (code int, ok bool) {
	v := s.viewFor(w)
	if q.kind != dns.TypeSOA || q.class != dns.ClassINET {
		return dns.RcodeFormatError, true
	}
	if v == nil {
		return a.refuse(q, w, dns.RcodeRefused, "there is no view for the client"), true
	}
	z := v.zones[q.name]
	if z == nil {
		return a.refuse(q, w, dns.RcodeNotAuth, "the zone is not served here"), true
	}
	if q.opcode == dns.OpcodeNotify {
		if !slices.Contains(z.of.Primaries, w.Address) {
			return a.refuse(q, w, dns.RcodeRefused, "the client has none of the addresses of the zone's primary servers"), true
		}
		taken := a.updates.add(application.Update{View: v.ID, Zone: z.of.Name, Client: w.Address, Key: w.Key, Message: m}, true)
		return 0, taken != nil // the client does not wait for the transfer, and repeats an unanswered NOTIFY
	}
	if z.of.Update == nil {
		return a.refuse(q, w, dns.RcodeRefused, "the zone is not changed by updates, by its dynamicUpdateEnabled or allow-update"), true
	}
	if !zonedata.Allows(z.of.Update, w, false) {
		return a.refuse(q, w, dns.RcodeRefused, "allow-update of the zone does not let the client"), true
	}
	before := z.serialNow()
	waiting := a.updates.add(application.Update{View: v.ID, Zone: z.of.Name, Client: w.Address, Key: w.Key, Message: m}, false)
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
	if last := a.refused.Load(); last != now && a.refused.CompareAndSwap(last, now) {
		name, _, _ := dns.UnpackDomainName([]byte(q.name), 0)
		a.log.Info("update refused", "zone", name, "client", w.Address, "key", w.Key, "code", dns.RcodeToString[code],
			"reason", why)
	}
	return code
}

// awaitChange waits until the serial of a zone differs from before, or settleTime has passed.
func (a *nameServer) awaitChange(z *servedZone, before uint32) {
	late := time.NewTimer(settleTime)
	defer late.Stop()
	for {
		another := a.another.Load()
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

// renewed notifies waiting goroutines that another revision is served.
func (a *nameServer) renewed() {
	next := make(chan struct{})
	close(*a.another.Swap(&next))
}
