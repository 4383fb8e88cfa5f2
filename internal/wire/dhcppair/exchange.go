package dhcppair

import (
	"errors"
	"fmt"
	"slices"
)

// mustRecover reports whether a server has to recover, by the hellos of both.
func mustRecover(x, y *Hello) (has, lost bool) {
	switch {
	case y.Known && !x.Known:
		return true, true
	case x.Phase == Recover:
		return true, x.Lost
	case y.Phase == PartnerDown && x.Phase != PartnerDown:
		return true, false
	case y.Phase == PartnerDown && x.Phase == PartnerDown:
		return x.Side == Secondary, false
	}
	return false, false
}

// Errors of messages. The caller ends the connection.
var (
	errHello   = errors.New("the partner sent no hello, or two")
	errSide    = errors.New("the partner has the same side of the pair")
	errVersion = errors.New("the partner has another version of the protocol")
	errBinding = errors.New("the partner sent an invalid record")
)

// Receive returns the effects of a message from the partner.
func (m *Machine) Receive(in Message, records Records, now int64) (e Effects, err error) {
	if (in.Hello == nil) != (m.peer != nil) || !m.connected {
		return e, errHello
	}
	if in.Hello != nil {
		if err := m.receiveHello(in.Hello, &e, now); err != nil {
			return e, err
		}
	}
	ack := Ack{Sequence: in.Sequence}
	pending := map[string]Record{}
	for i, b := range in.Bindings {
		if !b.IsValid() {
			return e, fmt.Errorf("%w of %s", errBinding, b.Address)
		}
		r, known := pending[b.Address.String()]
		if !known {
			r = records.Record(b.Address)
		}
		out := m.apply(r, b, now)
		c := Change{Address: b.Address, Record: out.record, Conflict: out.conflict}
		switch {
		case out.adopted:
			c.Data = b.Data
		case out.conflict:
			c.Rival = b.Data
		}
		if !out.accepted {
			ack.Rejected = append(ack.Rejected, i)
		}
		if out.answers {
			m.Mark(b.Address)
		}
		if out.accepted {
			pending[b.Address.String()] = out.record
			e.Changes = append(e.Changes, c)
		}
	}
	if len(in.Bindings) > 0 {
		e.Messages = append(e.Messages, Message{Ack: &ack})
	}
	if in.Ack != nil {
		m.acknowledged(*in.Ack, records, &e)
	}
	m.answer(in.Ask, records, &e, now)
	m.applyAnswers(in.Answer, records, &e, now)
	m.gotDone = m.gotDone || in.Done
	m.gotRecovered = m.gotRecovered || in.Recovered
	if in.Normal {
		m.operate(&e)
	}
	e.Need = in.Need
	m.advance(&e, now)
	return e, nil
}

// receiveHello receives the hello of the partner.
func (m *Machine) receiveHello(h *Hello, e *Effects, now int64) error {
	switch {
	case h.Version != 1:
		return errVersion
	case h.Side == m.config.Side:
		return errSide
	}
	m.peer, m.wasConnected = h, true
	own := &Hello{Side: m.config.Side, Known: m.status.Known, Phase: m.status.Phase, Lost: m.status.Lost}
	var lost bool
	m.recovers, lost = mustRecover(own, h)
	m.theyRecover, _ = mustRecover(h, own)
	if m.recovers && (m.status.Phase != Recover || lost && !m.status.Lost) {
		since := now
		if lost { // it may have leased addresses until its disk was lost, at the latest until it started
			since = m.started
		}
		m.status.Phase, m.status.Since, m.status.Lost = Recover, since, lost
		e.Status = m.copied()
	}
	if m.synced != h.Journal || h.Lost || h.Phase != Operating || !h.Known {
		m.synced, m.marking, e.All = "", true, true
	}
	return nil
}

func (m *Machine) copied() *Status {
	s := m.status
	return &s
}

// operate ends the recovery, or begins the state NORMAL.
func (m *Machine) operate(e *Effects) {
	m.normal = true
	next := m.status
	next.Known, next.Phase, next.Since, next.Lost = true, Operating, 0, false
	if next != m.status {
		m.status = next
		e.Status = m.copied()
	}
}

// advance takes the next step of a connection.
func (m *Machine) advance(e *Effects, now int64) {
	if m.peer == nil || m.normal {
		return
	}
	if m.sentDone {
		m.synced = m.peer.Journal
	}
	if !m.sentDone || !m.gotDone {
		return
	}
	switch {
	case m.recovers:
		if !m.sentRecovered && (!m.status.Lost || m.status.Since+m.config.MCLT <= now) {
			m.sentRecovered = true
			e.Messages = append(e.Messages, Message{Recovered: true})
		}
		if m.theyRecover && m.sentRecovered && m.gotRecovered {
			m.operate(e)
		}
	case m.theyRecover:
		if m.gotRecovered {
			m.operate(e)
			e.Messages = append(e.Messages, Message{Normal: true})
		}
	default:
		m.operate(e)
	}
}

// Tick takes the steps that wait for a time.
func (m *Machine) Tick(now int64) (e Effects) {
	m.advance(&e, now)
	return e
}

