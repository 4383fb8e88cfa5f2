//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a temporary PostgreSQL server with its data and socket in a temporary directory. It commits durably.
type Server struct {
	dir        string
	bin        string
	attributes *syscall.SysProcAttr
	args       []string
	cmd        *exec.Cmd
	// ended is closed when the server has ended; nil before the first start.
	ended chan struct{}
}

// ErrNone reports that PostgreSQL is not installed.
var ErrNone = errors.New("there are no PostgreSQL server binaries on this machine (Debian: apt-get install postgresql)")

// binaries returns the directory of the newest PostgreSQL binaries.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path) // the other programs are in the same directory
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNone
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// newServer creates a server's directory and selects the user that its programs run as.
func newServer() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return s, nil
	}
	// initdb and postgres refuse to run as root. They run as the user that the package has created.
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, ErrNone
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	s.attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // small ids
	return s, os.Chown(s.dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// tool runs one of PostgreSQL's programs and waits for it.
func (s *Server) tool(name string, args ...string) error {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.SysProcAttr, c.Dir = s.attributes, s.dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Start creates a server and starts it, with additional settings.
func Start(settings ...string) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	s.set(settings)
	if err = s.tool("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"); err == nil {
		err = s.Revive()
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) set(settings []string) {
	for _, setting := range slices.Concat([]string{"listen_addresses=", "max_connections=200"}, settings) {
		s.args = append(s.args, "-c", setting)
	}
}

// URL returns the URL of a database of the server and of others with the same data. Clients connect to the one that accepts writes.
func (s *Server) URL(database string, others ...*Server) string {
	hosts := []string{s.dir}
	for _, o := range others {
		hosts = append(hosts, o.dir)
	}
	query := url.Values{"host": {strings.Join(hosts, ",")}, "user": {"postgres"}}
	if len(others) > 0 {
		query.Set("target_session_attrs", "read-write")
	}
	return "postgres:///" + database + "?" + query.Encode()
}

// Create creates a database and returns its URL. It is empty unless the options of CREATE DATABASE fill it.
func (s *Server) Create(ctx context.Context, name string, options ...string) (string, error) {
	return s.URL(name), s.Do(ctx, "CREATE DATABASE "+name+" "+strings.Join(options, " "))
}

// Do runs statements in the database postgres.
func (s *Server) Do(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// Standby creates a standby of the server and starts it. From then on, the server waits with each commit until the standby has written it
// to disk.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	second, err := newServer()
	if err != nil {
		return nil, err
	}
	second.set([]string{"synchronous_standby_names=", "hot_standby_feedback=on"})
	conninfo := "host=" + s.dir + " user=postgres application_name=standby"
	if err = second.tool("pg_basebackup", "-d", conninfo, "-D", second.data(), "-R", "-X", "stream", "-c", "fast"); err == nil {
		err = second.Revive()
	}
	if err == nil {
		err = s.Do(ctx, "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
	}
	if err != nil {
		second.Stop()
		return nil, err
	}
	return second, nil
}

// Promote makes a standby accept writes. The previous primary must be dead.
func (s *Server) Promote() error {
	return s.tool("pg_ctl", "-D", s.data(), "promote", "-w", "-t", "30")
}

// Revive starts the server with its existing data and waits until it answers.
func (s *Server) Revive() error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		if err := s.run(); err != nil {
			return fmt.Errorf("start postgres: %w", err)
		}
		for {
			conn, err := pgx.Connect(context.Background(), s.URL("postgres"))
			if err == nil {
				return conn.Close(context.Background())
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("postgres does not answer: %w", err)
			}
			select {
			case <-s.ended: // the killed server had not ended completely
			case <-time.After(20 * time.Millisecond): // the polling interval
				continue
			}
			break
		}
	}
}

func (s *Server) run() error {
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), slices.Concat([]string{"-D", s.data(), "-k", s.dir}, s.args)...)
	s.cmd.SysProcAttr, s.cmd.Dir = s.attributes, s.dir
	s.ended = make(chan struct{})
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // the process that ends the server reports the result
		close(ended)
	}(s.cmd, s.ended)
	return nil
}

// Kill kills the server, as a crash would.
func (s *Server) Kill() error {
	// Stop the postmaster first, so that it does not restart its children.
	_ = s.cmd.Process.Signal(syscall.SIGSTOP) // if it has already ended, Kill returns the error
	for _, pid := range children(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be ending by itself
	}
	err := s.cmd.Process.Kill()
	<-s.ended
	return err
}

// Spoil overwrites the first page of a table, as a bad disk would. The server must be dead. path is the result of pg_relation_filepath.
func (s *Server) Spoil(path string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), path), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, 8192), 0); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Pause stops all processes of the server: connections stay open, but are not answered until Resume.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(what syscall.Signal) error {
	err := s.cmd.Process.Signal(what)
	for _, pid := range children(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, what) // it may be ending by itself
	}
	return err
}

// children returns the child processes of a process; none if there is no /proc.
func children(parent int) (pids []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil { // it has ended
			continue
		}
		// The format is "pid (name) state ppid"; the name may contain any characters.
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var above int
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if _, e := fmt.Sscan(rest, &state, &above); err == nil && e == nil && above == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	if s.ended != nil {
		_ = s.cmd.Process.Signal(syscall.SIGINT) // a fast shutdown; it may have ended already
		<-s.ended
	}
	_ = os.RemoveAll(s.dir)
}
