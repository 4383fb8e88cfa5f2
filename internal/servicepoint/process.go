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

// process is one application, whether it runs just now or not.
type process struct {
	id, folder string
	s          *supervisor
	log        *slog.Logger
	// http asks how it is, slow gives it a configuration, bulky gives it content.
	http, slow, bulky *http.Client
	// changed has a token when something else is wanted. stop ends run, and ended is closed when it has returned; nil where it does not run.
	changed chan struct{}
	stop    context.CancelFunc
	ended   chan struct{}

	mu sync.Mutex
	// What follows is guarded by mu.
	wanted     checkin.DesiredApplication
	generation int64
	// handled is the generation that was put in force, or that could not be.
	handled int64
	// known says that status is what was seen, and not only what it was before the agent began.
	known   bool
	status  string
	version string
	wrong   []string
	told    json.RawMessage
	// configured names the configuration in force; responds says that it answered when it was last asked.
	configured string
	responds   bool
	// content names the content that it serves, contented says that it serves such, engine what answers in its place.
	content   string
	contented bool
	engine    string
	// refused is why it did not take the last content; empty where it did.
	refused string
	// ran says that the process has answered, down that it had ended by itself and does not run again yet.
	ran, down bool
}

// Times of a process.
const (
	pollEvery      = time.Second
	askLimit       = 3 * time.Second
	slowAnswer     = 700 * time.Millisecond // behind which a process does not answer, for who relies on it
	configureLimit = 30 * time.Second
	deployTime     = 30 * time.Second // from the start to the first time that it is well
	stopTime       = 5 * time.Second
	mostSilent     = 3 // questions in a row without an answer
)

// Files of an application's folder.
const (
	socketFile = "s"
	logFile    = "log"
	wellFile   = "well" // it has been healthy
	pidFile    = "pid"
	maxLog     = 1 << 20
)

// process makes one. It is called with s.mu held.
func (s *supervisor) process(a checkin.DesiredApplication, generation int64) *process {
	p := &process{id: a.ID, folder: filepath.Join(s.dir, applicationFolder, a.ID), s: s, log: s.log.With("application", a.ID, "name", a.Name),
		changed: make(chan struct{}, 1), wanted: a, generation: generation, status: checkin.Deploying,
		version: s.versions[a.Name], told: json.RawMessage("{}")}
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialIn(ctx, p.folder) }}
	p.http, p.slow = &http.Client{Timeout: askLimit, Transport: transport}, &http.Client{Timeout: configureLimit, Transport: transport}
	p.bulky = &http.Client{Timeout: contentLimit, Transport: transport}
	if _, err := os.Stat(filepath.Join(p.folder, wellFile)); err == nil { // it was deployed before
		p.status, p.wrong = checkin.Unhealthy, []string{"service is not healthy: it is being started"}
	}
	return p
}

// want asks for something else.
func (p *process) want(a checkin.DesiredApplication, generation int64) {
	p.mu.Lock()
	p.wanted, p.generation = a, generation
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *process) now() (a checkin.DesiredApplication, generation int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted, p.generation
}

// report gives how it is, and the generation that was handled; known is false where nothing has been seen of it yet.
func (p *process) report() (a checkin.Application, handled int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return checkin.Application{ID: p.id, Name: p.wanted.Name, Version: p.version, Status: p.status,
		ErrorConditions: append([]string{}, p.wrong...), Content: p.content,
		Contented: p.contented, Engine: p.engine}, p.handled, p.known
}

func (p *process) diagnostics() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// set notes how it is, and that a generation was handled.
func (p *process) set(status string, handled int64, wrong ...string) {
	wrong = slices.Clone(wrong[:min(len(wrong), mostConditions)])
	for i, text := range wrong {
		wrong[i] = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), longestCondition)], ""), "\x00", "")
	}
	p.mu.Lock()
	moved := !p.known || p.status != status || handled > p.handled || fmt.Sprint(p.wrong) != fmt.Sprint(wrong)
	p.known, p.status, p.wrong, p.handled = true, status, wrong, max(p.handled, handled)
	p.mu.Unlock()
	if !moved {
		return
	}
	p.log.Info("an application is", "status", status, "conditions", wrong)
	if status == checkin.Healthy {
		if err := (state{p.folder}).write(wellFile, nil); err != nil {
			p.log.Error("noting that it is well", "error", err)
		}
	}
	p.s.moved()
}

