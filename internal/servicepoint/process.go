package servicepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// process is one application, running or not.
type process struct {
	id, folder string
	s          *supervisor
	log        *slog.Logger
	// statusHTTP polls the status, configureHTTP sends configurations, contentHTTP sends content.
	statusHTTP, configureHTTP, contentHTTP *http.Client
	// changed contains a token when the wanted state changed. stop ends run. ended is closed when run has returned; nil before start.
	changed chan struct{}
	stop    context.CancelFunc
	ended   chan struct{}

	mu sync.Mutex
	// The following fields are guarded by mu.
	desired    checkin.DesiredApplication
	generation int64
	// handled is the last generation that was applied or failed to apply.
	handled int64
	// known reports that status was observed; otherwise it is the assumption at the agent's start.
	known           bool
	status          string
	version         string
	conditions      []string
	lastDiagnostics json.RawMessage
	// configured is the digest of the configuration in use. responds reports whether the last status request was answered.
	configured string
	responds   bool
	// content is the revision of the content in use. servesContent reports that the application serves content. engine names the program
	// that answers in its place.
	content       string
	servesContent bool
	engine        string
	// refused is the reason why the application refused the last content; empty if it accepted it.
	refused string
	// hasAnswered reports that the process has answered. down reports that it ended by itself and has not answered since.
	hasAnswered, down bool
}

// Intervals and limits of a process.
const (
	pollInterval   = time.Second
	statusLimit    = 3 * time.Second
	slowAfter      = 700 * time.Millisecond // after this time the process counts as not responding
	configureLimit = 30 * time.Second
	deployLimit    = 30 * time.Second // from the start until it must be healthy for the first time
	stopLimit      = 5 * time.Second
	maxSilent      = 3 // consecutive status requests without an answer
	// maxIdle and idleLimit are the number of connections to an application that are kept for the next request, and their time.
	maxIdle   = 4
	idleLimit = time.Minute
)

// Files in an application's folder.
const (
	socketFile  = "s"
	logFile     = "log"
	healthyFile = "well" // present once the application has been healthy
	pidFile     = "pid"
	maxLog      = 1 << 20
)

// process creates the process of an application. The caller holds s.mu.
func (s *supervisor) process(a checkin.DesiredApplication, generation int64) *process {
	p := &process{id: a.ID, folder: filepath.Join(s.dir, applicationFolder, a.ID), s: s, log: s.log.With("application", a.ID, "name", a.Name),
		changed: make(chan struct{}, 1), desired: a, generation: generation, status: checkin.Deploying,
		version: s.versions[a.Name], lastDiagnostics: json.RawMessage("{}")}
	transport := &http.Transport{DisableKeepAlives: s.closesConnections, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleLimit,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialIn(ctx, p.folder) }}
	p.statusHTTP, p.configureHTTP = &http.Client{Timeout: statusLimit, Transport: transport},
		&http.Client{Timeout: configureLimit, Transport: transport}
	p.contentHTTP = &http.Client{Timeout: contentLimit, Transport: transport}
	if _, err := os.Stat(filepath.Join(p.folder, healthyFile)); err == nil { // it has been healthy before
		p.status, p.conditions = checkin.Unhealthy, []string{"service is not healthy: it is being started"}
	}
	return p
}

// setDesired sets the wanted application and wakes run.
func (p *process) setDesired(a checkin.DesiredApplication, generation int64) {
	p.mu.Lock()
	p.desired, p.generation = a, generation
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *process) desiredState() (a checkin.DesiredApplication, generation int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desired, p.generation
}

// report returns the status and the last generation handled. known is false if nothing has been observed yet.
func (p *process) report() (a checkin.Application, handled int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return checkin.Application{ID: p.id, Name: p.desired.Name, Version: p.version, Status: p.status,
		ErrorConditions: append([]string{}, p.conditions...), Content: p.content,
		ServesContent: p.servesContent, Engine: p.engine}, p.handled, p.known
}

