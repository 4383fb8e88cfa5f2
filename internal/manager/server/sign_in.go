package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/identity"
)

// listProviders tells anybody by whom people can sign in in a browser.
func (m *Manager) listProviders(w http.ResponseWriter, r *http.Request) error {
	list, err := m.Identity.Providers(r.Context())
	if err == nil {
		writeJSON(w, http.StatusOK, map[string]any{"data": append([]identity.Provider{}, list...)})
	}
	return err
}

// sendTo sends a browser to a provider. Who is refused comes to the console's page, which says why.
func (m *Manager) sendTo(w http.ResponseWriter, r *http.Request) error {
	id, err := providerOf(r)
	to := ""
	if err == nil {
		to, err = m.Identity.SendTo(w, r, id)
	}
	return toConsole(w, r, to, err)
}

// comeBack signs in who comes back from a provider.
func (m *Manager) comeBack(w http.ResponseWriter, r *http.Request) error {
	id, err := providerOf(r)
	if err == nil {
		err = m.Identity.ComeBack(w, r, id)
	}
	return toConsole(w, r, "/", err)
}

// providerOf gives the provider that a path names.
func providerOf(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, problem.NotFound("there is nothing at %s", r.URL.Path)
	}
	return id, nil
}

// toConsole sends a browser on, or to the sign-in page with the code of what was refused.
func toConsole(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if p, ok := problem.As(err); ok {
		to, err = "/#refused="+url.QueryEscape(p.Code), nil
	}
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // to a page of our own, or where the provider says that people are sent
	}
	return err
}

// samlRoutes are the paths that identity providers and the browsers that they send know (docs/sign-in.md).
func (m *Manager) samlRoutes(mux *routes) {
	mux.Handle(authn.SAMLMetadataPath, m.plain("console", func(w http.ResponseWriter, r *http.Request) error {
		metadata, err := m.Identity.SAMLMetadata(r.Context())
		if err == nil {
			w.Header().Set("Content-Type", "application/samlmetadata+xml")
			_, err = w.Write(metadata)
		}
		return err
	}))
	mux.Handle(authn.SAMLConsumePath, m.handle("console", func(w http.ResponseWriter, r *http.Request) error {
		switch r.Method {
		case http.MethodPost:
			to, err := m.Identity.Consume(w, r)
			return toConsole(w, r, to, err)
		case http.MethodGet:
			return toConsole(w, r, "/", m.Identity.ComeBackFromSAML(w, r))
		}
		return wrongMethod(w, r, http.MethodGet, http.MethodPost)
	}))
	mux.Handle(authn.SAMLLogoutPath, m.handle("console", func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			return wrongMethod(w, r, http.MethodGet, http.MethodPost)
		}
		to, err := m.Identity.SignedOutElsewhere(w, r)
		return toConsole(w, r, to, err)
	}))
	mux.Handle("/sign-out", m.plain("console", m.signOutAt))
}

// signOutAt tells the console where its user signs out elsewhere, too.
func (m *Manager) signOutAt(w http.ResponseWriter, r *http.Request) error {
	p, err := m.Identity.Any(r)
	if err != nil {
		return err
	}
	to, err := m.Identity.SignOutAt(r.Context(), p)
	if err == nil {
		writeJSON(w, http.StatusOK, map[string]string{"to": to})
	}
	return err
}

// away logs that an authenticator cannot be asked.
func (m *Manager) away(authenticator string, err error) {
	m.log.Warn("an authenticator cannot be asked", "authenticator", authenticator, "error", err)
}

// notTaken logs that what an authenticator has sent of somebody was not taken.
func (m *Manager) notTaken(authenticator string, err error) {
	text := err.Error()
	m.log.Warn("what an authenticator has sent was not taken", "authenticator", authenticator, "error", text[:min(len(text), maxErrorLogged)])
}

// maxErrorLogged is how much of such an error stands in the log, in bytes: others have worded it.
const maxErrorLogged = 400

// nobody logs that an authenticator knows somebody whom nothing here lets in.
func (m *Manager) nobody(authenticator, name string, groups []string) {
	m.log.Warn("an authenticator knows somebody who is no user here, and in no group that is known here", "authenticator", authenticator,
		"name", name[:min(len(name), maxLogged)], "groups", groups[:min(len(groups), maxGroupsLogged)])
}

// maxGroupsLogged is how many groups of somebody stand in the log.
const maxGroupsLogged = 10

// signedIn counts a sign-in, and logs one that was refused.
func (m *Manager) signedIn(result, name, remote string) {
	name = name[:min(len(name), maxLogged)]
	m.metrics.signIns.WithLabelValues(result).Inc()
	m.audit(auditLine{Event: "sign-in", Result: result, User: name, Remote: remote})
	if result == identity.Refused {
		m.log.Warn("a sign-in was refused", "name", name, "remote", remote)
	}
}

// guessing adds the event that there were too many wrong sign-ins, and logs it. It does not wait for that.
func (m *Manager) guessing(name, remote string, failures int) {
	m.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		shown := "unknown"
		if err := m.Store.Update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
			shown, err = m.Identity.GuessingEvent(tx, name, remote, failures)
			return err
		}); err != nil {
			m.log.Error("event not stored", "error", err)
		}
		m.log.Warn("too many failed sign-ins", "name", shown, "remote", remote, "failures", failures)
	})
}