// What is reported of one application: how many conditions, and how many bytes of each. A manager takes no longer reports than 64 KiB.
const (
	mostConditions   = 20
	longestCondition = 500
)

// failing is the status of what does not work: it depends on whether it ever did.
func (p *process) failing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == checkin.Healthy || p.status == checkin.Unhealthy {
		return checkin.Unhealthy
	}
	return checkin.DeployFailed
}

// start begins to run. It is called once, with s.mu held.
func (p *process) start() {
	ctx, stop := context.WithCancel(p.s.ctx)
	p.stop, p.ended = stop, make(chan struct{})
	p.s.group.Go(func() {
		defer close(p.ended)
		p.run(ctx)
	})
}

// run keeps the application running until ctx ends, then ends its process, unless another agent is about to take it over.
func (p *process) run(ctx context.Context) {
	for b := (backoff{}); ctx.Err() == nil; {
		a, generation := p.now()
		began := time.Now()
		err := p.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		p.noteAnswer(application.Status{}, err)
		if errors.Is(err, errAnew) {
			continue
		}
		p.noteEnd(true, err.Error())
		if time.Since(began) > deployTime {
			b = backoff{}
		}
		p.set(p.failing(), generation, fmt.Sprintf("service is not healthy: %s %s: %v", a.Name, a.Version, err))
		p.wait(ctx, &b)
	}
	if !errors.Is(context.Cause(p.s.ctx), ErrSwitch) {
		p.end()
	}
}

// wait waits before the next start, or until something else is wanted.
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

// errAnew ends a process that is to be started anew, by other limits.
var errAnew = errors.New("it is to be started anew")

// serve starts the process, or takes over the one that runs, and watches it until it is of no use any more.
func (p *process) serve(ctx context.Context) error {
	a, _ := p.now()
	version, ok := p.s.versions[a.Name]
	if !ok {
		return fmt.Errorf("this service point has no application %q", a.Name)
	}
	if a.Version != version && p.failing() == checkin.DeployFailed { // it never ran
		return fmt.Errorf("version %s of %s is not on this service point; %s is", a.Version, a.Name, version)
	}
	exited, answered, err := p.begin(ctx, a.Name, version)
	if err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.Now().Add(deployTime)
	starved := p.s.groups.starved(p.id)
	refused := refusedOnce{}
	supplied, stop := context.WithCancel(ctx)
	var supplies sync.WaitGroup
	defer supplies.Wait()
	defer stop()
	supplying, collecting := false, false
	for silent := 0; ; {
		now, err := p.askNoting(ctx)
		switch {
		case err == nil:
			silent, answered = 0, true
			p.noteEnd(false, "")
			a, generation := p.now()
			if (now.Contented || a.Contented) && !supplying {
				if supplying = true; now.Configured == "" && !a.Contented {
					p.refill(ctx, now)
					deadline = time.Now().Add(deployTime)
				}
				supplies.Go(func() { p.supply(supplied) })
				if now.Updated || a.Contented { // a process that an older version began does not say
					supplies.Go(func() { p.relay(supplied) })
				}
			}
			if now.Telling && !collecting {
				collecting = true
				supplies.Go(func() { p.collect(supplied) })
			}
			if digest := application.Digest(a.Configuration); now.Configured != digest {
				if refused.waits(digest) { // what is asked for is handled: it cannot be had yet
					p.set(p.failing(), generation, refused.why)
					break
				}
				if err := p.configure(ctx, a.Configuration); err != nil {
					refused.note(digest, err.Error())
					p.set(p.failing(), generation, err.Error())
					break
				}
				continue
			}
			p.judge(now, a, generation, time.Now().After(deadline))
		case ctx.Err() == nil:
			// One that was taken over has no end that is told; nobody listens at its socket then.
			gone := errors.Is(err, syscall.ECONNREFUSED)
			if silent++; answered && gone || silent >= mostSilent && (answered || time.Now().After(deadline)) {
				p.end()
				return fmt.Errorf("it does not answer: %w", err)
			}
		}
		p.rotate()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-exited:
			if p.s.groups.starved(p.id) > starved {
				return fmt.Errorf("it was ended by the system, because it took more than its limit of %d MiB of memory", memoryOf(p.pid().Limits))
			}
			return fmt.Errorf("it ended (%s); its log says: %s", ending(err), p.lastWords())
		case <-p.changed:
			if p.pid().Limits != p.limits() {
				p.end()
				return errAnew
			}
			deadline = time.Now().Add(deployTime)
		case <-tick.C:
		}
	}
}

