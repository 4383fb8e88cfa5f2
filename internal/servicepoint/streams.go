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

// streams send the records of the service point and of its applications to the manager. Spools keep the records until the manager
// acknowledges them.
type streams struct {
	dir string
	log *slog.Logger
	// post sends a batch to the manager.
	post func(ctx context.Context, b stream.Batch) (stream.Answer, error)

	mu sync.Mutex
	// The following fields are guarded by mu. spools are the spools by application and kind. ctx is nil before run.
	spools map[streamKey]*sentSpool
	ctx    context.Context
	group  sync.WaitGroup
	// closed reports that run has ended. removed are the removed applications, whose ids are not used again.
	closed  bool
	removed map[string]bool
}

// errNoName reports a kind or application that cannot name a folder.
var errNoName = errors.New("the kind or the application is not a name of letters, digits, dashes and underscores")

// streamKey identifies a stream; application is empty for the agent itself.
type streamKey struct{ application, kind string }

// sentSpool is a spool with the function that stops sending it.
type sentSpool struct {
	*spool.Spool
	stop context.CancelFunc
	// stopped is closed when sending has stopped; nil before it started.
	stopped chan struct{}
}

// Folders of spools: streamFolder in the state directory, and ownFolder below it for the agent itself.
const (
	streamFolder = "stream"
	ownFolder    = "_"
)

// maxStreamBytes is the maximum size of one stream's records in bytes. maxStreams is the maximum number of streams.
const (
	maxStreamBytes = 16 << 20
	maxStreams     = 256
)

// newStreams creates the streams. Nothing is sent before run.
func newStreams(state string, log *slog.Logger, post func(context.Context, stream.Batch) (stream.Answer, error)) *streams {
	return &streams{dir: filepath.Join(state, streamFolder), log: log, post: post, spools: map[streamKey]*sentSpool{},
		removed: map[string]bool{}}
}

