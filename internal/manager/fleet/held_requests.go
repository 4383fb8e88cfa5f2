package fleet

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// hold is what is held open for one service point.
type hold struct {
	// open is how much there is, desired the generation that its check-ins have seen; woken is closed, and made anew, when there may be
	// something new. waiting are the check-ins, others what else waits. All are guarded by Service.mu.
	open    int
	desired int64
	woken   chan struct{}
	waiting []*waitingCheckIn
	others  []*waitingHeld
}

// hold counts something that may be held open. It is let go of by release.
func (s *Service) hold(id string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.holds[id]
	if !ok {
		h = &hold{woken: make(chan struct{})}
		s.holds[id] = h
	}
	h.open++
	return h
}

func (s *Service) release(id string, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.open--; h.open == 0 {
		delete(s.holds, id)
	}
}

// next gives what is closed at the next wake. It is asked for before the database is.
func (s *Service) next(h *hold) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.woken
}

// Wake lets what is held open for a service point look whether there is something new.
func (s *Service) Wake(servicePoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.holds[servicePoint]; ok {
		s.wake(h)
	}
}

// wake wakes all that is held open for a service point. mu is held.
func (s *Service) wake(h *hold) {
	close(h.woken)
	h.woken = make(chan struct{})
	for _, w := range h.waiting {
		w.timer.Stop()
	}
	s.lookFor(h.waiting...)
	for _, one := range h.others {
		one.timer.Stop()
		go one.again(false)
	}
	h.waiting, h.others = nil, nil
}

// A Held is something that is held open for a node of a service point, and that no goroutine waits for.
type Held struct {
	service *Service
	at      seat
	// what tells it from others of the node that wait for something else.
	what    string
	hold    *hold
	changed <-chan struct{}
}

// Hold holds something open for whose certificate is shown, until Release. what is what it waits for, such as the id of an application.
func (s *Service) Hold(shown *x509.Certificate, what string) *Held {
	at := seatOf(shown)
	return &Held{service: s, at: at, what: what, hold: s.hold(at.id)}
}

// Look is called before the database is asked whether there is something new.
func (h *Held) Look() { h.changed = h.service.next(h.hold) }

// Wait has again called, once, by another goroutine, when there may be something new since Look, or at a moment. What waited for the same
// of the same node is called with last: who asks again has given up what it asked before. So is what has waited longest where a node has
// more waiting than it can have applications.
func (h *Held) Wait(until time.Time, again func(last bool)) {
	s := h.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.hold.woken != h.changed {
		go again(false)
		return
	}
	ofNode := 0
	for _, one := range h.hold.others {
		if one.at == h.at && one.what != h.what {
			ofNode++
		}
	}
	h.hold.others = slices.DeleteFunc(h.hold.others, func(one *waitingHeld) bool {
		if one.at != h.at || one.what != h.what && ofNode < maxApplications {
			return false
		}
		if one.what != h.what {
			ofNode--
		}
		one.timer.Stop()
		go one.again(true)
		return true
	})
	one := &waitingHeld{at: h.at, what: h.what, again: again}
	h.hold.others = append(h.hold.others, one)
	one.timer = time.AfterFunc(time.Until(until), func() {
		s.mu.Lock()
		at := slices.Index(h.hold.others, one)
		if at >= 0 {
			h.hold.others = slices.Delete(h.hold.others, at, at+1)
		}
		s.mu.Unlock()
		if at >= 0 { // else it was woken
			again(true)
		}
	})
}

// Release lets go of it.
func (h *Held) Release() { h.service.release(h.at.id, h.hold) }

// Ends reports whether nothing is held open any more: the manager is about to end.
func (s *Service) Ends() bool { return s.closes() }

// waitingHeld is a Held that waits.
type waitingHeld struct {
	at    seat
	what  string
	again func(last bool)
	timer *time.Timer
}

// EndCheckins lets every check-in that is held open answer now, and holds none from then on: the manager is about to end.
func (s *Service) EndCheckins() {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.closing)
		for _, h := range s.holds {
			s.wake(h)
		}
	})
}

