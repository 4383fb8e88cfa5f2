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

// supervisor runs what the service point is to run: each application in a process of its own, in a folder of its own below
// application/. It begins with what is on the disk, and needs no manager.
type supervisor struct {
	dir string
	// program is the command that runs an application, its name behind it; versions are those that it has, by name.
	program  []string
	versions map[string]string
	// groups are the control groups of applications; nil where there are none.
	groups *groups
	log    *slog.Logger
	// moved is called when something of what is reported may have changed.
	moved func()
	// driving is that of Options.
	driving map[string][]string
	// proxy is the environment that tells applications of the proxy.
	proxy []string
	// decide has the manager decide on an update of what an application serves.
	decide func(ctx context.Context, one application.Update) (application.UpdateAnswer, error)
	// fetch writes what leads from a revision of content to the one that is to be served.
	fetch func(ctx context.Context, application, from string, to io.Writer) error
	// streams take the records of applications.
	streams *streams
	// ctx ends with the cause ErrSwitch where processes are to run on: another agent is about to take them over.
	ctx   context.Context
	group sync.WaitGroup
	// unknown says that it is not known what is to run. It belongs to who calls start and then apply, before anything leaves.
	unknown bool

	mu sync.Mutex
	// What follows is guarded by mu. wanted is what is to run.
	wanted checkin.Desired
	// applied is closed, and made anew, when another state is to run.
	applied   chan struct{}
	processes map[string]*process
	// leaving are those that end, by id.
	leaving map[string]*process
}

const (
	desiredFile       = "desired.json"
	applicationFolder = "application"
)

// loadDesired reads what the service point is to run; the zero state where it has been told nothing yet.
func (s state) loadDesired() (d checkin.Desired, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, desiredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("reading what is to run: %w", err)
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

// start begins to run what is on the disk. Processes of an agent that was killed are taken over, or ended. Where it is not known what is
// to run, what runs goes on until the manager says.
func (s *supervisor) start(d checkin.Desired, known bool) {
	s.unknown = !known
	if known {
		s.endOthers(d)
		s.apply(d)
	}
}

// endOthers ends what runs, or has a folder, and is not to run.
func (s *supervisor) endOthers(d checkin.Desired) {
	folders, err := os.ReadDir(filepath.Join(s.dir, applicationFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("reading the folders of applications", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range folders {
		if !slices.ContainsFunc(d.Applications, func(a checkin.DesiredApplication) bool { return a.ID == f.Name() }) {
			s.leave(s.process(checkin.DesiredApplication{ID: f.Name()}, 0))
		}
	}
}

// apply puts another state in force.
func (s *supervisor) apply(d checkin.Desired) {
	if s.unknown {
		s.unknown = false
		s.endOthers(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = d
	close(s.applied)
	s.applied = make(chan struct{})
	s.reconcile()
}

// isToRun reports whether an application of a name is to run, and gives what is closed when another state is.
func (s *supervisor) isToRun(name string) (yes bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.wanted.Applications, func(a checkin.DesiredApplication) bool { return a.Name == name }), s.applied
}

// toRun gives what is to run, which is not to be changed.
func (s *supervisor) toRun() checkin.Desired {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// isHealthy reports whether an application was well when it was last asked.
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

// release gives the release of Portolan that is to run; empty where none was asked for.
func (s *supervisor) release() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted.Update == nil {
		return ""
	}
	return s.wanted.Update.Version
}

// configured names the configuration that an application has in force, and responds reports whether it answered when it was last asked.
func (s *supervisor) configured(id string) string { text, _ := s.answer(id); return text }
func (s *supervisor) responds(id string) bool     { _, yes := s.answer(id); return yes }

func (s *supervisor) answer(id string) (configured string, responds bool) {
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

// reconcile starts what is wanted and does not run, and ends what runs and is not wanted. It is called with mu held.
func (s *supervisor) reconcile() {
	d := s.wanted
	gone := maps.Clone(s.processes)
	for _, a := range d.Applications {
		if !validID(a.ID) { // it names a folder
			s.log.Error("an application without a proper id is left out", "id", a.ID)
			continue
		}
		if p, ok := s.processes[a.ID]; ok {
			delete(gone, a.ID)
			p.want(a, d.Generation)
			continue
		}
		if _, ok := s.leaving[a.ID]; ok { // it begins when the other one has gone
			continue
		}
		p := s.process(a, d.Generation)
		s.processes[a.ID] = p
		p.start()
	}
	for id, p := range gone {
		delete(s.processes, id)
		s.leave(p)
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

// leave ends a process for good, and removes its folder. It is called with mu held.
func (s *supervisor) leave(p *process) {
	s.leaving[p.id] = p
	s.group.Go(func() {
		if !p.remove(s.ctx) {
			return
		}
		s.mu.Lock()
		delete(s.leaving, p.id)
		s.reconcile() // it may be wanted again
		s.mu.Unlock()
		s.moved()
	})
}

// report gives the generation that is in force, and what runs.
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
	for _, id := range slices.Sorted(maps.Keys(s.leaving)) {
		a, _, _ := s.leaving[id].report()
		applied = min(applied, s.wanted.Generation-1)
		all = append(all, a)
	}
	return max(0, applied), all
}

// unwell gives the ids of the applications that are not healthy.
func (s *supervisor) unwell() (ids []string) {
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

// waiting names an application that is not healthy, those left out that are named by their ids; empty where there is none.
func (s *supervisor) waiting(but []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wanted := range s.wanted.Applications {
		p, ok := s.processes[wanted.ID]
		if !ok || slices.Contains(but, wanted.ID) {
			continue
		}
		a, _, known := p.report()
		if !known {
			return fmt.Sprintf("nothing is known of application %s, %s", wanted.Name, wanted.ID)
		}
		if a.Status != checkin.Healthy {
			return fmt.Sprintf("application %s, %s, is %s: %s", wanted.Name, wanted.ID, a.Status, strings.Join(a.ErrorConditions, "; "))
		}
	}
	return ""
}

// underWay gives the version that an application is to have and has not, and what is under way with it; empty texts where nothing is.
func (s *supervisor) underWay(one checkin.Application) (version, stage string) {
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

// title gives what users call an application; empty where they have not said.
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

// tail gives the end of an application's log.
func (s *supervisor) tail(id string, bytes int) ([]byte, error) {
	s.mu.Lock()
	p, ok := s.processes[id]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("application %q does not run", id)
	}
	return p.tail(bytes)
}

// diagnostics gives a process's own; an empty object where it has given none.
func (s *supervisor) diagnostics(id string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.processes[id]; ok {
		return p.diagnostics()
	}
	return json.RawMessage("{}")
}
