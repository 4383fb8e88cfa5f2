package servicepoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// supervisor runs the applications of the desired state. Each application has its own process and its own folder below application/. The
// supervisor starts from the desired state on the disk, so it needs no manager.
type supervisor struct {
	dir string
	// program is the command that runs an application; the application's name is appended. versions maps the names of available applications
	// to their versions.
	program  []string
	versions map[string]string
	// stateful is Options.Stateful.
	stateful []string
	// groups are the control groups of applications; nil if they are not available.
	groups *groups
	log    *slog.Logger
	// changed is called when reported data may have changed.
	changed func()
	// closesConnections closes each connection to an application after its request: virtual time does not pass while one is open.
	closesConnections bool
	// driving is Options.Driving, and namespaces Options.Namespaces.
	driving    map[string][]string
	namespaces map[string]string
	// proxy contains the environment variables with the HTTP proxy for applications.
	proxy []string
	// decide sends a dynamic update of an application to the manager and returns the manager's decision.
	decide func(ctx context.Context, one application.Update) (application.UpdateAnswer, error)
	// fetch writes the content stream from a revision to the current one.
	fetch func(ctx context.Context, application, from string, to io.Writer) error
	// streams store and send the records of applications.
	streams *streams
	// ctx ends with the cause ErrSwitch if processes must keep running, because another agent will take them over.
	ctx   context.Context
	group sync.WaitGroup
	// isDesiredUnknown reports that the desired state could not be read. Only the goroutine that calls start and apply uses it, before any
	// process leaves.
	isDesiredUnknown bool

	mu sync.Mutex
	// The following fields are guarded by mu. wanted is the desired state.
	wanted checkin.Desired
	// applied is closed and replaced when the desired state changes.
	applied   chan struct{}
	processes map[string]*process
	// removing are the processes that are being removed, by id.
	removing map[string]*process
}

const (
	desiredFile       = "desired.json"
	applicationFolder = "application"
)

// loadDesired reads the desired state; the zero value if the service point has not received one yet.
func (s state) loadDesired() (d checkin.Desired, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, desiredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read the desired state: %w", err)
	}
	return d, nil
}

func (s state) saveDesired(d *checkin.Desired) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.write(desiredFile, text)
}

// start applies the desired state from the disk. Processes that a killed agent left are taken over or stopped. If the state is not known,
// running processes continue until the manager sends the state.
func (s *supervisor) start(d checkin.Desired, known bool) {
	s.isDesiredUnknown = !known
	if known {
		s.removeOthers(d)
		s.apply(d)
	}
}