// closes reports whether the manager is about to end.
func (s *Service) closes() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Reply answers a check-in that was held open. Its context is of the request that it was.
type Reply struct {
	Context context.Context
	Send    func(checkin.Answer, error)
}

// waitingCheckIn is a check-in that is held open. One goroutine has it at a time: one that looks for news, or that of its timer.
type waitingCheckIn struct {
	service *Service
	shown   *x509.Certificate
	rq      checkin.Request
	known   row
	hold    *hold
	// changed is the woken of its hold from before it was last looked.
	changed <-chan struct{}
	// until is when it is answered without news.
	until time.Time
	timer *time.Timer
	reply Reply
}

// due reports whether there is something new for the service point, or the wait is over. The answer lacks what fill puts in.
func (w *waitingCheckIn) due() (a checkin.Answer, due bool) {
	a = w.service.answer(w.shown, w.known, w.rq)
	return a, !time.Now().Before(w.until) || a.SendReport || w.rq.Desired != w.known.desired || w.known.logs || w.service.closes()
}

// fill puts into an answer which logs are asked for, and the desired state where the service point has another one.
func (w *waitingCheckIn) fill(ctx context.Context, a *checkin.Answer) error {
	s := w.service
	if err := w.ask(ctx, a); err != nil || w.rq.Desired == a.Desired {
		return err
	}
	return s.store.View(ctx, func(tx *store.Tx) error {
		states, err := s.desiredAt(tx, w.known.at)
		if err == nil {
			err = w.state(states, a)
		}
		return err
	})
}

// ask puts into an answer which logs are asked for.
func (w *waitingCheckIn) ask(ctx context.Context, a *checkin.Answer) (err error) {
	if w.known.logs {
		a.Logs, err = w.service.logsFor(ctx, w.known.at.id)
	}
	return err
}

// state puts the desired state into an answer, from those that were read.
func (w *waitingCheckIn) state(states map[seat]*checkin.Desired, a *checkin.Answer) error {
	if a.State = states[w.known.at]; a.State == nil {
		return errUnknown
	}
	a.Desired = a.State.Generation
	return nil
}

// wait lets a check-in stand until it is woken, or its wait is over. Where that has come since it was looked, it is looked again.
func (w *waitingCheckIn) wait() {
	s := w.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.hold.woken != w.changed || s.closes() {
		s.lookFor(w)
		return
	}
	// Who asks again has given up what it asked before, and its connection with it.
	w.hold.waiting = slices.DeleteFunc(w.hold.waiting, func(one *waitingCheckIn) bool {
		if one.known.at != w.known.at {
			return false
		}
		one.timer.Stop()
		go one.finish()
		return true
	})
	w.hold.desired = w.known.desired
	w.hold.waiting = append(w.hold.waiting, w)
	w.timer = time.AfterFunc(time.Until(w.until), w.over)
}

// over answers a check-in whose wait is over, where nobody has woken it meanwhile.
func (w *waitingCheckIn) over() {
	w.service.mu.Lock()
	at := slices.Index(w.hold.waiting, w)
	if at >= 0 {
		w.hold.waiting = slices.Delete(w.hold.waiting, at, at+1)
	}
	w.service.mu.Unlock()
	if at >= 0 {
		w.finish()
	}
}

// finish answers with what is known.
func (w *waitingCheckIn) finish() {
	ctx, cancel := context.WithTimeout(w.reply.Context, lookTime)
	defer cancel()
	a, _ := w.due()
	w.end(a, guarded(func() error { return w.fill(ctx, &a) }))
}

// guarded makes an error of a panic: where no request is answered nobody else does, and the manager would end.
func guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// end answers.
func (w *waitingCheckIn) end(a checkin.Answer, err error) {
	w.service.release(w.shown.Subject.CommonName, w.hold)
	w.reply.Send(a, err)
}

