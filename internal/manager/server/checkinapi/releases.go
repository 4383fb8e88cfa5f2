package checkinapi

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/wire/release"
)

// releaseTime is the time limit for sending a release file.
const releaseTime = time.Hour

// serveRelease sends a release file to a service point.
func (a *API) serveRelease(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return family.WrongMethod(w, r, http.MethodGet, http.MethodHead)
	}
	if len(r.TLS.PeerCertificates) == 0 {
		return errNoCertificate
	}
	if err := a.Fleet.VerifyCertificate(r.Context(), r.TLS.PeerCertificates[0]); err != nil {
		return err
	}
	if a.Releases == "" {
		return problem.NotFound("this manager has no releases")
	}
	f, err := release.Repository{Dir: a.Releases}.Open(strings.TrimPrefix(r.URL.Path, release.Path))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.Log.WarnContext(r.Context(), "release file not readable", "path", r.URL.Path, "reason", err)
		}
		return problem.NotFound("the file does not exist")
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
