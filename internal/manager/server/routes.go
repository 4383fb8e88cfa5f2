package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"portolan/console"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
	"portolan/internal/wire/stream"
)

// routes is a multiplexer that tells what it has.
type routes struct {
	mux      http.ServeMux
	patterns []string
}

// Handle adds a route.
func (r *routes) Handle(pattern string, h http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.mux.Handle(pattern, h)
}

// apiHandler is everything on the API listener.
func (m *Manager) apiHandler() (http.Handler, error) {
	api, tokens := m.handle("address", m.serveAddressAPI), m.handle("address", m.tokens)
	status := m.plain("address", m.showStatus)
	mux := &routes{}
	m.fleetRoutes(mux)
	mux.Handle("/healthz", m.plain("health", m.healthz))
	mux.Handle("/readyz", m.plain("health", m.readyz))
	if m.figures == nil {
		mux.Handle("/metrics", m.plain("metrics", m.showMetrics))
	}
	mux.Handle("/api/openapi.json", m.plain("address", func(w http.ResponseWriter, _ *http.Request) error {
		document, err := m.openapi()
		if err != nil {
			return fmt.Errorf("deriving the OpenAPI document: %w", err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, err = w.Write(document)
		return err
	}))
	nothing := m.handle("none", nothingHere)
	screens := console.Handler(nothing)
	pagesOfConsole := m.plain("console", func(w http.ResponseWriter, r *http.Request) error {
		screens.ServeHTTP(w, r)
		return nil
	})
	mux.Handle("/sign-in/providers", m.plain("console", m.listProviders))
	mux.Handle("/sign-in/{id}/callback", m.plain("console", m.comeBack))
	mux.Handle("/sign-in/{id}", m.plain("console", m.sendTo))
	m.samlRoutes(mux)
	mux.Handle("/{$}", pagesOfConsole)
	mux.Handle("/api/docs", pagesOfConsole) // a screen of it, which needs no sign-in
	mux.Handle("/api/docs/", pagesOfConsole)
	mux.Handle(console.Base, pagesOfConsole)
	mux.Handle("/", nothing)
	m.routes = mux.patterns
	// The address API is routed first and by prefix: the mux would answer odd paths by itself.
	return compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokensPath || strings.HasPrefix(r.URL.Path, tokensPath+"/") {
			tokens.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == statusPath {
			status.ServeHTTP(w, r)
			return
		}
		if rest, ok := strings.CutPrefix(r.URL.Path, Base); ok && (rest == "" || rest[0] == '/') {
			api.ServeHTTP(w, r)
			return
		}
		setSecurityHeaders(w.Header(), m.secure) // also on what the mux answers by itself
		mux.mux.ServeHTTP(w, r)
	}))
}

func nothingHere(_ http.ResponseWriter, r *http.Request) error {
	return problem.NotFound("there is nothing at %s: the console is at /, the address manager at /api/v2, the fleet manager at /user/api/v1;"+
		" /api/docs shows both", r.URL.Path)
}

// maxLogged is how much of a name that anybody may send stands in the log, in bytes.
const maxLogged = 64

// plain is a door that only answers GET and HEAD.
func (m *Manager) plain(name string, handle func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return m.handle(name, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return wrongMethod(w, r, http.MethodGet, http.MethodHead)
		}
		return handle(w, r)
	})
}

func wrongMethod(w http.ResponseWriter, r *http.Request, allowed ...string) error {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "%s is not for this resource; these are: %s", r.Method,
		strings.Join(allowed, ", "))
}

// serveAddressAPI finds out who asks and hands the request to the resource engine. A login comes
// without credentials, or with those that it is about.
func (m *Manager) serveAddressAPI(w http.ResponseWriter, r *http.Request) error {
	var caller resource.Caller
	if r.Method != http.MethodPost || r.URL.Path != Base+"/sessions" {
		var err error
		if caller, err = m.caller(r); err != nil {
			return err
		}
	} else if len(r.Header.Values("Authorization")) > 1 {
		return problem.BadRequest("InvalidHeaderValue", "Authorization: given more than once")
	}
	caller.Remote, caller.Client = identity.Remote(r), r.UserAgent()
	return m.REST.Serve(w, r, caller)
}

// caller finds out who asks.
func (m *Manager) caller(r *http.Request) (resource.Caller, error) {
	p, err := m.anybody(r)
	if err == nil {
		err = p.OpensAddress()
	}
	return authz.CallerOf(p), err
}

// anybody is who asks something of the address API, or has a token that is not for it.
func (m *Manager) anybody(r *http.Request) (authz.Principal, error) {
	if r.URL.Path == Base+"/changes" { // a page that is open, and that nobody may look at
		r = identity.Quietly(r)
	}
	p, err := m.Identity.Any(r)
	askedOf(r.Context()).asks(p.Name)
	return p, err
}

