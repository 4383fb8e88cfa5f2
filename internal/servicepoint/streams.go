package servicepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/spool"
	"portolan/internal/wire/stream"
)

// streams bring the manager the records of the service point and of its applications, which lie in spools until it has acknowledged them.
type streams struct {
	dir string
	log *slog.Logger
	// post sends a batch.
	post func(ctx context.Context, b stream.Batch) (stream.Answer, error)

	mu sync.Mutex
	// What follows is guarded by mu: the spools by application and kind, and what sends them; ctx is nil before run.
	spools map[streamKey]*sentSpool
	ctx    context.Context
	group  sync.WaitGroup
}

// streamKey names a stream; application is empty for the agent itself.
type streamKey struct{ application, kind string }

// sentSpool is a spool with what ends its being sent.
type sentSpool struct {
	*spool.Spool
	stop context.CancelFunc
}

// Folders of spools: streamFolder in the state directory, and ownFolder in it for the agent itself.
const (
	streamFolder = "stream"
	ownFolder    = "_"
)

// streamRoom is how many octets the records of a kind of an application may take, and mostStreams how many streams there may be.
const (
	streamRoom  = 16 << 20
	mostStreams = 256
)

// newStreams makes them; nothing is sent before run.
func newStreams(state string, log *slog.Logger, post func(context.Context, stream.Batch) (stream.Answer, error)) *streams {
	return &streams{dir: filepath.Join(state, streamFolder), log: log, post: post, spools: map[streamKey]*sentSpool{}}
}

// run sends what is in the spools, also in those that a process before has left, until ctx ends.
func (s *streams) run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	for key, one := range s.spools {
		s.send(key, one)
	}
	s.mu.Unlock()
	left, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	if err != nil {
		s.log.Error("list spools failed", "error", err)
	}
	for _, path := range left {
		key := streamKey{filepath.Base(filepath.Dir(path)), filepath.Base(path)}
		if key.application == ownFolder {
			key.application = ""
		}
		if _, err := s.spool(key); err != nil {
			s.log.Error("open spool failed", "path", path, "error", err)
		}
	}
	<-ctx.Done()
	s.group.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.spools {
		if err := one.Close(); err != nil {
			s.log.Error("close spool failed", "error", err)
		}
	}
}

// spool returns the spool of a stream, which is made where there is none.
func (s *streams) spool(key streamKey) (*spool.Spool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.spools[key]; one != nil {
		return one.Spool, nil
	}
	if len(s.spools) >= mostStreams {
		return nil, fmt.Errorf("there are %d streams already", len(s.spools))
	}
	folder := key.application
	if folder == "" {
		folder = ownFolder
	}
	opened, err := spool.Open(filepath.Join(s.dir, folder, key.kind), spool.Options{MaxBytes: streamRoom, Lossy: true})
	if err != nil {
		return nil, err
	}
	one := &sentSpool{Spool: opened}
	s.spools[key] = one
	s.send(key, one)
	return opened, nil
}

// send begins to send a spool, once there is a context to do so. mu is held.
func (s *streams) send(key streamKey, one *sentSpool) {
	if s.ctx == nil || one.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	one.stop = stop
	s.group.Go(func() { s.sendAll(ctx, key, one.Spool) })
}

// forget removes the spools of an application that is not to run any more, with what was not sent.
func (s *streams) forget(application string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.spools {
		if key.application != application {
			continue
		}
		if one.stop != nil {
			one.stop()
		}
		_ = one.Close() // it is removed
		delete(s.spools, key)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, application)); err != nil {
		s.log.Error("remove spools failed", "application", application, "error", err)
	}
}

