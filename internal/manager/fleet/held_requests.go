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
type waiters struct {
	// open is how much there is, desired the generation that its check-ins have seen; woken is closed, and made anew, when there may be
	// something new. waiting are the check-ins, others what else waits. All are guarded by Service.mu.
	open    int
	desired int64
	woken   chan struct{}
	waiting []*waitingCheckIn
	others  []*waitingHeld
}

// hold counts something that may be held open. It is let go of by release.
func (s *Service) openWaiters(id string) *waiters {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.waitersOf[id]
	if !ok {
		h = &waiters{woken: make(chan struct{})}
		s.waitersOf[id] = h
	}
	h.open++
	return h
}

func (s *Service) releaseWaiters(id string, h *waiters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.open--; h.open == 0 {
		delete(s.waitersOf, id)
	}
}

// next gives what is closed at the next wake. It is asked for before the database is.
func (s *Service) wakeChannel(h *waiters) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.woken
}

// Wake lets what is held open for a service point look whether there is something new.
func (s *Service) Wake(servicePoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.waitersOf[servicePoint]; ok {
		s.wake(h)
	}
}

// wake wakes all that is held open for a service point. mu is held.
func (s *Service) wake(h *waiters) {
	close(h.woken)
	h.woken = make(chan struct{})
	for _, w := range h.waiting {
		w.timer.Stop()
	}
	s.enqueueWoken(h.waiting...)
	for _, one := range h.others {
		one.timer.Stop()
		go one.again(false)
	}
	h.waiting, h.others = nil, nil
}

// A Held is something that is held open for a node of a service point, and that no goroutine waits for.
type Held struct {
	service *Service
	at      nodeID
	// what tells it from others of the node that wait for something else.
	what    string
	waiters *waiters
	changed <-chan struct{}
}

// Hold holds something open for whose certificate is shown, until Release. what is what it waits for, such as the id of an application.
func (s *Service) Hold(shown *x509.Certificate, what string) *Held {
	at := nodeIDOf(shown)
	return &Held{service: s, at: at, what: what, waiters: s.openWaiters(at.id)}
}

// Look is called before the database is asked whether there is something new.
func (h *Held) Look() { h.changed = h.service.wakeChannel(h.waiters) }

// Wait has again called, once, by another goroutine, when there may be something new since Look, or at a moment. What waited for the same
// of the same node is called with last: who asks again has given up what it asked before. So is what has waited longest where a node has
// more waiting than it can have applications.
func (h *Held) Wait(until time.Time, again func(last bool)) {
	s := h.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.waiters.woken != h.changed {
		go again(false)
		return
	}
	ofNode := 0
	for _, one := range h.waiters.others {
		if one.at == h.at && one.what != h.what {
			ofNode++
		}
	}
	h.waiters.others = slices.DeleteFunc(h.waiters.others, func(one *waitingHeld) bool {
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
	h.waiters.others = append(h.waiters.others, one)
	one.timer = time.AfterFunc(time.Until(until), func() {
		s.mu.Lock()
		at := slices.Index(h.waiters.others, one)
		if at >= 0 {
			h.waiters.others = slices.Delete(h.waiters.others, at, at+1)
		}
		s.mu.Unlock()
		if at >= 0 { // else it was woken
			again(true)
		}
	})
}

// Release lets go of it.
func (h *Held) Release() { h.service.releaseWaiters(h.at.id, h.waiters) }

// Ends reports whether nothing is held open any more: the manager is about to end.
func (s *Service) Ends() bool { return s.isClosing() }

// waitingHeld is a Held that waits.
type waitingHeld struct {
	at    nodeID
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
		for _, h := range s.waitersOf {
			s.wake(h)
		}
	})
}

// closes reports whether the manager is about to end.
func (s *Service) isClosing() bool {
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
	waiters *waiters
	// changed is the woken of its hold from before it was last looked.
	changed <-chan struct{}
	// until is when it is answered without news.
	until time.Time
	timer *time.Timer
	reply Reply
}

// due reports whether there is something new for the service point, or the wait is over. The answer lacks what fill puts in.
func (w *waitingCheckIn) pendingAnswer() (a checkin.Answer, due bool) {
	a = w.service.answer(w.shown, w.known, w.rq)
	return a, !time.Now().Before(w.until) || a.SendReport || w.rq.Desired != w.known.desired || w.known.logs || w.service.isClosing()
}

// fill puts into an answer which logs are asked for, and the desired state where the service point has another one.
func (w *waitingCheckIn) fill(ctx context.Context, a *checkin.Answer) error {
	s := w.service
	if err := w.addLogRequests(ctx, a); err != nil || w.rq.Desired == a.Desired {
		return err
	}
	return s.store.View(ctx, func(tx *store.Tx) error {
		states, err := s.desiredOfNode(tx, w.known.at)
		if err == nil {
			err = w.addState(states, a)
		}
		return err
	})
}

// ask puts into an answer which logs are asked for.
func (w *waitingCheckIn) addLogRequests(ctx context.Context, a *checkin.Answer) (err error) {
	if w.known.logs {
		a.Logs, err = w.service.takeLogRequests(ctx, w.known.at.id)
	}
	return err
}

// state puts the desired state into an answer, from those that were read.
func (w *waitingCheckIn) addState(states map[nodeID]*checkin.Desired, a *checkin.Answer) error {
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
	if w.waiters.woken != w.changed || s.isClosing() {
		s.enqueueWoken(w)
		return
	}
	// Who asks again has given up what it asked before, and its connection with it.
	w.waiters.waiting = slices.DeleteFunc(w.waiters.waiting, func(one *waitingCheckIn) bool {
		if one.known.at != w.known.at {
			return false
		}
		one.timer.Stop()
		go one.finish()
		return true
	})
	w.waiters.desired = w.known.desired
	w.waiters.waiting = append(w.waiters.waiting, w)
	w.timer = time.AfterFunc(time.Until(w.until), w.timeOut)
}

