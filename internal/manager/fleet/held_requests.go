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

// waiters are the requests that are held open for one service point.
type waiters struct {
	// open is the number of requests. desired is the generation that its check-ins have seen. woken is closed, and replaced, when there may
	// be news. waiting are the parked check-ins, others the other parked requests. All are guarded by Service.mu.
	open    int
	desired int64
	woken   chan struct{}
	waiting []*waitingCheckIn
	others  []*waitingHeld
}

// openWaiters returns the waiters of a service point and counts one more request. The caller must call releaseWaiters.
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

// wakeChannel returns the channel that the next wake closes. The caller must fetch it before it reads the database.
func (s *Service) wakeChannel(h *waiters) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.woken
}

// Wake lets the open requests of a service point check for news.
func (s *Service) Wake(servicePoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.waitersOf[servicePoint]; ok {
		s.wake(h)
	}
}

// wake wakes all open requests of a service point. mu is held.
func (s *Service) wake(h *waiters) {
	close(h.woken)
	h.woken = make(chan struct{})
	for _, w := range h.waiting {
		w.timer.Stop()
	}
	s.enqueueWoken(h.waiting...)
	for _, one := range h.others {
		one.timer.Stop()
		go one.retry(false)
	}
	h.waiting, h.others = nil, nil
}

// HeldRequest is a request that is held open for a node of a service point without a goroutine that waits.
type HeldRequest struct {
	service *Service
	node    nodeID
	// purpose distinguishes the request from other waiting requests of the node.
	purpose string
	waiters *waiters
	changed <-chan struct{}
	// Serves is the revision of the content that the application of the request serves; empty if the request does not report it. It must be
	// set before Wait, and after the certificate was verified.
	Serves string
}

// Hold opens a request for the node in the certificate, until Release. what identifies the subject, such as the id of an application.
func (s *Service) Hold(shown *x509.Certificate, what string) *HeldRequest {
	at := nodeIDOf(shown)
	return &HeldRequest{service: s, node: at, purpose: what, waiters: s.openWaiters(at.id)}
}

// Arm must be called before the database is checked for news.
func (h *HeldRequest) Arm() { h.changed = h.service.wakeChannel(h.waiters) }

// Wait schedules again to be called once, by another goroutine: with last false when there may be news since Look, or with last true at the
// time until.
//
// An earlier request of the same node with the same subject is called with last true, because a client that asks again has dropped its
// earlier request. If a node has more waiting requests than it can have applications, the oldest is ended in the same way.
func (h *HeldRequest) Wait(until time.Time, again func(last bool)) {
	s := h.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.waiters.woken != h.changed {
		go again(false)
		return
	}
	ofNode := 0
	for _, one := range h.waiters.others {
		if one.node == h.node && one.purpose != h.purpose {
			ofNode++
		}
	}
	h.waiters.others = slices.DeleteFunc(h.waiters.others, func(one *waitingHeld) bool {
		if one.node != h.node || one.purpose != h.purpose && ofNode < maxApplications {
			return false
		}
		if one.purpose != h.purpose {
			ofNode--
		}
		one.timer.Stop()
		go one.retry(true)
		return true
	})
	one := &waitingHeld{node: h.node, purpose: h.purpose, serves: h.Serves, retry: again}
	h.waiters.others = append(h.waiters.others, one)
	one.timer = time.AfterFunc(time.Until(until), func() {
		s.mu.Lock()
		at := slices.Index(h.waiters.others, one)
		if at >= 0 {
			h.waiters.others = slices.Delete(h.waiters.others, at, at+1)
		}
		s.mu.Unlock()
		if at >= 0 { // otherwise it was woken
			again(true)
		}
	})
}

// Release ends the request.
func (h *HeldRequest) Release() { h.service.releaseWaiters(h.node.id, h.waiters) }

// Ends reports whether requests are no longer held open, because the manager shuts down.
func (s *Service) Ends() bool { return s.isClosing() }

// waitingHeld is a HeldRequest that waits.
type waitingHeld struct {
	node    nodeID
	purpose string
	serves  string
	retry   func(last bool)
	timer   *time.Timer
}

// waitsWith returns the revision of the content of an application whose node waits for newer content at this manager. It is empty if no
// node waits, or if nodes of the service point wait with different revisions.
func (s *Service) waitsWith(servicePoint, application string) (revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.waitersOf[servicePoint]
	if h == nil {
		return ""
	}
	for _, one := range h.others {
		switch {
		case one.purpose != application:
		case one.serves == "" || revision != "" && revision != one.serves:
			return ""
		default:
			revision = one.serves
		}
	}
	return revision
}

// EndCheckins answers all open check-ins now and holds no more open: the manager shuts down.
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

// isClosing reports whether the manager shuts down.
func (s *Service) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Reply sends the answer to a parked check-in. Context is the context of the request.
type Reply struct {
	Context context.Context
	Send    func(checkin.Answer, error)
}

// waitingCheckIn is a parked check-in. One goroutine owns it at a time: the one that checks for news, or the one of its timer.
type waitingCheckIn struct {
	service *Service
	shown   *x509.Certificate
	rq      checkin.Request
	known   row
	waiters *waiters
	// changed is the wake channel from before the last check for news.
	changed <-chan struct{}
	// until is the time at which it is answered without news.
	until time.Time
	timer *time.Timer
	reply Reply
}