// Bounds of looking for news, and of writing reports: how many check-ins are seen to together, by how many goroutines it is looked, and how
// long either may take.
const (
	mostTogether = 64
	mostLookers  = 4
	lookTime     = 30 * time.Second
)

// lookFor has it looked whether there is something new for check-ins. mu is held.
func (s *Service) lookFor(all ...*waitingCheckIn) {
	s.woken = append(s.woken, all...)
	for ; s.lookers < mostLookers && s.lookers*mostTogether < len(s.woken); s.lookers++ {
		s.ordering.begin()
		go s.lookForWoken()
	}
}

// lookForWoken looks whether there is something new for check-ins that were woken, until there are no more of them.
func (s *Service) lookForWoken() {
	defer s.ordering.end()
	for {
		s.mu.Lock()
		if len(s.woken) == 0 {
			s.woken = nil
			s.lookers--
			s.mu.Unlock()
			return
		}
		n := min(len(s.woken), mostTogether)
		some := slices.Clone(s.woken[:n])
		clear(s.woken[:n])
		s.woken = s.woken[n:]
		for _, w := range some {
			w.changed = w.hold.woken
		}
		s.mu.Unlock()
		s.lookTogether(some)
	}
}

// found is what was found out of a check-in that was woken.
type found struct {
	answer checkin.Answer
	due    bool
	err    error
}

// lookTogether looks whether there is something new for some check-ins. They are answered, or wait on. What is wrong with one of them is
// not the others' fault: then each is looked for alone.
func (s *Service) lookTogether(some []*waitingCheckIn) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	all := make([]found, len(some))
	err := guarded(func() error { return s.store.View(ctx, func(tx *store.Tx) error { return s.find(tx, some, all) }) })
	if len(some) > 1 && ofOne(ctx, err) {
		for _, w := range some {
			s.lookTogether([]*waitingCheckIn{w})
		}
		return
	}
	for i, w := range some {
		f := &all[i]
		switch {
		case err != nil:
			f.err = err
		case f.err == nil && !f.due:
			w.wait()
			continue
		}
		w.tell(f)
	}
}

// tell answers with what was found. Orders are being told until the answer is sent, or it takes long to be read.
func (w *waitingCheckIn) tell(f *found) {
	o := &w.service.ordering
	o.begin()
	told := sync.OnceFunc(o.end)
	go func() {
		defer time.AfterFunc(mostUntold, told).Stop()
		defer told()
		if f.err == nil {
			ctx, cancel := context.WithTimeout(w.reply.Context, lookTime)
			defer cancel()
			f.err = guarded(func() error { return w.ask(ctx, &f.answer) })
		}
		w.end(f.answer, f.err)
	}()
}

// ofOne reports whether an error of a transaction for several service points may be that of one of them: the database is there, and there
// was time.
func ofOne(ctx context.Context, err error) bool {
	p, known := problem.As(store.Unavailable(err))
	return err != nil && ctx.Err() == nil && (!known || p.Status < http.StatusInternalServerError)
}

// find finds out what there is for some check-ins.
func (s *Service) find(tx *store.Tx, some []*waitingCheckIn, all []found) error {
	ids := make([]string, len(some))
	for i, w := range some {
		ids[i] = w.shown.Subject.CommonName
	}
	points, err := knownPoints(tx, ids)
	if err != nil {
		return err
	}
	var seats []seat
	for i, w := range some {
		f := &all[i]
		w.known, f.err = shows(tx, points, seatOf(w.shown), w.shown)
		if _, refused := problem.As(f.err); f.err != nil && !refused {
			return f.err
		}
		if f.err == nil {
			f.err = s.inTime(w.shown)
		}
		if f.answer, f.due = w.due(); f.err == nil && f.due && w.rq.Desired != f.answer.Desired {
			seats = append(seats, w.known.at)
		}
	}
	states, err := s.desired(tx, seats, points)
	if err != nil {
		return err
	}
	for i, w := range some {
		if f := &all[i]; f.err == nil && f.due && w.rq.Desired != f.answer.Desired {
			f.err = w.state(states, &f.answer)
		}
	}
	return nil
}
