package server

import (
	"sync"
	"time"

	"portolan/internal/wire/release"
)

// releases returns the releases that this manager has for service points.
func (m *Manager) releases() (release.State, error) {
	if m.options.Releases == "" {
		return release.State{}, release.ErrNone
	}
	return m.published.state()
}

// publishedReleases caches the releases of a repository until others are published.
type publishedReleases struct {
	repository release.Repository
	mu         sync.Mutex
	// The following fields are guarded by mu. at is the time at which known was published.
	at    time.Time
	known release.State
}

func (p *publishedReleases) state() (release.State, error) {
	at, err := p.repository.Published()
	if err != nil {
		return release.State{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.Equal(at) {
		return p.known, nil
	}
	s, err := p.repository.State()
	if err == nil {
		p.at, p.known = at, s
	}
	return s, err
}