// removeOthers stops and removes applications that have a folder but are not in the desired state.
func (s *supervisor) removeOthers(d checkin.Desired) {
	folders, err := os.ReadDir(filepath.Join(s.dir, applicationFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("read application folders failed", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range folders {
		if !slices.ContainsFunc(d.Applications, func(a checkin.DesiredApplication) bool { return a.ID == f.Name() }) {
			s.startRemoval(s.process(checkin.DesiredApplication{ID: f.Name()}, 0))
		}
	}
}

// apply applies another desired state.
func (s *supervisor) apply(d checkin.Desired) {
	if s.isDesiredUnknown {
		s.isDesiredUnknown = false
		s.removeOthers(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = d
	close(s.applied)
	s.applied = make(chan struct{})
	s.reconcile()
}

// isDesired reports whether an application of this name is in the desired state. changed is closed when the desired state changes.
func (s *supervisor) isDesired(name string) (yes bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.wanted.Applications, func(a checkin.DesiredApplication) bool { return a.Name == name }), s.applied
}

// desiredState returns the desired state. The caller must not change it.
func (s *supervisor) desiredState() checkin.Desired {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// isHealthy reports whether an application was healthy and responding at its last status request.
func (s *supervisor) isHealthy(id string) bool {
	s.mu.Lock()
	p, ok := s.processes[id]
	s.mu.Unlock()
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known && p.responds && p.status == checkin.Healthy
}

// desiredRelease returns the version of the Portolan release in the desired state; empty if none is requested.
func (s *supervisor) desiredRelease() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted.Update == nil {
		return ""
	}
	return s.wanted.Update.Version
}

// configured returns the digest of the configuration in use by an application. responds reports whether its last status request was
// answered.
func (s *supervisor) configured(id string) string { text, _ := s.lastAnswer(id); return text }
func (s *supervisor) responds(id string) bool     { _, yes := s.lastAnswer(id); return yes }

func (s *supervisor) lastAnswer(id string) (configured string, responds bool) {
	s.mu.Lock()
	p, ok := s.processes[id]
	s.mu.Unlock()
	if !ok {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.configured, p.responds
}

// reconcile starts missing applications, updates running ones and removes those that are not wanted. The caller holds mu.
func (s *supervisor) reconcile() {
	d := s.wanted
	gone := maps.Clone(s.processes)
	for _, a := range d.Applications {
		if !validID(a.ID) { // the id names a folder
			s.log.Error("application with invalid id ignored", "id", a.ID)
			continue
		}
		if p, ok := s.processes[a.ID]; ok {
			delete(gone, a.ID)
			p.setDesired(a, d.Generation)
			continue
		}
		if _, ok := s.removing[a.ID]; ok { // it starts after its old process has been removed
			continue
		}
		p := s.process(a, d.Generation)
		s.processes[a.ID] = p
		p.start()
	}
	for id, p := range gone {
		delete(s.processes, id)
		s.startRemoval(p)
	}
}

// validID reports whether an id can name a folder.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, r := range id {
		if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}

// startRemoval stops a process for good and removes its folder in the background. The caller holds mu.
func (s *supervisor) startRemoval(p *process) {
	s.removing[p.id] = p
	s.group.Go(func() {
		if !p.remove(s.ctx) {
			return
		}
		s.mu.Lock()
		delete(s.removing, p.id)
		s.reconcile() // it may be wanted again meanwhile
		s.mu.Unlock()
		s.changed()
	})
}

// report returns the generation that all applications have handled, and the applications.
func (s *supervisor) report() (applied int64, all []checkin.Application) {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied = s.wanted.Generation
	for _, a := range s.wanted.Applications {
		if _, ok := s.processes[a.ID]; !ok && validID(a.ID) {
			applied = min(applied, s.wanted.Generation-1)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.processes)) {
		a, handled, known := s.processes[id].report()
		applied = min(applied, handled)
		if known {
			all = append(all, a)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.removing)) {
		a, _, _ := s.removing[id].report()
		applied = min(applied, s.wanted.Generation-1)
		all = append(all, a)
	}
	return max(0, applied), all
}

// unhealthy returns the ids of the applications that are not healthy.
func (s *supervisor) unhealthy() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wanted := range s.wanted.Applications {
		if p, ok := s.processes[wanted.ID]; ok {
			if a, _, known := p.report(); !known || a.Status != checkin.Healthy {
				ids = append(ids, wanted.ID)
			}
		}
	}
	return ids
}

// describeUnhealthy describes the first application that is not healthy and not listed in but; empty if there is none.
func (s *supervisor) describeUnhealthy(but []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wanted := range s.wanted.Applications {
		p, ok := s.processes[wanted.ID]
		if !ok || slices.Contains(but, wanted.ID) {
			continue
		}
		a, _, known := p.report()
		if !known {
			return fmt.Sprintf("the state of application %s, %s, is unknown", wanted.Name, wanted.ID)
		}
		if a.Status != checkin.Healthy {
			return fmt.Sprintf("application %s, %s, is %s: %s", wanted.Name, wanted.ID, a.Status, strings.Join(a.ErrorConditions, "; "))
		}
	}
	return ""
}

// pendingChange returns the version that an application must change to, and the stage of its change or deletion; empty if it is
// unchanged.
func (s *supervisor) pendingChange(one checkin.Application) (version, stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.wanted.Applications, func(a checkin.DesiredApplication) bool { return a.ID == one.ID })
	switch {
	case i < 0:
		return "", checkin.DeleteRunning
	case s.wanted.Applications[i].Version != one.Version:
		return s.wanted.Applications[i].Version, checkin.ApplicationUpdating
	}
	return "", ""
}

// title returns the name that users gave an application; empty if they gave none.
func (s *supervisor) title(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.wanted.Applications {
		if a.ID == id {
			return a.Title
		}
	}
	return ""
}

// tail returns the last bytes of an application's log.
func (s *supervisor) tail(id string, bytes int) ([]byte, error) {
	s.mu.Lock()
	p, ok := s.processes[id]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("application %q does not run", id)
	}
	return p.tail(bytes)
}

// diagnostics returns the diagnostics of a process; an empty object if there are none.
func (s *supervisor) diagnostics(id string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.processes[id]; ok {
		return p.diagnostics()
	}
	return json.RawMessage("{}")
}