// sendAll sends the records of a spool, a batch behind the other, until ctx ends. A record that the manager can never apply is given up.
func (s *streams) sendAll(ctx context.Context, key streamKey, from *spool.Spool) {
	log := s.log.With("application", key.application, "kind", key.kind)
	only := false // the batch before had a record that cannot be applied: one is sent at a time, until it is found
	for b := (backoff{}); ctx.Err() == nil; {
		more := from.More()
		batch, there, err := from.Next()
		if err == nil && !there {
			select {
			case <-ctx.Done():
			case <-more:
			}
			continue
		}
		batch.Application, batch.Kind = key.application, key.kind
		if only {
			batch.Records = batch.Records[:1]
		}
		var answer stream.Answer
		if err == nil {
			answer, err = s.post(ctx, batch)
		}
		var refused *refusal
		if errors.As(err, &refused) && refused.Code == stream.InvalidRecord {
			if !only && len(batch.Records) > 1 {
				only = true
				continue
			}
			log.Error("record given up: the manager refused it", "number", batch.First, "reason", err)
			answer, err, only = stream.Answer{Next: batch.First + 1}, nil, false
		}
		if err == nil {
			err = from.Acknowledge(answer.Next)
		}
		if err != nil {
			if ctx.Err() == nil {
				log.Debug("records not sent", "number", batch.First, "reason", err)
			}
			b.pause(ctx)
			continue
		}
		b = backoff{}
		sleep(ctx, time.Duration(answer.WaitMillis)*time.Millisecond)
	}
}

// event spools an event of the agent itself.
func (s *streams) event(e stream.Event) {
	e.At = time.Now().UnixMilli()
	e.Reason = shortened(e.Reason)
	record, err := json.Marshal(e)
	if err == nil {
		var to *spool.Spool
		if to, err = s.spool(streamKey{kind: stream.Events}); err == nil {
			err = to.Append(record)
		}
	}
	if err != nil {
		s.log.Error("spool event failed", "field", e.Field, "after", e.After, "error", err)
	}
}

// postBatch sends a batch to the manager.
func (a *Agent) postBatch(ctx context.Context, b stream.Batch) (answer stream.Answer, err error) {
	a.mu.Lock()
	m, enrolled := a.manager, a.identity != nil
	a.mu.Unlock()
	if !enrolled {
		return answer, errors.New("this service point is not enrolled")
	}
	return answer, m.post(ctx, stream.Path, 0, b, &answer)
}

// collect takes the records of an application to the disk, until ctx ends.
func (p *process) collect(ctx context.Context) {
	for b := (backoff{}); ctx.Err() == nil; {
		all, err := p.awaitRecords(ctx)
		for i := 0; err == nil && i < len(all); i++ {
			var to *spool.Spool
			if to, err = p.s.streams.spool(streamKey{p.id, all[i].Kind}); err == nil {
				err = to.Append(all[i].Data)
			}
		}
		if err == nil && len(all) > 0 {
			err = p.socket(ctx, http.MethodPost, application.RecordsPath, application.RecordsKept{Number: all[len(all)-1].Number}, nil)
		}
		if err != nil {
			if ctx.Err() == nil {
				p.log.Debug("records of the application not taken", "reason", err)
			}
			b.pause(ctx)
			continue
		}
		b = backoff{}
	}
}

// awaitRecords gives the records that wait, once there are some; nothing where there were none for a while.
func (p *process) awaitRecords(ctx context.Context) (all []application.Record, err error) {
	return all, p.socket(ctx, http.MethodGet, application.RecordsPath, nil, &all)
}

// socket sends a request to the socket of the application, and reads the answer where there is one.
func (p *process) socket(ctx context.Context, method, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, method, "http://application"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	rs, err := p.bulky.Do(rq)
	if err != nil {
		return unwrapURL(err)
	}
	defer func() { _ = rs.Body.Close() }()
	switch rs.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusOK:
		return json.NewDecoder(rs.Body).Decode(answer)
	}
	return fmt.Errorf("%s %s: the application answers %s", method, path, rs.Status)
}

// noteEnd notes that the process has ended by itself, or that it runs again behind that.
func (p *process) noteEnd(ended bool, reason string) {
	p.mu.Lock()
	ran, down, name := p.ran, p.down, p.wanted.Name
	if ended {
		p.ran, p.down = false, ran || down
	} else {
		p.ran, p.down = true, false
	}
	p.mu.Unlock()
	e := stream.Event{Application: name + "/" + p.id, Field: "process", Before: processRuns, After: processEnded, Reason: reason}
	switch {
	case ended && ran:
		p.s.streams.event(e)
	case !ended && down:
		e.Before, e.After = processEnded, processRuns
		p.s.streams.event(e)
	}
}

// States of the process of an application, in events.
const (
	processRuns  = "RUNNING"
	processEnded = "ENDED"
)
