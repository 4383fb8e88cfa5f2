package servicepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// relay forwards the dynamic updates of an application's clients to the manager and returns the manager's decisions, until ctx ends.
func (p *process) relay(ctx context.Context) {
	var deciding sync.WaitGroup
	var q updateQueue
	defer deciding.Wait()
	for b := (backoff{}); ctx.Err() == nil; {
		all, err := p.awaitUpdates(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.log.Debug("request updates of the application failed", "reason", err)
			}
			b.pause(ctx)
			continue
		}
		b = backoff{}
		if len(all) == 0 {
			continue
		}
		for _, one := range all {
			if q.add(one) {
				deciding.Go(func() { p.decideOn(ctx, &q, one.Zone) })
			}
		}
	}
}

// updateQueue contains pending updates by zone. The updates of one zone are decided in order.
type updateQueue struct {
	mu sync.Mutex
	// zones is guarded by mu. It contains a zone while a goroutine handles the zone's updates.
	zones map[string][]application.Update
}

// add appends an update. It reports whether the caller must start a goroutine for its zone.
func (q *updateQueue) add(one application.Update) (begin bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, working := q.zones[one.Zone]
	if q.zones == nil {
		q.zones = map[string][]application.Update{}
	}
	q.zones[one.Zone] = append(q.zones[one.Zone], one)
	return !working
}

// next returns the next update of a zone. If there is none it returns false, and the zone's goroutine must end.
func (q *updateQueue) next(zone string) (one application.Update, there bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.zones[zone]
	if len(all) == 0 {
		delete(q.zones, zone)
		return one, false
	}
	q.zones[zone] = all[1:]
	return all[0], true
}

// decideOn handles the pending updates of a zone in order.
func (p *process) decideOn(ctx context.Context, q *updateQueue, zone string) {
	for one, there := q.next(zone); there; one, there = q.next(zone) {
		if time.Now().After(one.Deadline) { // the application has already answered the client
			continue
		}
		answer := p.requestDecision(ctx, one)
		if err := p.sendDecisions(ctx, []application.UpdateAnswer{answer}); err != nil && ctx.Err() == nil {
			p.log.Warn("return update decision failed", "reason", err)
		}
	}
}

// requestDecision returns the manager's decision on an update, or SERVFAIL if the manager cannot be reached.
func (p *process) requestDecision(ctx context.Context, one application.Update) application.UpdateAnswer {
	ctx, cancel := context.WithDeadline(ctx, one.Deadline)
	defer cancel()
	answer, err := p.s.decide(ctx, one)
	if err != nil {
		p.log.Warn("update decision failed", "zone", one.Zone, "client", one.Client, "reason", err)
		answer.Code = dns.RcodeServerFailure
	}
	answer.ID = one.ID
	return answer
}

// awaitUpdates returns the updates that wait for a decision. It waits for them, and returns none if none arrive for a while.
func (p *process) awaitUpdates(ctx context.Context) (all []application.Update, err error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://application"+application.UpdatesPath, nil)
	if err != nil {
		return nil, err
	}
	rs, err := p.contentHTTP.Do(rq)
	if err != nil {
		return nil, unwrapURL(err)
	}
	defer func() { _ = rs.Body.Close() }()
	switch rs.StatusCode {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
		return all, json.NewDecoder(rs.Body).Decode(&all)
	}
	return nil, fmt.Errorf("it returned %s", rs.Status)
}

// sendDecisions sends the application the decisions on its updates.
func (p *process) sendDecisions(ctx context.Context, answers []application.UpdateAnswer) error {
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://application"+application.UpdatesPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	rs, err := p.configureHTTP.Do(rq)
	if err != nil {
		return unwrapURL(err)
	}
	return rs.Body.Close()
}

// decideUpdate requests the manager's decision on an update.
func (a *Agent) decideUpdate(ctx context.Context, one application.Update) (answer application.UpdateAnswer, err error) {
	a.mu.Lock()
	m, enrolled := a.manager, a.identity != nil
	a.mu.Unlock()
	if !enrolled {
		return answer, errors.New("this service point is not enrolled")
	}
	var got checkin.UpdateAnswer
	err = m.post(ctx, checkin.UpdatePath, 0, checkin.UpdateRequest{View: one.View, Zone: one.Zone, Client: one.Client.String(), Key: one.Key,
		Message: one.Message}, &got)
	return application.UpdateAnswer{Code: got.Code, Changed: got.Changed}, err
}