// fleetRoutes are the paths of the fleet API (spec.md section 4).
func (m *Manager) fleetRoutes(mux *routes) {
	route := func(path string, handlers map[string]func(w http.ResponseWriter, r *http.Request) error) {
		var allowed []string
		for name := range handlers {
			allowed = append(allowed, name)
		}
		if _, ok := handlers[http.MethodGet]; ok {
			allowed = append(allowed, http.MethodHead)
		}
		allowed = append(allowed, http.MethodOptions)
		slices.Sort(allowed)
		mux.Handle(path, m.handle("fleet", func(w http.ResponseWriter, r *http.Request) error {
			name := r.Method
			if name == http.MethodHead {
				name = http.MethodGet
			}
			if name == http.MethodOptions {
				w.Header().Set("Allow", strings.Join(allowed, ", "))
				w.WriteHeader(http.StatusNoContent)
				return nil
			}
			handle, ok := handlers[name]
			if !ok {
				return wrongMethod(w, r, allowed...)
			}
			if len(r.URL.RequestURI()) > rest.MaxURL {
				return problem.New(http.StatusRequestURITooLong, "URITooLong", "the request's URL is longer than %d bytes", rest.MaxURL)
			}
			return handle(w, r)
		}))
	}
	type handlers = map[string]func(w http.ResponseWriter, r *http.Request) error
	route("/user/api/v1/fleetInstances", handlers{http.MethodGet: m.reader(m.listInstances)})
	route("/user/api/v1/fleetInstances/{id}", handlers{http.MethodGet: m.reader(m.getInstance),
		http.MethodPatch: m.changer(m.modifyInstance), http.MethodDelete: m.changer(m.deleteInstance)})
	route("/user/api/v1/fleetInstances/{id}/registrationKey", handlers{http.MethodPost: m.changer(m.rekeyInstance)})
	route("/user/api/v1/fleetInstances/{id}/events", handlers{http.MethodGet: m.reader(m.listEvents)})
	route("/user/api/v1/fleetInstances/{id}/nodes", handlers{http.MethodPost: m.changer(m.addNode)})
	route("/user/api/v1/fleetInstances/{id}/nodes/{node}", handlers{http.MethodDelete: m.changer(m.removeNode)})
	route("/user/api/v1/fleetInstances/{id}/applications", handlers{http.MethodGet: m.reader(m.listApplications),
		http.MethodPost: m.changer(m.deployApplication)})
	route("/user/api/v1/fleetInstances/{id}/applications/{application}", handlers{http.MethodGet: m.reader(m.getApplication),
		http.MethodPatch: m.changer(m.changeApplication), http.MethodDelete: m.changer(m.undeployApplication)})
	route("/user/api/v1/fleetInstances/{id}/applications/{application}/log", handlers{http.MethodGet: m.reader(m.getLog)})
	route("/user/api/v1/servicePoints", handlers{http.MethodGet: m.reader(m.listServicePoints),
		http.MethodPost: m.changer(m.createServicePoint)})
	route("/user/api/v1/servicePoints/{id}", handlers{http.MethodGet: m.reader(m.getServicePoint),
		http.MethodDelete: m.changer(m.deleteServicePoint)})
	route("/user/api/v1/servicePoints/{id}/settings", handlers{http.MethodPatch: m.changer(m.changeSettings)})
	route("/user/api/v1/servicePoints/{id}/serviceInstances", handlers{http.MethodPost: m.changer(m.createServiceInstance)})
	route("/user/api/v1/serviceInstances/{id}", handlers{http.MethodPatch: m.changer(m.changeServiceInstance),
		http.MethodDelete: m.changer(m.deleteServiceInstance)})
	route("/user/api/v1/releases", handlers{http.MethodGet: m.reader(m.listReleases)})
	route("/user/api/v1/rollouts", handlers{http.MethodGet: m.reader(m.listRollouts), http.MethodPost: m.changer(m.startRollout)})
	route("/user/api/v1/rollouts/{id}", handlers{http.MethodGet: m.reader(m.getRollout), http.MethodDelete: m.changer(m.deleteRollout)})
	route("/user/api/v1/rollouts/{id}/members", handlers{http.MethodGet: m.reader(m.listMembers)})
	route("/user/api/v1/rollouts/{id}/{action}", handlers{http.MethodPost: m.changer(m.actOnRollout)})
	route("/api/v1/fleetInstanceMinimumConfig", handlers{http.MethodPost: m.changer(m.createInstance)})
	route("/v1/api/authentication/token", handlers{http.MethodPost: m.exchangeToken})
}