func (p *process) diagnostics() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastDiagnostics
}

// set records the status and that a generation was handled. It wakes the check-in if anything changed.
func (p *process) set(status string, handled int64, wrong ...string) {
	wrong = slices.Clone(wrong[:min(len(wrong), maxConditions)])
	for i, text := range wrong {
		wrong[i] = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), maxConditionLength)], ""), "\x00", "")
	}
	p.mu.Lock()
	moved := !p.known || p.status != status || handled > p.handled || fmt.Sprint(p.conditions) != fmt.Sprint(wrong)
	p.known, p.status, p.conditions, p.handled = true, status, wrong, max(p.handled, handled)
	p.mu.Unlock()
	if !moved {
		return
	}
	p.log.Info("application status changed", "status", status, "conditions", wrong)
	if status == checkin.Healthy {
		if err := (state{p.folder}).write(healthyFile, nil); err != nil {
			p.log.Error("store healthy mark failed", "error", err)
		}
	}
	p.s.changed()
}

// Limits of the error conditions of one application: their number, and the bytes of each. A manager accepts reports of at most 64 KiB.
const (
	maxConditions      = 20
	maxConditionLength = 500
)

// failureStatus returns the status for an application that does not work: UNHEALTHY if it ever worked, else DEPLOY_FAILED.
func (p *process) failureStatus() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == checkin.Healthy || p.status == checkin.Unhealthy {
		return checkin.Unhealthy
	}
	return checkin.DeployFailed
}

// start starts run. It is called once, with s.mu held.
func (p *process) start() {
	ctx, stop := context.WithCancel(p.s.ctx)
	p.stop, p.ended = stop, make(chan struct{})
	p.s.group.Go(func() {
		defer close(p.ended)
		p.run(ctx)
	})
}

// run keeps the application running until ctx ends. It then stops the application, unless a successor of this agent takes it over.
func (p *process) run(ctx context.Context) {
	for b := (backoff{}); ctx.Err() == nil; {
		a, generation := p.desiredState()
		began := time.Now()
		err := p.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		p.recordAnswer(application.Status{}, err)
		if errors.Is(err, errRestart) {
			continue
		}
		p.recordEnd(true, err.Error())
		if time.Since(began) > deployLimit {
			b = backoff{}
		}
		p.set(p.failureStatus(), generation, fmt.Sprintf("service is not healthy: %s %s: %v", a.Name, a.Version, err))
		p.wait(ctx, &b)
	}
	if !errors.Is(context.Cause(p.s.ctx), ErrSwitch) {
		p.terminate()
	}
}

// wait waits for the backoff before the next start. It returns early when the wanted state changes.
func (p *process) wait(ctx context.Context, b *backoff) {
	again, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.changed:
			stop()
		case <-again.Done():
		}
	}()
	b.pause(again)
	stop()
	<-done
}

// errRestart ends a process that must be restarted with other limits.
var errRestart = errors.New("the process must be restarted")