// Outgoing returns the messages that can be sent now: records that the partner lacks, and questions. The caller stores the status first.
func (m *Machine) Outgoing(records Records, now int64) (e Effects) {
	if m.peer == nil {
		return e
	}
	for len(m.queue) > 0 && len(m.sent) < m.config.MaxUnacked {
		m.sequence++
		out := Message{Sequence: m.sequence}
		var later []int
		for i := 0; i < len(m.queue) && len(out.Bindings) < maxBindingsMessage && len(m.sent) < m.config.MaxUnacked; i++ {
			a := m.queue[i]
			if m.sent[a] != 0 { // one at a time, so that the acknowledgement is that of the last one
				continue
			}
			r := records.Record(a)
			b := binding(a, r, records.Data(a), now)
			out.Bindings = append(out.Bindings, b)
			m.batches[m.sequence] = append(m.batches[m.sequence], sentBinding{a, r.Versions[m.config.Side], r.horizon()})
			m.sent[a] = m.sequence
			delete(m.dirty, a)
			later = append(later, i)
		}
		if len(out.Bindings) == 0 {
			break
		}
		m.queue = removeAt(m.queue, later)
		e.Messages = append(e.Messages, out)
	}
	if m.normal {
		m.ask(records, &e, now)
	}
	if !m.sentDone && !m.marking && m.Pending() == 0 {
		m.sentDone = true
		e.Messages = append(e.Messages, Message{Done: true})
		m.advance(&e, now)
	}
	return e
}

// removeAt returns a list without the elements at the sorted positions.
func removeAt[T any](all []T, at []int) []T {
	out := all[:0]
	for i, one := range all {
		if len(at) > 0 && at[0] == i {
			at = at[1:]
			continue
		}
		out = append(out, one)
	}
	return out
}

// acknowledged applies an acknowledgement: a server may grant leases until the end that its partner has stored.
func (m *Machine) acknowledged(ack Ack, records Records, e *Effects) {
	for i, one := range m.batches[ack.Sequence] {
		if m.sent[one.address] != ack.Sequence {
			continue
		}
		delete(m.sent, one.address)
		if slices.Contains(ack.Rejected, i) {
			continue // the partner sends its own record
		}
		r := records.Record(one.address)
		if r.Versions[m.config.Side] != one.version || r.State != Leased {
			continue
		}
		r.Promise = min(one.horizon, r.horizon())
		e.Changes = append(e.Changes, Change{Address: one.address, Record: r, Unstored: true})
	}
	delete(m.batches, ack.Sequence)
}

// maxAsked is the maximum number of questions in a message.
const maxAsked = 1000

// minRetry and maxRetry are the limits in seconds of the time after which the partner is asked again.
const (
	minRetry = 5
	maxRetry = 600
)

// ask asks the partner about the addresses whose leases have ended.
func (m *Machine) ask(records Records, e *Effects, now int64) {
	var all []Asked
	for a, at := range m.wanted {
		if len(all) == maxAsked {
			break
		}
		if at > now || m.dirty[a] || m.sent[a] != 0 {
			continue
		}
		delete(m.wanted, a)
		r := records.Record(a)
		if r.Owner != m.config.Side || !r.IsHeld() || !r.hasEnded(now) {
			continue
		}
		m.asked[a] = true
		all = append(all, Asked{Address: a, Version: r.Versions[m.config.Side]})
	}
	if len(all) > 0 {
		e.Messages = append(e.Messages, Message{Ask: all})
	}
}

// answer answers questions of the partner. After a yes this server does not lease the address any more, not even to its last client.
func (m *Machine) answer(asked []Asked, records Records, e *Effects, now int64) {
	var all []Asked
	for _, one := range asked {
		r := records.Record(one.Address)
		one.Yes = r.Owner != m.config.Side && r.hasEnded(now) && m.status.Phase == Operating
		if !one.Yes {
			one.Rest = remaining(max(r.Mine, r.Expires), now)
		} else if r.IsHeld() {
			r.State, r.Agreed, r.Want = Free, true, 0
			e.Changes = append(e.Changes, Change{Address: one.Address, Record: r})
		}
		all = append(all, one)
	}
	if len(all) > 0 {
		e.Messages = append(e.Messages, Message{Answer: all})
	}
}

// applyAnswers applies the answers of the partner.
func (m *Machine) applyAnswers(all []Asked, records Records, e *Effects, now int64) {
	for _, one := range all {
		if !m.asked[one.Address] {
			continue
		}
		delete(m.asked, one.Address)
		r := records.Record(one.Address)
		if !one.Yes {
			m.wanted[one.Address] = now + min(max(one.Rest, minRetry), maxRetry)
			continue
		}
		if r.Versions[m.config.Side] != one.Version || !r.IsHeld() || !r.hasEnded(now) || r.Owner != m.config.Side {
			continue
		}
		r.State, r.Agreed, r.Want, r.Promise = Free, true, 0, 0
		r.Versions[m.config.Side]++
		m.Mark(one.Address)
		e.Changes = append(e.Changes, Change{Address: one.Address, Record: r, Freed: true})
	}
}