// noteAnswer notes whether the process answers, and what it has in force.
func (p *process) noteAnswer(now application.Status, err error) {
	p.mu.Lock()
	moved := p.responds != (err == nil)
	if p.responds = err == nil; p.responds {
		moved = moved || p.content != now.Content
		p.configured, p.content, p.contented, p.engine = now.Configured, now.Content, now.Contented, now.Engine
	}
	p.mu.Unlock()
	if moved {
		p.s.moved()
	}
}

// refusedOnce is a configuration that an application did not take: it is tried again, less and less often.
type refusedOnce struct {
	digest string
	times  int
	next   time.Time
	why    string
}

func (r *refusedOnce) waits(digest string) bool {
	return r.digest == digest && time.Now().Before(r.next)
}

func (r *refusedOnce) note(digest, why string) {
	if r.digest != digest {
		*r = refusedOnce{digest: digest}
	}
	r.why = why
	r.times++
	r.next = time.Now().Add(min(time.Second<<min(r.times, 5), 30*time.Second))
}

// ending words how a process ended.
func ending(err error) string {
	if err == nil {
		return "by itself"
	}
	return err.Error()
}

// judge says how a process is that has answered.
func (p *process) judge(now application.Status, a checkin.DesiredApplication, generation int64, late bool) {
	p.mu.Lock()
	p.told, p.version = now.Diagnostics, now.Version
	deploying := p.status == checkin.Deploying || p.status == checkin.DeployFailed
	late = late || p.status == checkin.DeployFailed && p.handled >= generation // it is no news that it does not work
	refused := p.refused
	p.mu.Unlock()
	wrong := now.Conditions
	if refused != "" { // what it served before it serves on
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
		p.set(p.failing(), generation, wrong...)
	}
}

// errSlow is a process that takes its time to answer.
var errSlow = errors.New("it has not answered yet")

// askNoting asks the process how it is, and notes whether it answers: at once when it is slow, though it is waited for.
func (p *process) askNoting(ctx context.Context) (application.Status, error) {
	noted := make(chan struct{})
	slow := time.AfterFunc(slowAnswer, func() {
		defer close(noted)
		p.noteAnswer(application.Status{}, errSlow)
	})
	now, err := p.ask(ctx)
	if !slow.Stop() {
		<-noted // or it would come behind what is noted now
	}
	p.noteAnswer(now, err)
	return now, err
}

// ask asks the process how it is.
func (p *process) ask(ctx context.Context) (s application.Status, err error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://application"+application.StatusPath, nil)
	if err != nil {
		return s, err
	}
	rs, err := p.http.Do(rq)
	if err != nil {
		return s, unwrapURL(err)
	}
	defer func() { _ = rs.Body.Close() }()
	return s, json.NewDecoder(io.LimitReader(rs.Body, maxAnswer)).Decode(&s)
}

// configure gives the process its configuration.
func (p *process) configure(ctx context.Context, configuration []byte) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://application"+application.ConfigurationPath,
		bytes.NewReader(configuration))
	if err != nil {
		return err
	}
	rs, err := p.slow.Do(rq)
	if err != nil {
		return fmt.Errorf("the configuration could not be given: %w", unwrapURL(err))
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusNoContent {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
	if err != nil {
		return err
	}
	return fmt.Errorf("the configuration could not be put in force: %s", bytes.TrimSpace(text))
}

// remove ends the process for good and removes its folder; it reports whether that is done.
func (p *process) remove(ctx context.Context) bool {
	if p.stop != nil {
		p.stop()
		<-p.ended
	}
	p.end()
	for b := (backoff{}); ctx.Err() == nil; b.pause(ctx) {
		err := errors.Join(p.s.groups.end(p.id), p.s.streams.forget(p.id), os.RemoveAll(filepath.Join(p.s.dir, contentFolder, p.id)))
		if err == nil { // last: by its folder it is found again
			err = os.RemoveAll(p.folder)
		}
		if err == nil {
			p.log.Info("an application was removed")
			return true
		}
		p.log.Error("removing an application's folder", "error", err)
	}
	return false
}

// rotate keeps the log within bounds: one that is full, and one that grows.
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
		err = os.Truncate(path, 0) // it is written by appending
	}
	if err != nil {
		p.log.Error("rotating a log", "error", err)
	}
}

// lastWords gives the last line of the log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(filepath.Join(p.folder, logFile))
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	text = text[bytes.LastIndexByte(text, '\n')+1:]
	return string(text[:min(len(text), 500)])
}