// serve starts the process, or takes over the running one, and watches it until it fails or ctx ends.
func (p *process) serve(ctx context.Context) error {
	p.statusHTTP.CloseIdleConnections() // those of the process before; all clients have one transport
	a, _ := p.desiredState()
	version, ok := p.s.versions[a.Name]
	if !ok {
		return fmt.Errorf("this service point has no application %q", a.Name)
	}
	if a.Version != version && p.failureStatus() == checkin.DeployFailed { // it never ran
		return fmt.Errorf("version %s of %s is not on this service point; %s is", a.Version, a.Name, version)
	}
	exited, answered, err := p.startOrAdopt(ctx, a.Name, version)
	if err != nil {
		return err
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.Now().Add(deployLimit)
	starved := p.s.groups.oomKills(p.id)
	refused := refusedConfiguration{}
	supplied, stop := context.WithCancel(ctx)
	var supplies sync.WaitGroup
	defer supplies.Wait()
	defer stop()
	supplying, collecting := false, false
	for silent := 0; ; {
		now, err := p.pollStatus(ctx)
		switch {
		case err == nil:
			silent, answered = 0, true
			p.recordEnd(false, "")
			a, generation := p.desiredState()
			if (now.ServesContent || a.ServesContent) && !supplying {
				if supplying = true; now.Configured == "" && !a.ServesContent {
					p.restoreContent(ctx, now)
					deadline = time.Now().Add(deployLimit)
				}
				supplies.Go(func() { p.supply(supplied) })
				if now.ReceivesUpdates || a.ServesContent { // a process of an older version does not report Updated
					supplies.Go(func() { p.relay(supplied) })
				}
			}
			if now.SendsRecords && !collecting {
				collecting = true
				supplies.Go(func() { p.collect(supplied) })
			}
			if digest := application.Digest(a.Configuration); now.Configured != digest {
				if refused.waits(digest) { // the generation counts as handled: it cannot be applied yet
					p.set(p.failureStatus(), generation, refused.reason)
					break
				}
				if err := p.configure(ctx, a.Configuration); err != nil {
					refused.note(digest, err.Error())
					p.set(p.failureStatus(), generation, err.Error())
					break
				}
				continue
			}
			p.evaluate(now, a, generation, time.Now().After(deadline))
		case ctx.Err() == nil:
			// A process that was taken over does not report its end, but nothing listens at its socket then.
			gone := errors.Is(err, syscall.ECONNREFUSED)
			if silent++; answered && gone || silent >= maxSilent && (answered || time.Now().After(deadline)) {
				p.terminate()
				return fmt.Errorf("it does not respond: %w", err)
			}
		}
		p.rotate()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-exited:
			if p.s.groups.oomKills(p.id) > starved {
				return fmt.Errorf("the system ended it because it used more memory than its limit of %d MiB", memoryOf(p.pid().Limits))
			}
			return fmt.Errorf("it ended (%s); the last line of its log: %s", describeEnd(err), p.lastLogLine())
		case <-p.changed:
			if p.pid().Limits != p.limits() {
				p.terminate()
				return errRestart
			}
			deadline = time.Now().Add(deployLimit)
		case <-tick.C:
		}
	}
}

// recordAnswer records whether the process answered, and its configuration and content.
func (p *process) recordAnswer(now application.Status, err error) {
	p.mu.Lock()
	moved := p.responds != (err == nil)
	if p.responds = err == nil; p.responds {
		moved = moved || p.content != now.Content
		p.configured, p.content, p.servesContent, p.engine = now.Configured, now.Content, now.ServesContent, now.Engine
	}
	p.mu.Unlock()
	if moved {
		p.s.changed()
	}
}

// refusedConfiguration is a configuration that an application refused. It is retried with growing pauses, up to 30 s.
type refusedConfiguration struct {
	digest string
	times  int
	next   time.Time
	reason string
}

func (r *refusedConfiguration) waits(digest string) bool {
	return r.digest == digest && time.Now().Before(r.next)
}

func (r *refusedConfiguration) note(digest, why string) {
	if r.digest != digest {
		*r = refusedConfiguration{digest: digest}
	}
	r.reason = why
	r.times++
	r.next = time.Now().Add(min(time.Second<<min(r.times, 5), 30*time.Second))
}

// describeEnd describes how a process ended.
func describeEnd(err error) string {
	if err == nil {
		return "by itself"
	}
	return err.Error()
}

