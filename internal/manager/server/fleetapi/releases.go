package fleetapi

import (
	"errors"
	"net/http"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/wire/release"
)

// releasePaths is the list of releases.
func (a *API) releasePaths() []family.Path {
	return []family.Path{{Pattern: root + "/releases", Operations: []family.Operation{{
		Method: http.MethodGet, ID: "listReleases", Summary: "List the releases that service points can be updated to (Portolan extension)",
		Access: a.reading(), Description: "expires is the time until which service points accept them; null if there are no releases.",
		Success: family.Success{Status: http.StatusOK, Description: "The releases.", Schema: family.Object(family.Schema{
			"data":    family.List(family.Ref("FleetRelease")),
			"expires": family.Schema{"type": []string{"string", "null"}, "format": "date-time"}}, "data", "expires")},
		Handle: a.listReleases,
	}}}}
}

// listReleases lists them (Portolan extension).
func (a *API) listReleases(w http.ResponseWriter, _ *family.Request) error {
	s, err := a.Releases()
	if err != nil && !errors.Is(err, release.ErrNone) {
		a.Log.Error("releases not readable", "reason", err)
		return problem.Conflict("ReleasesUnreadable", "the releases of this manager cannot be read; see its log")
	}
	answer := struct {
		Data []release.Release `json:"data"`
		// Expires is the time until which service points accept the releases; null without releases.
		Expires *string `json:"expires"`
	}{Data: append([]release.Release{}, s.Releases...)}
	if err == nil {
		text := s.Expires.UTC().Format(time.RFC3339)
		answer.Expires = &text
	}
	family.WriteJSON(w, http.StatusOK, answer)
	return nil
}
