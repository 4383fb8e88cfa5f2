package checkinapi

import (
	"net/http"
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/wire/checkin"
)

// takeUpdate decides on a message that changes a zone (RFC 2136).
func (a *API) takeUpdate(w http.ResponseWriter, r *http.Request, body []byte) error {
	shown := r.TLS.PeerCertificates[0]
	if err := a.Fleet.VerifyCertificate(r.Context(), shown); err != nil {
		return err
	}
	return answer(w, body, func(rq checkin.UpdateRequest) (to checkin.UpdateAnswer, err error) {
		u := &dnspublish.Update{ServicePoint: shown.Subject.CommonName, View: rq.View, Zone: rq.Zone, Key: rq.Key, Message: rq.Message}
		if u.Client, err = netip.ParseAddr(rq.Client); err != nil {
			return to, problem.Invalid("client", "%q is not an address", rq.Client)
		}
		var why string
		to.Code, why, to.Changed = dnspublish.ApplyUpdate(r.Context(), a.Address, u)
		a.Observer.Updated(to.Code)
		if to.Code != 0 {
			a.Log.InfoContext(r.Context(), "dynamic update refused", "zone", u.Zone, "client", u.Client, "key", u.Key, "code", to.Code,
				"reason", why)
		}
		return to, nil
	})
}
