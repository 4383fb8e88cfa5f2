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

// relay brings the manager the updates that clients send to an application, and the application what came of them, until ctx ends.
func (p *process) relay(ctx context.Context) {
	var deciding sync.WaitGroup
	var q updateQueue
	defer deciding.Wait()
	for b := (backoff{}); ctx.Err() == nil; {
		all, err := p.awaitUpdates(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.log.Debug("the application is not asked for updates", "reason", err)
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

// updateQueue holds the updates that wait, by zone: those of a zone are decided on one behind the other.
type updateQueue struct {
	mu sync.Mutex
	// zones are guarded by mu; a zone is there while somebody works its updates off.
	zones map[string][]application.Update
}

// add takes an update in, and reports whether somebody is to begin to work those of its zone off.
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

// next gives the next update of a zone; false where there is none, and nobody works them off any more.
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

// decideOn has the updates of a zone decided on, one behind the other, as long as there are some.
func (p *process) decideOn(ctx context.Context, q *updateQueue, zone string) {
	for one, there := q.next(zone); there; one, there = q.next(zone) {
		if time.Now().After(one.Deadline) { // it was answered
			continue
		}
		answer := p.decided(ctx, one)
		if err := p.tellDecided(ctx, []application.UpdateAnswer{answer}); err != nil && ctx.Err() == nil {
			p.log.Warn("the application was not told what came of an update", "reason", err)
		}
	}
}

// decided gives what came of an update: SERVFAIL where the manager cannot be asked.
func (p *process) decided(ctx context.Context, one application.Update) application.UpdateAnswer {
	ctx, cancel := context.WithDeadline(ctx, one.Deadline)
	defer cancel()
	answer, err := p.s.decide(ctx, one)
	if err != nil {
		p.log.Warn("an update could not be decided on", "zone", one.Zone, "client", one.Client, "reason", err)
		answer.Code = dns.RcodeServerFailure
	}
	answer.ID = one.ID
	return answer
}

// awaitUpdates gives the updates that wait for a decision, once there are some; nothing where there were none for a while.
func (p *process) awaitUpdates(ctx context.Context) (all []application.Update, err error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://application"+application.UpdatesPath, nil)
	if err != nil {
		return nil, err
	}
	rs, err := p.bulky.Do(rq)
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
	return nil, fmt.Errorf("it answers %s", rs.Status)
}

// tellDecided tells the application what came of updates.
func (p *process) tellDecided(ctx context.Context, answers []application.UpdateAnswer) error {
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://application"+application.UpdatesPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	rs, err := p.slow.Do(rq)
	if err != nil {
		return unwrapURL(err)
	}
	return rs.Body.Close()
}

// decideUpdate has the manager decide on an update.
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
