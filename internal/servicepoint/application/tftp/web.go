package tftp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"portolan/internal/base/fairlisten"
)

const protocolHTTP = "HTTP"

// Limits of HTTP requests. A client that does not read for webIdle loses its connection.
const (
	maxWebHeader      = 8 << 10
	webIdle           = 30 * time.Second
	maxWebConnections = 2048
)

// webListener serves the files over HTTP.
type webListener struct {
	s       *server
	address netip.AddrPort
	socket  net.Listener
	web     *http.Server
	group   sync.WaitGroup
}

// listenHTTP opens a listener, one of several.
func (s *server) listenHTTP(at netip.AddrPort, several int) (listener, error) {
	socket, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	most := fairlisten.ShareLimit(several, maxWebConnections)
	l := &webListener{s: s, address: at, socket: fairlisten.New(socket, fairlisten.Limits{Max: most, PerNetwork: max(most/4, 1)})}
	l.web = &http.Server{Handler: http.HandlerFunc(l.serve), MaxHeaderBytes: maxWebHeader, ReadTimeout: webIdle, IdleTimeout: webIdle,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	return l, nil
}

func (l *webListener) protocol() string { return protocolHTTP }

func (l *webListener) run() {
	l.group.Go(func() {
		if err := l.web.Serve(l.socket); !errors.Is(err, http.ErrServerClosed) {
			l.s.log.Error("listener stopped", "address", l.address, "error", err)
		}
	})
}

// checkPath is the path that the application requests from itself. No file can have this path.
const checkPath = "/./"

// serve answers GET and HEAD requests for files, also for ranges of a file and with conditions.
func (l *webListener) serve(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(webIdle)); err != nil { // the connection has gone
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		l.s.counts.refuse(refusedWrite)
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "files cannot be changed here: use GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == checkPath {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	path, err := cleanPath(r.URL.Path)
	if err != nil {
		l.s.counts.refuse(refusedPath)
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	f := l.s.tree.Load().files[path]
	if f == nil {
		l.s.counts.refuse(refusedName)
		http.Error(w, "the file does not exist", http.StatusNotFound)
		return
	}
	w.Header().Set("ETag", `"`+f.hash+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	counted := &countingWriter{ResponseWriter: w, control: control}
	http.ServeContent(counted, r, "", time.Time{}, f.open())
	l.s.counts.webAnswers.Add(1)
	l.s.counts.webBytes.Add(counted.n)
}

// countingWriter counts the octets of an answer. Each write has a deadline of its own, so that a large file may take long and a client
// that has gone does not keep its connection.
type countingWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	n       int64
}

func (c *countingWriter) Write(p []byte) (n int, err error) {
	if err := c.control.SetWriteDeadline(time.Now().Add(webIdle)); err != nil {
		return 0, err
	}
	n, err = c.ResponseWriter.Write(p)
	c.n += int64(n)
	return n, err
}

// check sends a request to this listener.
func (l *webListener) check(ctx context.Context) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address.String()+checkPath, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	rs, err := transport.RoundTrip(rq)
	if err != nil {
		return err
	}
	_ = rs.Body.Close()
	if rs.StatusCode != http.StatusNoContent {
		return errors.New(rs.Status)
	}
	return nil
}

// close ends the listener and its connections.
func (l *webListener) close() {
	_ = l.web.Close()
	_ = l.socket.Close() // web does not know the socket before run
	l.group.Wait()
}
