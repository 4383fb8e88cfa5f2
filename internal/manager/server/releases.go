package server

import (
	"sync"
	"time"

	"portolan/internal/wire/release"
)

// releases gives the releases that this manager has for service points.
func (m *Manager) releases() (release.State, error) {
	if m.options.Releases == "" {
		return release.State{}, release.ErrNone
	}
	return m.published.state()
}

// publishedReleases are the releases of a repository, which are read again when others were published.
type publishedReleases struct {
	repository release.Repository
	mu         sync.Mutex
	// mu guards the fields below. at is the publication time of the cached releases.
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
