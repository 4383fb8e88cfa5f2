package application

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// host serves one application at its socket.
type host struct {
	kind Kind
	app  Application
	log  *slog.Logger
	stop context.CancelFunc

	// applyLock is held while a configuration or content is applied.
	applyLock sync.Mutex
	// configured is the digest of the configuration in use.
	configured atomic.Value
}

// maxConfiguration is the maximum size of a configuration in bytes.
const maxConfiguration = 1 << 20

// Digest returns the SHA-256 of a configuration in hex.
func Digest(configuration []byte) string {
	sum := sha256.Sum256(configuration)
	return hex.EncodeToString(sum[:])
}

// Serve runs an application of a kind until ctx ends or a stop request arrives at the socket.
func Serve(ctx context.Context, kind Kind, socket net.Listener, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := &host{kind: kind, app: kind.New(log), log: log, stop: stop}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+StatusPath, h.status)
	mux.HandleFunc("PUT "+ConfigurationPath, h.configure)
	mux.HandleFunc("PUT "+ContentPath, h.putContent)
	mux.HandleFunc("GET "+UpdatesPath, h.updates)
	mux.HandleFunc("POST "+UpdatesPath, h.postDecisions)
	mux.HandleFunc("GET "+RecordsPath, h.records)
	mux.HandleFunc("POST "+RecordsPath, h.postKept)
	mux.HandleFunc("POST "+StopPath, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		h.stop()
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(socket) }()
	log.Info("application running", "name", kind.Name, "version", kind.Version, "pid", os.Getpid())
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	leaving, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_ = server.Shutdown(leaving) // clients repeat interrupted requests
	log.Info("application ended", "name", kind.Name)
	return errors.Join(err, h.app.Close())
}

func (h *host) status(w http.ResponseWriter, _ *http.Request) {
	configured, _ := h.configured.Load().(string)
	diagnostics, err := json.Marshal(h.app.Diagnostics())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s := Status{Name: h.kind.Name, Version: h.kind.Version, PID: os.Getpid(), Configured: configured,
		Conditions: append([]string{}, h.app.Health()...), Diagnostics: diagnostics}
	if app, ok := h.app.(ContentServer); ok {
		s.Content, s.ServesContent = app.Content(), true
	}
	if app, ok := h.app.(Delegating); ok {
		s.Engine = app.Engine()
	}
	_, s.ReceivesUpdates = h.app.(UpdateReceiver)
	_, s.SendsRecords = h.app.(RecordSource)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // an error means that the client has gone
}

func (h *host) configure(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfiguration))
	if err == nil {
		err = h.kind.Check(text)
	}
	h.applyLock.Lock()
	defer h.applyLock.Unlock()
	if err == nil {
		err = h.app.Configure(text)
	}
	if err != nil {
		h.log.Error("configuration rejected", "reason", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		if errors.Is(err, ErrBroken) {
			h.stop()
		}
		return
	}
	h.configured.Store(Digest(text))
	h.log.Info("configuration applied", "digest", Digest(text))
	w.WriteHeader(http.StatusNoContent)
}

// updates returns the updates that need a decision.
func (h *host) updates(w http.ResponseWriter, r *http.Request) {
	app, ok := h.app.(UpdateReceiver)
	if !ok {
		http.Error(w, "this application does not accept updates", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), UpdatesWait)
	defer cancel()
	all := app.Updates(ctx)
	if len(all) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // an error means that the client has gone; DNS clients repeat their updates
}

// postDecisions receives the decisions on updates.
func (h *host) postDecisions(w http.ResponseWriter, r *http.Request) {
	app, ok := h.app.(UpdateReceiver)
	var answers []UpdateAnswer
	if !ok || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfiguration)).Decode(&answers) != nil {
		http.Error(w, "the body must be answers to updates", http.StatusBadRequest)
		return
	}
	app.Decide(answers)
	w.WriteHeader(http.StatusNoContent)
}

// records returns pending records.
func (h *host) records(w http.ResponseWriter, r *http.Request) {
	app, ok := h.app.(RecordSource)
	if !ok {
		http.Error(w, "this application has no records", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), UpdatesWait)
	defer cancel()
	all := app.Records(ctx)
	if len(all) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // the records stay pending until they are acknowledged
}

// postKept receives the acknowledgement of records.
func (h *host) postKept(w http.ResponseWriter, r *http.Request) {
	app, ok := h.app.(RecordSource)
	var kept RecordsKept
	if !ok || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfiguration)).Decode(&kept) != nil {
		http.Error(w, "the number of a record is required", http.StatusBadRequest)
		return
	}
	app.Acknowledge(kept.Number)
	w.WriteHeader(http.StatusNoContent)
}

// applyContent applies content. A panic leaves the application in an undefined state, so applyContent returns ErrBroken and the process
// restarts.
func (h *host) applyContent(app ContentServer, in io.Reader) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrBroken, p, debug.Stack())
		}
	}()
	return app.ApplyContent(in)
}

// putContent applies the content in the request. A truncated or inconsistent stream changes nothing.
func (h *host) putContent(w http.ResponseWriter, r *http.Request) {
	app, ok := h.app.(ContentServer)
	if !ok {
		http.Error(w, "this application has no content", http.StatusBadRequest)
		return
	}
	h.applyLock.Lock()
	defer h.applyLock.Unlock()
	if err := h.applyContent(app, r.Body); err != nil {
		h.log.Error("content rejected", "reason", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		if errors.Is(err, ErrBroken) {
			h.stop()
		}
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
