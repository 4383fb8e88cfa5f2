package servicepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// closed says that run has ended; gone are the applications that were removed, whose ids are not used again.
	closed bool
	gone   map[string]bool
}

// errNoName is the error of a kind that cannot name a folder.
var errNoName = errors.New("the kind or the application is not a name of letters, digits, dashes and underscores")

// streamKey names a stream; application is empty for the agent itself.
type streamKey struct{ application, kind string }

// sentSpool is a spool with what ends its being sent.
type sentSpool struct {
	*spool.Spool
	stop context.CancelFunc
	// sent is closed when nothing of it is being sent any more; nil before it is.
	sent chan struct{}
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
	return &streams{dir: filepath.Join(state, streamFolder), log: log, post: post, spools: map[streamKey]*sentSpool{}, gone: map[string]bool{}}
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
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
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
	if !stream.IsName(key.kind) || key.application != "" && !stream.IsName(key.application) || key.application == ownFolder {
		return nil, errNoName
	}
	if one := s.spools[key]; one != nil {
		return one.Spool, nil
	}
	if s.closed || s.gone[key.application] {
		return nil, errors.New("the agent is ending, or the application was removed")
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
	one.stop, one.sent = stop, make(chan struct{})
	s.group.Go(func() {
		defer close(one.sent)
		s.sendAll(ctx, key, one.Spool)
	})
}

// forget removes the spools of an application that is not to run any more, with what was not sent.
func (s *streams) forget(application string) error {
	s.mu.Lock()
	s.gone[application] = true
	var gone []*sentSpool
	for key, one := range s.spools {
		if key.application == application {
			gone = append(gone, one)
			delete(s.spools, key)
		}
	}
	s.mu.Unlock()
	for _, one := range gone {
		if one.stop != nil {
			one.stop()
			<-one.sent
		}
		_ = one.Close() // it is removed
	}
	return os.RemoveAll(filepath.Join(s.dir, application))
}

// sendAll sends the records of a spool, a batch behind the other, until ctx ends. A record that the manager can never apply is given up.
func (s *streams) sendAll(ctx context.Context, key streamKey, from *spool.Spool) {
	log := s.log.With("application", key.application, "kind", key.kind)
	acknowledged := int64(0) // what is to be acknowledged still
	alone := int64(0)        // the records before this one are sent one at a time: one of them cannot be applied
	for b := (backoff{}); ctx.Err() == nil; {
		err := from.Acknowledge(acknowledged)
		if errors.Is(err, spool.ErrForeign) {
			log.Error("records are sent again under another name", "reason", err)
			if err = from.Renew(); err == nil {
				acknowledged = 0
			}
		}
		more := from.More()
		var batch stream.Batch
		there := false
		if err == nil {
			batch, there, err = from.Next()
		}
		if err == nil && !there {
			select {
			case <-ctx.Done():
			case <-more:
			}
			continue
		}
		batch.Application, batch.Kind = key.application, key.kind
		if batch.First < alone && len(batch.Records) > 1 {
			batch.Records = batch.Records[:1]
		}
		var answer stream.Answer
		if err == nil {
			answer, err = s.post(ctx, batch)
		}
		var refused *refusal
		if errors.As(err, &refused) && isPoison(refused) && len(batch.Records) > 1 {
			alone = batch.First + int64(len(batch.Records))
			continue
		}
		if refused != nil && isPoison(refused) && refused.Code != unexpected { // a proxy on the way gives no record up
			log.Error("record given up: the manager refused it", "number", batch.First, "reason", err)
			answer, err = stream.Answer{Next: batch.First + 1}, nil
		}
		if err != nil {
			if ctx.Err() == nil {
				log.Debug("records not sent", "number", batch.First, "reason", err)
			}
			b.pause(ctx)
			continue
		}
		b, acknowledged = backoff{}, answer.Next
		sleep(ctx, time.Duration(answer.WaitMillis)*time.Millisecond)
	}
}

// isPoison reports whether a batch is refused for what it has, whenever it is sent.
func isPoison(r *refusal) bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return r.Code != stream.UnknownKind
	}
	return false
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
		kept := int64(0)
		for _, one := range all {
			var to *spool.Spool
			if to, err = p.s.streams.spool(streamKey{p.id, one.Kind}); err == nil {
				err = to.Append(one.Data)
			}
			if errors.Is(err, errNoName) || errors.Is(err, stream.ErrTooLong) || errors.Is(err, spool.ErrEmpty) {
				p.log.Error("record of the application given up", "kind", one.Kind, "number", one.Number, "reason", err)
				err = nil
			}
			if err != nil {
				break
			}
			kept = one.Number
		}
		if kept > 0 { // also where the next one could not be kept
			err = errors.Join(err, p.socket(ctx, http.MethodPost, application.RecordsPath, application.RecordsKept{Number: kept}, nil))
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
		return json.NewDecoder(io.LimitReader(rs.Body, mostRecords)).Decode(answer)
	}
	return fmt.Errorf("%s %s: the application answers %s", method, path, rs.Status)
}

// mostRecords is how many octets an application may answer with records.
const mostRecords = 8 << 20

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