// pendingAnswer returns the answer so far and whether it must be sent now: there is news or the wait is over. fill adds the rest.
func (w *waitingCheckIn) pendingAnswer() (a checkin.Answer, due bool) {
	a = w.service.answer(w.shown, w.known, w.rq)
	return a, !time.Now().Before(w.until) || a.SendReport || w.rq.Desired != w.known.desired || w.known.logs || w.service.isClosing()
}

// fill adds the log requests to an answer, and the desired state if the service point has another one.
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

// addLogRequests adds the log requests to an answer.
func (w *waitingCheckIn) addLogRequests(ctx context.Context, a *checkin.Answer) (err error) {
	if w.known.logs {
		a.Logs, err = w.service.takeLogRequests(ctx, w.known.at.id)
	}
	return err
}

// addState adds the desired state, from those that were read, to an answer.
func (w *waitingCheckIn) addState(states map[nodeID]*checkin.Desired, a *checkin.Answer) error {
	if a.State = states[w.known.at]; a.State == nil {
		return errUnknown
	}
	a.Desired = a.State.Generation
	return nil
}

// wait parks a check-in until it is woken or its wait is over. If it was woken since the last check for news, it is checked again.
func (w *waitingCheckIn) wait() {
	s := w.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiters.woken != w.changed || s.isClosing() {
		s.enqueueWoken(w)
		return
	}
	// A client that asks again has dropped its earlier request and its connection.
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

// timeOut answers a check-in whose wait is over, unless it was woken meanwhile.
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

// finish answers with the state known.
func (w *waitingCheckIn) finish() {
	ctx, cancel := context.WithTimeout(w.reply.Context, batchTimeout)
	defer cancel()
	a, _ := w.pendingAnswer()
	w.send(a, catchPanic(func() error { return w.fill(ctx, &a) }))
}

// catchPanic converts a panic of fn into an error. Outside of a request nothing else recovers it, and the manager would crash.
func catchPanic(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// send sends the answer.
func (w *waitingCheckIn) send(a checkin.Answer, err error) {
	w.service.releaseWaiters(w.shown.Subject.CommonName, w.waiters)
	w.reply.Send(a, err)
}

// maxBatch is the number of check-ins or reports processed together, maxWakeWorkers the number of goroutines that check for news.
// batchTimeout is the timeout of a batch.
const (
	maxBatch       = 64
	maxWakeWorkers = 4
	batchTimeout   = 30 * time.Second
)

// enqueueWoken enqueues woken check-ins for a look-up of their changes. mu is held.
func (s *Service) enqueueWoken(all ...*waitingCheckIn) {
	s.woken = append(s.woken, all...)
	for ; s.wakeWorkers < maxWakeWorkers && s.wakeWorkers*maxBatch < len(s.woken); s.wakeWorkers++ {
		s.ordering.start()
		go s.processWoken()
	}
}

// processWoken checks woken check-ins for news until the queue is empty.
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

// wakeResult is the result of checking a woken check-in for news.
type wakeResult struct {
	answer  checkin.Answer
	isReady bool
	err     error
}

// processBatch checks a batch of check-ins for news. They are answered, or wait again. If the transaction fails because of one of them,
// each is checked on its own.
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

// sendAsync sends the result from another goroutine. This counts as work on orders until the answer is sent, for maxWakeDelay at most if
// the client reads slowly.
func (w *waitingCheckIn) sendAsync(f *wakeResult) {
	o := &w.service.ordering
	o.start()
	done := sync.OnceFunc(o.done)
	go func() {
		defer time.AfterFunc(maxWakeDelay, done).Stop()
		defer done()
		if f.err == nil {
			ctx, cancel := context.WithTimeout(w.reply.Context, batchTimeout)
			defer cancel()
			f.err = catchPanic(func() error { return w.addLogRequests(ctx, &f.answer) })
		}
		w.send(f.answer, f.err)
	}()
}

// mayConcernOne reports whether an error of a transaction for several service points may be caused by one of them. It may if the database
// is available and the time has not run out.
func mayConcernOne(ctx context.Context, err error) bool {
	p, known := problem.As(store.Unavailable(err))
	return err != nil && ctx.Err() == nil && (!known || p.Status < http.StatusInternalServerError)
}

// evaluate fills in results: results[i] is the result of checkIns[i]. It returns an error that concerns the whole batch.
func (s *Service) evaluate(tx *store.Tx, checkIns []*waitingCheckIn, results []wakeResult) error {
	ids := make([]string, len(checkIns))
	for i, w := range checkIns {
		ids[i] = w.shown.Subject.CommonName
	}
	points, err := knownPoints(tx, ids)
	if err != nil {
		return err
	}
	var nodes []nodeID
	for i, w := range checkIns {
		f := &results[i]
		w.known, f.err = rowOfCertificate(tx, points, nodeIDOf(w.shown), w.shown)
		if _, refused := problem.As(f.err); f.err != nil && !refused {
			return f.err
		}
		if f.err == nil {
			f.err = s.checkExpiry(w.shown)
		}
		if f.answer, f.isReady = w.pendingAnswer(); f.err == nil && f.isReady && w.rq.Desired != f.answer.Desired {
			nodes = append(nodes, w.known.at)
		}
	}
	states, err := s.desired(tx, nodes, points)
	if err != nil {
		return err
	}
	for i, w := range checkIns {
		if f := &results[i]; f.err == nil && f.isReady && w.rq.Desired != f.answer.Desired {
			f.err = w.addState(states, &f.answer)
		}
	}
	return nil
}
