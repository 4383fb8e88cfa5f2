// Package checkinapi is the API of a manager for service points: they enrol, check in, renew their certificates, fetch content and
// releases, and send updates and streams (spec.md section 5). Their certificates say which service point asks; what they say is not
// trusted.
package checkinapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
	"portolan/internal/wire/stream"
)

// API is the check-in API of a manager.
type API struct {
	Chain   *middleware.Chain
	Fleet   *fleet.Service
	Store   *store.Store
	Address *resource.API
	// Parking takes the connections of requests that are answered later.
	Parking *middleware.Parking
	// Planners make the content of applications, by the names of the applications.
	Planners map[string]Planner
	// Data is the directory of content files; Releases that of the releases, empty where there are none.
	Data, Releases string
	Observer       Observer
	Log            *slog.Logger
}

// Observer receives the events of service points.
type Observer struct {
	// CheckedIn and Enrolled take each attempt, with the error that refused it.
	CheckedIn, Enrolled func(err error)
	// Updated takes the response code of each message that changes zones.
	Updated func(code int)
}

// Routes adds everything on the check-in listener, but for what is at no path.
func (a *API) Routes(mux middleware.Mux) {
	api := middleware.Plain("check-in")
	post := func(path string, within rest.Bounds, handle func(w http.ResponseWriter, r *http.Request, body []byte) error) {
		mux.Handle(path, a.Chain.Handler(api, func(w http.ResponseWriter, r *http.Request) error {
			if r.Method != http.MethodPost {
				return family.WrongMethod(w, r, http.MethodPost)
			}
			if path != checkin.EnrolPath && len(r.TLS.PeerCertificates) == 0 { // before anything is read
				return errNoCertificate
			}
			_, body, err := family.ReadJSON(w, r, within)
			if err != nil {
				return err
			}
			return handle(w, r, body)
		}))
	}
	post(checkin.EnrolPath, rest.SmallBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		err := answer(w, body, func(rq checkin.EnrolRequest) (checkin.EnrolAnswer, error) { return a.Fleet.Enrol(r.Context(), rq) })
		a.Observer.Enrolled(err)
		return err
	})
	post(checkin.CheckInPath, rest.ReportBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		rq, err := decode[checkin.Request](body)
		if err != nil {
			a.Observer.CheckedIn(err)
			return err
		}
		to, waits, err := a.Fleet.CheckIn(r.Context(), r.TLS.PeerCertificates[0], rq, func() (fleet.Reply, error) { return a.laterCheckIn(w) })
		if waits {
			return nil
		}
		return a.checkedIn(w, to, err)
	})
	post(checkin.RenewPath, rest.SmallBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		return answer(w, body, func(rq checkin.RenewRequest) (checkin.RenewAnswer, error) {
			return a.Fleet.Renew(r.Context(), r.TLS.PeerCertificates[0], rq)
		})
	})
	post(checkin.LogPath, rest.ReportBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		return answer(w, body, func(rq checkin.LogRequest) (checkin.LogAnswer, error) {
			return a.Fleet.StoreLog(r.Context(), r.TLS.PeerCertificates[0], rq)
		})
	})
	post(checkin.ContentPath, rest.SmallBody, a.giveContent)
	post(checkin.UpdatePath, rest.ReportBody, a.takeUpdate)
	post(stream.Path, rest.StreamBody, func(w http.ResponseWriter, r *http.Request, body []byte) error {
		return answer(w, body, func(b stream.Batch) (stream.Answer, error) {
			return a.Fleet.ApplyBatch(r.Context(), r.TLS.PeerCertificates[0], b)
		})
	})
	mux.Handle(release.Path, a.Chain.Handler(api, a.serveRelease))
}

// checkedIn answers a check-in.
func (a *API) checkedIn(w http.ResponseWriter, to checkin.Answer, err error) error {
	a.Observer.CheckedIn(err)
	if err == nil {
		family.WriteJSON(w, http.StatusOK, to)
	}
	return err
}

// laterCheckIn parks a check-in.
func (a *API) laterCheckIn(w http.ResponseWriter) (fleet.Reply, error) {
	p, err := a.Parking.Park(w)
	if err != nil {
		return fleet.Reply{}, err
	}
	return fleet.Reply{Context: p.Context(), Send: func(to checkin.Answer, err error) {
		p.Reply(func(w http.ResponseWriter, _ *http.Request) error { return a.checkedIn(w, to, err) })
	}}, nil
}

var errNoCertificate = problem.New(http.StatusUnauthorized, "CertificateRequired", "the certificate of a service point is required")

// answer decodes a request to the check-in listener, performs it and writes the result.
func answer[Request, Answer any](w http.ResponseWriter, body []byte, perform func(Request) (Answer, error)) error {
	rq, err := decode[Request](body)
	if err != nil {
		return err
	}
	a, err := perform(rq)
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, a)
	return nil
}

// decode decodes a request to the check-in listener.
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