// evaluate derives the application's status from an answer of its process.
func (p *process) evaluate(now application.Status, a checkin.DesiredApplication, generation int64, late bool) {
	p.mu.Lock()
	p.lastDiagnostics, p.version = now.Diagnostics, now.Version
	deploying := p.status == checkin.Deploying || p.status == checkin.DeployFailed
	late = late || p.status == checkin.DeployFailed && p.handled >= generation // after a failure it stays failed while it starts again
	refused := p.refused
	p.mu.Unlock()
	wrong := now.Conditions
	if refused != "" { // it continues to serve its previous content
		wrong = append(wrong, refused)
	}
	if a.Version != now.Version {
		wrong = append(wrong, fmt.Sprintf("version %s of %s is not on this service point; %s is", a.Version, a.Name, now.Version))
	}
	switch {
	case a.Version != now.Version && deploying:
		p.set(checkin.DeployFailed, generation, wrong...)
	case len(now.Conditions) == 0:
		p.set(checkin.Healthy, generation, wrong...)
	case deploying && !late:
		p.set(checkin.Deploying, generation, wrong...)
	default:
		p.set(p.failureStatus(), generation, wrong...)
	}
}

// errSlow reports a process that has not answered within slowAfter.
var errSlow = errors.New("it has not responded yet")

// pollStatus requests the status and records whether the process answers. After slowAfter it already records no answer, but still waits.
func (p *process) pollStatus(ctx context.Context) (application.Status, error) {
	noted := make(chan struct{})
	slow := time.AfterFunc(slowAfter, func() {
		defer close(noted)
		p.recordAnswer(application.Status{}, errSlow)
	})
	now, err := p.getStatus(ctx)
	if !slow.Stop() {
		<-noted // wait for it, or it would overwrite the newer record below
	}
	p.recordAnswer(now, err)
	return now, err
}

// getStatus requests the status of the process.
func (p *process) getStatus(ctx context.Context) (s application.Status, err error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://application"+application.StatusPath, nil)
	if err != nil {
		return s, err
	}
	rs, err := p.statusHTTP.Do(rq)
	if err != nil {
		return s, unwrapURL(err)
	}
	defer func() { _ = rs.Body.Close() }()
	return s, json.NewDecoder(io.LimitReader(rs.Body, maxAnswer)).Decode(&s)
}

// configure sends the process its configuration.
func (p *process) configure(ctx context.Context, configuration []byte) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://application"+application.ConfigurationPath,
		bytes.NewReader(configuration))
	if err != nil {
		return err
	}
	rs, err := p.configureHTTP.Do(rq)
	if err != nil {
		return fmt.Errorf("pass the configuration: %w", unwrapURL(err))
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusNoContent {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
	if err != nil {
		return err
	}
	return fmt.Errorf("apply the configuration: %s", bytes.TrimSpace(text))
}

// remove stops the process for good and removes its folder. It retries until ctx ends and reports whether it succeeded.
func (p *process) remove(ctx context.Context) bool {
	if p.stop != nil {
		p.stop()
		<-p.ended
	}
	p.terminate()
	for b := (backoff{}); ctx.Err() == nil; b.pause(ctx) {
		err := errors.Join(p.s.groups.remove(p.id), p.s.streams.forget(p.id), os.RemoveAll(filepath.Join(p.s.dir, contentFolder, p.id)),
			os.RemoveAll(filepath.Join(p.s.dir, dataFolder, p.id)))
		if err == nil { // the folder is removed last, because a restarted agent finds the application by it
			err = os.RemoveAll(p.folder)
		}
		if err == nil {
			p.log.Info("application removed")
			return true
		}
		p.log.Error("remove application folder failed", "error", err)
	}
	return false
}

// rotate moves the text of a log that reached maxLog to a second file, so that at most two files of that size exist.
func (p *process) rotate() {
	path := filepath.Join(p.folder, logFile)
	info, err := os.Stat(path)
	if err != nil || info.Size() < maxLog {
		return
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = (state{p.folder}).write(logFile+".1", text)
	}
	if err == nil {
		err = os.Truncate(path, 0) // the process writes in append mode
	}
	if err != nil {
		p.log.Error("rotate log failed", "error", err)
	}
}

// lastLogLine returns the last line of the log, cut to 500 bytes, or the error of reading it.
func (p *process) lastLogLine() string {
	text, err := os.ReadFile(filepath.Join(p.folder, logFile))
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	text = text[bytes.LastIndexByte(text, '\n')+1:]
	return string(text[:min(len(text), 500)])
}
