package server

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/release"
)

// labelParameter is the query parameter that names a label: NAME, or NAME:VALUE, or NAME=VALUE.
const labelParameter = "label"

// listInstances lists the service points that the query names: name as published, the other fields are ours.
func (m *Manager) listInstances(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	var f fleet.Filter
	names := fleet.FilterNames()
	for _, name := range names {
		switch values := query[name]; {
		case len(values) > 1:
			return problem.Query(name, "is given %d times", len(values))
		case len(values) == 1:
			if err := f.Set(name, values[0]); err != nil {
				return err
			}
		}
	}
	for _, text := range query[labelParameter] {
		name, value := text, "" // a label has neither in its name
		if at := strings.IndexAny(text, ":="); at >= 0 {
			name, value = text[:at], text[at+1:]
		}
		if _, twice := f.Labels[name]; twice {
			return problem.Query(labelParameter, "%s is given twice", name)
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	limit, err := listLimit(query)
	if err != nil {
		return err
	}
	rest.Note(w, r, nil, append(names, labelParameter, limitParameter)...)
	if l := limitsOf(r.Context()); l != nil {
		for _, s := range l.scopes {
			f.Within = append(f.Within, s.Labels)
		}
	}
	list := newList(w)
	left := limit
	err = m.Fleet.Show(r.Context(), f, func(text []byte) error {
		if left--; limit > 0 && left < 0 {
			return errListEnds
		}
		return list.addText(text)
	})
	if errors.Is(err, errListEnds) {
		err = nil
	}
	if err != nil && !list.begun { // else the answer breaks off, which its reader notices
		return err
	}
	return list.end(err)
}

// limitParameter is how many service points a list has at most (ours); without it the list has all of them, as published.
const limitParameter = "limit"

// errListEnds ends a list that has as many as were asked for.
var errListEnds = errors.New("enough")

// listLimit reads it; 0 where it is not given.
func listLimit(query url.Values) (int, error) {
	values := query[limitParameter]
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n < 1 || len(values) > 1 {
		return 0, problem.Query(limitParameter, "must be one whole number, 1 or more")
	}
	return n, nil
}

func (m *Manager) getInstance(w http.ResponseWriter, r *http.Request) error {
	i, err := m.Fleet.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, i)
	return nil
}

// modifyInstance changes a service point (ours).
func (m *Manager) modifyInstance(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.SmallBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "name", "description", "targetVersion")
	if err != nil {
		return err
	}
	rest.Note(w, r, members, "name", "description", "targetVersion", "labels", "anycast", "nodeCount")
	c := fleet.InstanceChange{Name: given(values, "name"), Description: given(values, "description"),
		TargetVersion: given(values, "targetVersion")}
	if string(members["name"]) == "null" {
		return problem.Invalid("name", "must not be null")
	}
	none := ""
	for name, field := range map[string]**string{"description": &c.Description, "targetVersion": &c.TargetVersion} {
		if string(members[name]) == "null" {
			*field = &none
		}
	}
	l := limitsOf(r.Context())
	if _, ok := members["labels"]; ok && l != nil {
		return problem.Forbidden("AccessDenied", "labels: they say whose a service point is: administrators change them")
	}
	if _, ok := members["nodeCount"]; ok && l != nil && l.level < authz.Full {
		return problem.Forbidden("AccessDenied", "nodeCount: takes FULL at this service point (fleetRights)")
	}
	if raw, ok := members["labels"]; ok {
		if json.Unmarshal(raw, &c.Labels) != nil || c.Labels == nil {
			return problem.Invalid("labels", "must be an object of texts; null takes a label away")
		}
	}
	if raw, ok := members["nodeCount"]; ok {
		if json.Unmarshal(raw, &c.NodeCount) != nil || c.NodeCount == nil {
			return problem.Invalid("nodeCount", "must be a whole number")
		}
	}
	if raw, ok := members["anycast"]; ok {
		c.Anycast = &fleet.AnycastChange{}
		if err := strictly("anycast", raw, &c.Anycast.Settings); err != nil {
			return err
		}
	}
	err = m.Fleet.Modify(r.Context(), r.PathValue("id"), c)
	if p, ok := problem.As(err); ok && l != nil && p.Code == "ResourceAlreadyExists" { // whose it is may not be seen
		return problem.Conflict("ResourceAlreadyExists", "name: %q is taken", values["name"])
	}
	if err != nil {
		return err
	}
	return m.getInstance(w, r)
}

func (m *Manager) deleteInstance(w http.ResponseWriter, r *http.Request) error {
	if err := m.Fleet.Delete(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// rekeyInstance gives a service point a new registration key (ours).
func (m *Manager) rekeyInstance(w http.ResponseWriter, r *http.Request) error {
	created, err := m.Fleet.Rekey(r.Context(), r.PathValue("id"), m.RegistrationEndpoint())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, created)
	return nil
}

// addNode lets a service point have one node more (ours).
func (m *Manager) addNode(w http.ResponseWriter, r *http.Request) error {
	created, err := m.Fleet.AddNode(r.Context(), r.PathValue("id"), m.RegistrationEndpoint())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, created)
	return nil
}

// removeNode takes a node away (ours).
func (m *Manager) removeNode(w http.ResponseWriter, r *http.Request) error {
	if err := m.Fleet.RemoveNode(r.Context(), r.PathValue("id"), r.PathValue("node")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

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
	// What follows is guarded by mu. at says when what is known was published.
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

// listReleases lists them (ours).
func (m *Manager) listReleases(w http.ResponseWriter, _ *http.Request) error {
	s, err := m.releases()
	if err != nil && !errors.Is(err, release.ErrNone) {
		m.log.Error("the releases cannot be read", "reason", err)
		return problem.Conflict("ReleasesUnreadable", "the releases of this manager cannot be read; its log says why")
	}
	answer := struct {
		Data []release.Release `json:"data"`
		// Expires is until when service points take them; null where there are none.
		Expires *string `json:"expires"`
	}{Data: append([]release.Release{}, s.Releases...)}
	if err == nil {
		text := s.Expires.UTC().Format(time.RFC3339)
		answer.Expires = &text
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// releaseTime is how long a file of the releases may take.
const releaseTime = time.Hour

// serveRelease gives a file of the releases to a service point.
func (m *Manager) serveRelease(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return wrongMethod(w, r, http.MethodGet, http.MethodHead)
	}
	if len(r.TLS.PeerCertificates) == 0 {
		return errNoCertificate
	}
	if err := m.Fleet.Know(r.Context(), r.TLS.PeerCertificates[0]); err != nil {
		return err
	}
	if m.options.Releases == "" {
		return problem.NotFound("this manager has no releases")
	}
	f, err := release.Repository{Dir: m.options.Releases}.Open(strings.TrimPrefix(r.URL.Path, release.Path))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.log.WarnContext(r.Context(), "a file of the releases cannot be given", "path", r.URL.Path, "reason", err)
		}
		return problem.NotFound("there is no such file")
	}
	// A program over a slow line takes longer than other answers.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(releaseTime)); err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}
