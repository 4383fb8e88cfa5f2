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

// Server is a PostgreSQL server of our own: its data and its socket in a temporary directory,
// durability on.
type Server struct {
	dir  string
	bin  string
	as   *syscall.SysProcAttr
	args []string
	cmd  *exec.Cmd
	// ended is closed when the server has ended; nil while it was never started.
	ended chan struct{}
}

// ErrNone is a machine without PostgreSQL.
var ErrNone = errors.New("there are no PostgreSQL server binaries on this machine (Debian: apt-get install postgresql)")

// binaries finds the newest server on the machine.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path) // its companions are where it really is
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNone
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// place makes a server's directory, and says as whom its programs run.
func place() (*Server, error) {
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
	// initdb and postgres refuse root: there they run as the user that the package made.
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
	s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids of a user are small
	return s, os.Chown(s.dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// tool runs one of PostgreSQL's programs to its end.
func (s *Server) tool(name string, args ...string) error {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.SysProcAttr, c.Dir = s.as, s.dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Start makes a server and starts it, with these settings besides its own.
func Start(settings ...string) (*Server, error) {
	s, err := place()
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

// URL gives the URL of a database of the server, and of others with the same data behind it: who
// connects comes to the one that takes changes.
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

// Create makes a database and gives its URL. It is empty, but for what the options of CREATE DATABASE say.
func (s *Server) Create(ctx context.Context, name string, options ...string) (string, error) {
	return s.URL(name), s.Do(ctx, "CREATE DATABASE "+name+" "+strings.Join(options, " "))
}

// Do runs statements in the server's own database.
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

// Standby makes a standby of the server and starts it. From then on the server answers a commit when
// the standby has it on disk, too.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	second, err := place()
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

// Promote makes a standby a server that takes changes. The one before must be dead by then.
func (s *Server) Promote() error {
	return s.tool("pg_ctl", "-D", s.data(), "promote", "-w", "-t", "30")
}

// Revive starts the server on what is on disk and waits until it answers.
func (s *Server) Revive() error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		if err := s.run(); err != nil {
			return fmt.Errorf("starting postgres: %w", err)
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
			case <-s.ended: // what was killed had not quite gone
			case <-time.After(20 * time.Millisecond): // between two looks
				continue
			}
			break
		}
	}
}

func (s *Server) run() error {
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), slices.Concat([]string{"-D", s.data(), "-k", s.dir}, s.args)...)
	s.cmd.SysProcAttr, s.cmd.Dir = s.as, s.dir
	s.ended = make(chan struct{})
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is said by who ends it
		close(ended)
	}(s.cmd, s.ended)
	return nil
}

// Kill kills the server, as a crash would.
func (s *Server) Kill() error {
	// The postmaster is held, so that it does not start its children again.
	_ = s.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended already, which Kill says
	for _, pid := range children(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be ending by itself
	}
	err := s.cmd.Process.Kill()
	<-s.ended
	return err
}

// Spoil overwrites the first page of a table, as a bad disk would. The server must be dead, and path be what pg_relation_filepath gave.
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

// Pause holds the server with all of its processes: connections stay open, and nothing is answered. Resume lets them go on.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(what syscall.Signal) error {
	err := s.cmd.Process.Signal(what)
	for _, pid := range children(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, what) // it may be ending by itself
	}
	return err
}

// children are the processes that a process has started; none where there is no /proc.
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
		// pid (name) state ppid: the name may hold anything.
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