// fleetCaller is who asks something of the fleet API.
func (m *Manager) fleetCaller(r *http.Request) (authz.Principal, error) {
	p, err := m.Identity.Bearer(r)
	askedOf(r.Context()).asks(p.Name)
	if err == nil {
		err = p.OpensFleet()
	}
	return p, err
}

// reader lets everyone with a bearer token in, but for users who do not see everything: the fleet lies in no part of the tree.
func (m *Manager) reader(handle func(w http.ResponseWriter, r *http.Request) error) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := m.fleetCaller(r)
		if err != nil {
			return err
		}
		if p.Rights != nil && !p.Rights.Everything() {
			if r, err = m.within(r, p, authz.View, false); err != nil {
				return err
			}
		}
		return handle(w, r)
	}
}

// changer lets administrators with a bearer token in, and who has rights on labels.
func (m *Manager) changer(handle func(w http.ResponseWriter, r *http.Request) error) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := m.fleetCaller(r)
		if err != nil {
			return err
		}
		switch {
		case p.Role == authz.Administrator && p.ReadOnly:
			return problem.Forbidden("ReadOnlySession", "this session or token may only read")
		case p.Role == authz.Administrator:
		case p.ReadOnly || p.User == 0:
			return identity.Forbidden(p)
		default:
			if r, err = m.within(r, p, levelFor(r), p.Rights == nil || p.Rights.Everything()); err != nil {
				return err
			}
		}
		author, err := authorOf(r, authz.CallerOf(p))
		if err != nil {
			return err
		}
		return handle(w, r.WithContext(fleet.By(r.Context(), author)))
	}
}

// texts reads string members of a body; what is there must be a string.
func texts(members map[string]json.RawMessage, names ...string) (values map[string]string, err error) {
	values = map[string]string{}
	var problems []*problem.Problem
	for _, name := range names {
		raw, ok := members[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			problems = append(problems, problem.Invalid(name, "must be a string"))
			continue
		}
		values[name] = text
	}
	return values, problem.Join(problems)
}

// readJSON reads the body of a request of the fleet API or of the check-in door; that of a PATCH may be called a merge-patch (RFC 7396).
func readJSON(w http.ResponseWriter, r *http.Request, within rest.Bounds) (map[string]json.RawMessage, []byte, error) {
	allowed := []string{"application/json"}
	if r.Method == http.MethodPatch {
		allowed = append(allowed, "application/merge-patch+json")
	}
	if err := rest.CheckContentType(r, allowed...); err != nil {
		return nil, nil, err
	}
	return rest.ReadBody(w, r, within)
}

func missing(names ...string) error {
	p := problem.BadRequest("MissingRequiredField", "required and missing: %s", strings.Join(names, ", "))
	p.Fields = names
	return p
}

func (m *Manager) createInstance(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.SmallBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "name", "description")
	if err != nil {
		return err
	}
	rest.Note(w, r, members, "name", "description", "nodeCount")
	name, ok := values["name"]
	if !ok {
		return missing("name")
	}
	var description *string
	if text, ok := values["description"]; ok {
		description = &text
	}
	wanted := fleet.Wanted{Name: name, Description: description, Endpoint: m.RegistrationEndpoint(), NodeCount: 1}
	if raw, ok := members["nodeCount"]; ok {
		if json.Unmarshal(raw, &wanted.NodeCount) != nil || wanted.NodeCount < 1 {
			return problem.Invalid("nodeCount", "must be a whole number, 1 or more")
		}
	}
	if wanted.Repeatable, err = m.repeatable(r); err != nil {
		return err
	}
	created, err := m.Fleet.Create(r.Context(), wanted)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, created)
	return nil
}

// repeatable says who asks, and by which Idempotency-Key; empty where there is none.
func (m *Manager) repeatable(r *http.Request) (string, error) {
	key, err := rest.IdempotencyKey(r)
	if key == "" || err != nil {
		return "", err
	}
	p, err := m.Identity.Bearer(r)
	return p.Name + "\n" + key, err
}

// exchangeToken gives an access token for a key set (reference/fleet.md).
func (m *Manager) exchangeToken(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.SmallBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "grantType")
	if err != nil {
		return err
	}
	raw, ok := members["clientCredentials"]
	if values["grantType"] == "" || !ok {
		return missing("grantType", "clientCredentials")
	}
	if values["grantType"] != "ClientCredentials" {
		return problem.Invalid("grantType", "%q is not ClientCredentials", values["grantType"])
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw, &inner) != nil {
		return problem.Invalid("clientCredentials", "must be an object")
	}
	credentials, err := texts(inner, "clientId", "clientSecret")
	if err != nil {
		return err
	}
	if credentials["clientId"] == "" || credentials["clientSecret"] == "" {
		return missing("clientCredentials.clientId", "clientCredentials.clientSecret")
	}
	token, life, err := m.Identity.Exchange(r.Context(), credentials["clientId"], credentials["clientSecret"], identity.Remote(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		AccessToken string `json:"accessToken"`
		ExpiresIn   int    `json:"expiresIn"`
		TokenType   string `json:"tokenType"`
	}{token, int(life.Seconds()), "Bearer"})
	return nil
}