// run sends the records in the spools until ctx ends. It includes the spools that an earlier process left.
func (s *streams) run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	for key, one := range s.spools {
		s.startSending(key, one)
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

// spool returns the spool of a stream. It creates the spool if there is none.
func (s *streams) spool(key streamKey) (*spool.Spool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !stream.IsName(key.kind) || key.application != "" && !stream.IsName(key.application) || key.application == ownFolder {
		return nil, errNoName
	}
	if one := s.spools[key]; one != nil {
		return one.Spool, nil
	}
	if s.closed || s.removed[key.application] {
		return nil, errors.New("the agent is ending, or the application was removed")
	}
	if len(s.spools) >= maxStreams {
		return nil, fmt.Errorf("there are %d streams already", len(s.spools))
	}
	folder := key.application
	if folder == "" {
		folder = ownFolder
	}
	opened, err := spool.Open(filepath.Join(s.dir, folder, key.kind), spool.Options{MaxBytes: maxStreamBytes, Lossy: stream.IsLossy(key.kind)})
	if err != nil {
		return nil, err
	}
	one := &sentSpool{Spool: opened}
	s.spools[key] = one
	s.startSending(key, one)
	return opened, nil
}

// startSending starts sending a spool if run has started. The caller holds mu.
func (s *streams) startSending(key streamKey, one *sentSpool) {
	if s.ctx == nil || one.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	one.stop, one.stopped = stop, make(chan struct{})
	s.group.Go(func() {
		defer close(one.stopped)
		s.sendAll(ctx, key, one.Spool)
	})
}

// forget deletes the spools of a removed application, including unsent records.
func (s *streams) forget(application string) error {
	s.mu.Lock()
	s.removed[application] = true
	s.mu.Unlock()
	return s.remove(application, application)
}

// forgetOwn removes the spools of the agent itself. Their records are those of another service point after an enrolment under another id.
func (s *streams) forgetOwn() error { return s.remove("", ownFolder) }

// remove closes the spools of an application and deletes their folder.
func (s *streams) remove(application, folder string) error {
	s.mu.Lock()
	var removed []*sentSpool
	for key, one := range s.spools {
		if key.application == application {
			removed = append(removed, one)
			delete(s.spools, key)
		}
	}
	s.mu.Unlock()
	for _, one := range removed {
		if one.stop != nil {
			one.stop()
			<-one.stopped
		}
		_ = one.Close() // it is deleted below
	}
	return os.RemoveAll(filepath.Join(s.dir, folder))
}

// sendAll sends the records of a spool in batches until ctx ends. It drops a record that the manager rejects for its content.
func (s *streams) sendAll(ctx context.Context, key streamKey, from *spool.Spool) {
	log := s.log.With("application", key.application, "kind", key.kind)
	acknowledged := int64(0) // the first record number that is not acknowledged yet
	alone := int64(0)        // records before this number are sent one at a time, because one of them was rejected
	for b := (backoff{}); ctx.Err() == nil; {
		err := from.Acknowledge(acknowledged)
		if errors.Is(err, spool.ErrForeign) {
			log.Error("acknowledgement does not match the spool, sending records again", "reason", err)
			if err = from.Renew(); err == nil {
				acknowledged = 0
			}
		}
		more := from.Arrivals()
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
		if refused != nil && isPoison(refused) && refused.Code != unexpected { // a proxy's error answer drops no record
			log.Error("record dropped: rejected by the manager", "number", batch.First, "reason", err)
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

// isPoison reports whether the manager rejected a batch for its content, so that a retry cannot succeed.
func isPoison(r *refusal) bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return r.Code != stream.UnknownKind
	}
	return false
}

// recordEvent writes an event of the agent itself to its spool.
func (s *streams) recordEvent(e stream.Event) {
	e.At = time.Now().UnixMilli()
	e.Reason = shortenText(e.Reason)
	record, err := json.Marshal(e)
	if err == nil {
		err = s.recordOwn(stream.Events, record)
	}
	if err != nil {
		s.log.Error("spool event failed", "field", e.Field, "after", e.After, "error", err)
	}
}

// recordOwn writes a record of the agent itself to the spool of a kind.
func (s *streams) recordOwn(kind string, record []byte) error {
	to, err := s.spool(streamKey{kind: kind})
	if err == nil {
		err = to.Append(record)
	}
	return err
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

// collect copies the records of an application to the spools until ctx ends.
func (p *process) collect(ctx context.Context) {
	stored, counted := int64(0), int64(0) // the last record on the disk, and the last one whose preceding losses are counted
	for b := (backoff{}); ctx.Err() == nil; {
		all, err := p.awaitRecords(ctx)
		for _, one := range all {
			if one.Number <= stored { // its acknowledgement did not arrive
				continue
			}
			if one.Number <= counted { // an attempt failed after the losses were counted
				one.Lost = 0
			}
			if err = p.countLost(one); err != nil {
				break
			}
			counted = one.Number
			if err = p.storeRecord(one); err != nil {
				break
			}
			stored = one.Number
		}
		if len(all) > 0 && all[0].Number <= stored { // also after an error, to acknowledge the records before it
			err = errors.Join(err, p.callSocket(ctx, http.MethodPost, application.RecordsPath, application.RecordsKept{Number: stored}, nil))
		}
		if err != nil {
			if ctx.Err() == nil {
				p.log.Debug("collect records failed", "reason", err)
			}
			b.pause(ctx)
			continue
		}
		b = backoff{}
	}
}

// countLost counts the records that the application dropped before this one.
func (p *process) countLost(r application.Record) error {
	if r.Lost == 0 {
		return nil
	}
	to, err := p.s.streams.spool(streamKey{p.id, r.Kind})
	if errors.Is(err, errNoName) {
		return nil // storeRecord reports it
	}
	if err != nil {
		return err
	}
	return to.Skip(r.Lost)
}

// storeRecord stores a record of the application in the spool of its kind. A record that no spool accepts is dropped.
func (p *process) storeRecord(r application.Record) error {
	to, err := p.s.streams.spool(streamKey{p.id, r.Kind})
	if err == nil {
		err = to.Append(r.Data)
	}
	if errors.Is(err, errNoName) || errors.Is(err, stream.ErrTooLong) || errors.Is(err, spool.ErrEmpty) {
		p.log.Error("record dropped", "kind", r.Kind, "number", r.Number, "reason", err)
		return nil
	}
	return err
}

// awaitRecords returns pending records of the application. It waits for them, and returns none if none arrive for a while.
func (p *process) awaitRecords(ctx context.Context) (all []application.Record, err error) {
	return all, p.callSocket(ctx, http.MethodGet, application.RecordsPath, nil, &all)
}

// callSocket sends a request to the socket of the application and decodes the answer if there is one.
func (p *process) callSocket(ctx context.Context, method, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, method, "http://application"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	rs, err := p.contentHTTP.Do(rq)
	if err != nil {
		return unwrapURL(err)
	}
	defer func() { _ = rs.Body.Close() }()
	switch rs.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusOK:
		return json.NewDecoder(io.LimitReader(rs.Body, maxRecordsAnswer)).Decode(answer)
	}
	return fmt.Errorf("%s %s: the application returned %s", method, path, rs.Status)
}

// maxRecordsAnswer is the maximum size of an application's answer with records, in bytes.
const maxRecordsAnswer = 8 << 20

// recordEnd records that the process ended by itself, or that it runs again, and spools an event for a change.
func (p *process) recordEnd(ended bool, reason string) {
	p.mu.Lock()
	ran, down, name := p.hasAnswered, p.down, p.desired.Name
	if ended {
		p.hasAnswered, p.down = false, ran || down
	} else {
		p.hasAnswered, p.down = true, false
	}
	p.mu.Unlock()
	e := stream.Event{Application: name + "/" + p.id, Field: "process", Before: processRuns, After: processEnded, Reason: reason}
	switch {
	case ended && ran:
		p.s.streams.recordEvent(e)
	case !ended && down:
		e.Before, e.After = processEnded, processRuns
		p.s.streams.recordEvent(e)
	}
}

// Process states in events.
const (
	processRuns  = "RUNNING"
	processEnded = "ENDED"
)
