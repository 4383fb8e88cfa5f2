package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/wire/checkin"

	"zombiezen.com/go/sqlite"
)

const password = "a-password-for-bench"

// serveRole runs a server until it is interrupted.
func serveRole(role, data, body string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch role {
	case "manager":
		return managerRole(ctx, data, body, nil)
	case "carried manager":
		checkinListener, err := listenCarried()
		if err != nil {
			return err
		}
		return managerRole(ctx, data, body, checkinListener)
	case "agent":
		return agentRole(ctx, data, body)
	case "application":
		return applicationRole(ctx, body)
	case "coredns":
		return coreDNSRole(ctx, body)
	case "resolver":
		return resolverRole(ctx, body)
	case "upstream":
		return upstreamRole(ctx)
	case "authority":
		return authorityRole(ctx, data, body)
	case "bare-pg":
		return barePG(ctx, data, body)
	case "bare-get":
		return bareGet(ctx, body)
	case "bare-scan":
		return bareScan(ctx, data)
	case "bare-sql":
		return bareSQL(ctx, data, body)
	case "bare-checkin":
		return bareCheckin(ctx, body)
	}
	return errors.New("no such role: " + role)
}

// managerRole runs a manager. checkinListener is nil unless service points connect through carriers.
func managerRole(ctx context.Context, data, releases string, checkinListener net.Listener) error {
	heap := os.Getenv("BENCH_HEAP")
	if heap != "" { // counts each allocation of the manager
		runtime.MemProfileRate = 1
	}
	limit := server.Tune()
	o := server.Options{Data: data}
	if strings.HasPrefix(data, "postgres:") {
		o = server.Options{Database: data}
	}
	o.MemoryLimit, o.Releases, o.Door = limit, releases, checkinListener
	o.Listen, o.CheckinListen, o.AdminPassword, o.Version = "127.0.0.1:0", "127.0.0.1:0", password, "bench"
	o.Programs = all.Programs()
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	m, err := server.Start(ctx, o)
	if err != nil {
		return err
	}
	token, err := m.Identity.CreateToken(ctx, identity.Grant{Name: "bench", Role: authz.Administrator})
	if err != nil {
		return err
	}
	fmt.Println(m.URL()[len("http://"):], m.RegistrationEndpoint(), token, "-")
	if name := os.Getenv("BENCH_PROFILE"); name != "" { // profiles the manager
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	<-ctx.Done()
	if heap != "" {
		if err := writeHeap(heap); err != nil {
			return err
		}
	}
	return m.Close()
}

// writeHeap writes a heap profile: the memory in use after a garbage collection, and all allocations so far.
func writeHeap(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	runtime.GC()
	err = pprof.WriteHeapProfile(f)
	return errors.Join(err, f.Close())
}

// bareGet serves every request with the same bytes.
func bareGet(ctx context.Context, file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/hal+json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})}
	go func() { <-ctx.Done(); _ = s.Close() }()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// bareScan answers every line "N SIZE\n" on a connection. It scans N rows of addresses in SQLite and writes SIZE bytes for each, which
// begin with its body, then a NUL.
func bareScan(ctx context.Context, data string) error {
	conn, err := sqlite.OpenConn(filepath.Join(data, "portolan.db"))
	if err != nil {
		return err
	}
	stmt, err := conn.Prepare("SELECT id, collection, type, name, parent, configuration, low, high, key, version, refs, body FROM " +
		"resource WHERE collection = 'addresses' ORDER BY id LIMIT ?")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() { <-ctx.Done(); _ = l.Close() }()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		for {
			var n, size int
			if _, err := fmt.Fscanf(c, "%d %d\n", &n, &size); err != nil {
				break
			}
			if err := scanTo(c, stmt, n, size); err != nil {
				return err
			}
		}
		_ = c.Close()
	}
}

func scanTo(w io.Writer, stmt *sqlite.Stmt, n, size int) error {
	rest := bytes.Repeat([]byte{'-'}, size)
	if err := stmt.Reset(); err != nil {
		return err
	}
	stmt.BindInt64(1, int64(n))
	out := make([]byte, 0, 80<<10)
	for {
		more, err := stmt.Step()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		for _, at := range []int{0, 4, 5, 9} {
			_ = stmt.ColumnInt64(at)
		}
		for _, at := range []int{1, 2, 3, 8, 10} {
			_ = stmt.ColumnText(at)
		}
		for _, at := range []int{6, 7} {
			stmt.ColumnBytes(at, make([]byte, stmt.ColumnLen(at)))
		}
		from := len(out)
		out = append(out, make([]byte, stmt.ColumnLen(11))...)
		stmt.ColumnBytes(11, out[from:])
		out = append(out, rest[min(len(out)-from+1, size):]...)
		out = append(out, '\n')
		if len(out) >= 64<<10 {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	_, err := w.Write(append(out, 0)) // a NUL ends the response
	return err
}

// bareCheckin serves check-ins over the same mutual TLS. It decodes them and returns a fixed response.
func bareCheckin(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var authority tlsFiles
	if err := json.Unmarshal(text, &authority); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair([]byte(authority.Certificate), []byte(authority.Key))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authority.Authority))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, NextProtos: []string{"http/1.1"}})
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var rq checkin.Request
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &rq) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"desired":1,"intervalSeconds":30}`))
	})}
	go func() { <-ctx.Done(); _ = s.Close() }()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// tlsFiles is a certificate with its key and its authority, in PEM.
type tlsFiles struct{ Certificate, Key, Authority string }

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