// over answers a check-in whose wait is over, where nobody has woken it meanwhile.
func (w *waitingCheckIn) timeOut() {
	w.service.mu.Lock()
	at := slices.Index(w.waiters.waiting, w)
	if at >= 0 {
		w.waiters.waiting = slices.Delete(w.waiters.waiting, at, at+1)
	}
	w.service.mu.Unlock()
	if at >= 0 {
		w.finish()
	}
}

// finish answers with what is known.
func (w *waitingCheckIn) finish() {
	ctx, cancel := context.WithTimeout(w.reply.Context, batchTimeout)
	defer cancel()
	a, _ := w.pendingAnswer()
	w.send(a, catchPanic(func() error { return w.fill(ctx, &a) }))
}

// guarded makes an error of a panic: where no request is answered nobody else does, and the manager would end.
func catchPanic(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// end answers.
func (w *waitingCheckIn) send(a checkin.Answer, err error) {
	w.service.releaseWaiters(w.shown.Subject.CommonName, w.waiters)
	w.reply.Send(a, err)
}

// Bounds of looking for news, and of writing reports: how many check-ins are seen to together, by how many goroutines it is looked, and how
// long either may take.
const (
	maxBatch       = 64
	maxWakeWorkers = 4
	batchTimeout   = 30 * time.Second
)

// lookFor has it looked whether there is something new for check-ins. mu is held.
func (s *Service) enqueueWoken(all ...*waitingCheckIn) {
	s.woken = append(s.woken, all...)
	for ; s.wakeWorkers < maxWakeWorkers && s.wakeWorkers*maxBatch < len(s.woken); s.wakeWorkers++ {
		s.ordering.start()
		go s.processWoken()
	}
}

// lookForWoken looks whether there is something new for check-ins that were woken, until there are no more of them.
func (s *Service) processWoken() {
	defer s.ordering.done()
	for {
		s.mu.Lock()
		if len(s.woken) == 0 {
			s.woken = nil
			s.wakeWorkers--
			s.mu.Unlock()
			return
		}
		n := min(len(s.woken), maxBatch)
		some := slices.Clone(s.woken[:n])
		clear(s.woken[:n])
		s.woken = s.woken[n:]
		for _, w := range some {
			w.changed = w.waiters.woken
		}
		s.mu.Unlock()
		s.processBatch(some)
	}
}

// found is what was found out of a check-in that was woken.
type wakeResult struct {
	answer  checkin.Answer
	isReady bool
	err     error
}

// lookTogether looks whether there is something new for some check-ins. They are answered, or wait on. What is wrong with one of them is
// not the others' fault: then each is looked for alone.
func (s *Service) processBatch(some []*waitingCheckIn) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	all := make([]wakeResult, len(some))
	err := catchPanic(func() error { return s.store.View(ctx, func(tx *store.Tx) error { return s.evaluate(tx, some, all) }) })
	if len(some) > 1 && mayConcernOne(ctx, err) {
		for _, w := range some {
			s.processBatch([]*waitingCheckIn{w})
		}
		return
	}
	for i, w := range some {
		f := &all[i]
		switch {
		case err != nil:
			f.err = err
		case f.err == nil && !f.isReady:
			w.wait()
			continue
		}
		w.sendAsync(f)
	}
}

// tell answers with what was found. Orders are being told until the answer is sent, or it takes long to be read.
func (w *waitingCheckIn) sendAsync(f *wakeResult) {
	o := &w.service.ordering
	o.start()
	told := sync.OnceFunc(o.done)
	go func() {
		defer time.AfterFunc(maxWakeDelay, told).Stop()
		defer told()
		if f.err == nil {
			ctx, cancel := context.WithTimeout(w.reply.Context, batchTimeout)
			defer cancel()
			f.err = catchPanic(func() error { return w.addLogRequests(ctx, &f.answer) })
		}
		w.send(f.answer, f.err)
	}()
}

// ofOne reports whether an error of a transaction for several service points may be that of one of them: the database is there, and there
// was time.
func mayConcernOne(ctx context.Context, err error) bool {
	p, known := problem.As(store.Unavailable(err))
	return err != nil && ctx.Err() == nil && (!known || p.Status < http.StatusInternalServerError)
}

// find finds out what there is for some check-ins.
func (s *Service) evaluate(tx *store.Tx, some []*waitingCheckIn, all []wakeResult) error {
	ids := make([]string, len(some))
	for i, w := range some {
		ids[i] = w.shown.Subject.CommonName
	}
	points, err := knownPoints(tx, ids)
	if err != nil {
		return err
	}
	var seats []nodeID
	for i, w := range some {
		f := &all[i]
		w.known, f.err = rowOfCertificate(tx, points, nodeIDOf(w.shown), w.shown)
		if _, refused := problem.As(f.err); f.err != nil && !refused {
			return f.err
		}
		if f.err == nil {
			f.err = s.checkExpiry(w.shown)
		}
		if f.answer, f.isReady = w.pendingAnswer(); f.err == nil && f.isReady && w.rq.Desired != f.answer.Desired {
			seats = append(seats, w.known.at)
		}
	}
	states, err := s.desired(tx, seats, points)
	if err != nil {
		return err
	}
	for i, w := range some {
		if f := &all[i]; f.err == nil && f.isReady && w.rq.Desired != f.answer.Desired {
			f.err = w.addState(states, &f.answer)
		}
	}
	return nil
}
