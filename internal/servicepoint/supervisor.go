package servicepoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"portolan/internal/checkin"
)

// supervisor runs what the service point is to run: each application in a process of its own, in a folder of its own below
// application/. It begins with what is on the disk, and needs no manager.
type supervisor struct {
	dir string
	// program is the command that runs an application, its name behind it; versions are those that it has, by name.
	program  []string
	versions map[string]string
	log      *slog.Logger
	// moved is called when something of what is reported may have changed.
	moved func()
	ctx   context.Context
	group sync.WaitGroup

	mu sync.Mutex
	// What follows is guarded by mu. applied is the generation that is in force; wanted is the one to come.
	wanted    checkin.Desired
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

// start begins to run what is on the disk. Processes of an agent that was killed are taken over, or ended.
func (s *supervisor) start(d checkin.Desired) {
	folders, err := os.ReadDir(filepath.Join(s.dir, applicationFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("reading the folders of applications", "error", err)
	}
	s.mu.Lock()
	for _, f := range folders {
		if !slices.ContainsFunc(d.Applications, func(a checkin.DesiredApplication) bool { return a.ID == f.Name() }) {
			s.leave(s.process(checkin.DesiredApplication{ID: f.Name()}, 0))
		}
	}
	s.mu.Unlock()
	s.apply(d)
}

// apply puts another state in force.
func (s *supervisor) apply(d checkin.Desired) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = d
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
		s.mu.Unlock()
		s.moved()
	})
}

// report gives the generation that is in force, and what runs.
func (s *supervisor) report() (applied int64, all []checkin.Application) {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied = s.wanted.Generation
	for _, id := range slices.Sorted(maps.Keys(s.processes)) {
		a, handled := s.processes[id].report()
		applied = min(applied, handled)
		all = append(all, a)
	}
	for _, id := range slices.Sorted(maps.Keys(s.leaving)) {
		a, _ := s.leaving[id].report()
		applied = min(applied, s.wanted.Generation-1)
		all = append(all, a)
	}
	return max(0, applied), all
}

// diagnostics gives the processes' own, in the order of report.
func (s *supervisor) diagnostics() (all []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, processes := range []map[string]*process{s.processes, s.leaving} {
		for _, id := range slices.Sorted(maps.Keys(processes)) {
			all = append(all, processes[id].diagnostics())
		}
	}
	return all
}