// checkinHandler is everything on the check-in listener.
func (m *Manager) checkinHandler() http.Handler {
	mux := &routes{}
	defer func() { m.doorRoutes = mux.patterns }()
	post := func(path string, within rest.Bounds, handle func(w http.ResponseWriter, r *http.Request, body []byte) error) {
		mux.Handle(path, m.handle("check-in", func(w http.ResponseWriter, r *http.Request) error {
			if r.Method != http.MethodPost {
				return wrongMethod(w, r, http.MethodPost)
			}
			if path != checkin.EnrolPath && len(r.TLS.PeerCertificates) == 0 { // before anything is read
				return errNoCertificate
			}
			_, body, err := readJSON(w, r, within)
			if err != nil {
				return err
			}
			return handle(w, r, body)
		}))
	}
	post(checkin.EnrolPath, rest.SmallBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		err := answer(w, body, func(rq checkin.EnrolRequest) (checkin.EnrolAnswer, error) { return m.Fleet.Enrol(r.Context(), rq) })
		taken(m.metrics.enrolments, err)
		return err
	})
	post(checkin.CheckInPath, rest.ReportBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		rq, err := decode[checkin.Request](body)
		if err != nil {
			taken(m.metrics.checkIns, err)
			return err
		}
		a, waits, err := m.Fleet.CheckIn(r.Context(), r.TLS.PeerCertificates[0], rq, func() (fleet.Reply, error) { return m.laterCheckIn(w) })
		if waits {
			return nil
		}
		return m.checkedIn(w, a, err)
	})
	post(checkin.RenewPath, rest.SmallBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		return answer(w, body, func(rq checkin.RenewRequest) (checkin.RenewAnswer, error) {
			return m.Fleet.Renew(r.Context(), r.TLS.PeerCertificates[0], rq)
		})
	})
	post(checkin.LogPath, rest.ReportBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		return answer(w, body, func(rq checkin.LogRequest) (checkin.LogAnswer, error) {
			return m.Fleet.TakeLog(r.Context(), r.TLS.PeerCertificates[0], rq)
		})
	})
	post(checkin.ContentPath, rest.SmallBody, m.giveContent)
	post(checkin.UpdatePath, rest.ReportBody, m.takeUpdate)
	post(stream.Path, rest.StreamBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		return answer(w, body, func(b stream.Batch) (stream.Answer, error) {
			return m.Fleet.TakeBatch(r.Context(), r.TLS.PeerCertificates[0], b)
		})
	})
	mux.Handle(release.Path, m.handle("check-in", m.serveRelease))
	mux.Handle(checkin.HealthPath, m.plain("health", m.healthz))
	mux.Handle("/", m.handle("none", nothingHere))
	return &mux.mux
}

// checkedIn answers a check-in.
func (m *Manager) checkedIn(w http.ResponseWriter, a checkin.Answer, err error) error {
	taken(m.metrics.checkIns, err)
	if err == nil {
		writeJSON(w, http.StatusOK, a)
	}
	return err
}

// laterCheckIn parks a check-in.
func (m *Manager) laterCheckIn(w http.ResponseWriter) (fleet.Reply, error) {
	p, err := m.parking.park(w)
	if err != nil {
		return fleet.Reply{}, err
	}
	return fleet.Reply{Context: p.request.Context(), Send: func(a checkin.Answer, err error) {
		p.reply(func(w http.ResponseWriter, _ *http.Request) error { return m.checkedIn(w, a, err) })
	}}, nil
}

var errNoCertificate = problem.New(http.StatusUnauthorized, "CertificateRequired", "a service point's certificate is needed here")

// answer decodes a request of the check-in door, performs it and writes what comes of it.
func answer[Request, Answer any](w http.ResponseWriter, body []byte, perform func(Request) (Answer, error)) error {
	rq, err := decode[Request](body)
	if err != nil {
		return err
	}
	a, err := perform(rq)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, a)
	return nil
}

// decode decodes a request of the check-in door.
func decode[Request any](body []byte) (rq Request, err error) {
	if err := json.Unmarshal(body, &rq); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return rq, problem.Invalid(wrong.Field, "must not be a JSON %s", wrong.Value)
		}
		return rq, problem.BadRequest("InvalidRequestBody", "the body cannot be read")
	}
	return rq, nil
}
