package backup_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/backup"
	"portolan/internal/testkit/apitest"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// sftpServer is an SFTP server on loopback for one user, with its files in dir.
type sftpServer struct {
	address, dir string
	mu           sync.Mutex
	key          ssh.Signer
	passwords    int // how many passwords it was sent
}

// newKey gives the server another key.
func (s *sftpServer) newKey(t *testing.T) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

func startSFTP(t *testing.T, user, password string) *sftpServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sftpServer{address: l.Addr().String(), dir: t.TempDir()}
	s.newKey(t)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				s.serve(conn, user, password)
			})
		}
	})
	return s
}

// serve serves a connection until its client ends it, or fails.
func (s *sftpServer) serve(conn net.Conn, user, password string) {
	config := &ssh.ServerConfig{PasswordCallback: func(c ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.passwords++
		if c.User() != user || string(given) != password {
			return nil, os.ErrPermission
		}
		return nil, nil //nolint:nilnil // permissions are not emulated
	}}
	s.mu.Lock()
	config.AddHostKey(s.key)
	s.mu.Unlock()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for one := range channels {
		channel, asked, err := one.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range asked {
				_ = r.Reply(r.Type == "subsystem" && strings.HasSuffix(string(r.Payload), "sftp"), nil)
			}
		}()
		if server, err := sftp.NewServer(channel, sftp.WithServerWorkingDirectory(s.dir)); err == nil {
			_ = server.Serve()
		}
		_ = channel.Close()
	}
}

// files gives the names of the files of a schedule.
func files(t *testing.T, dir, prefix string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestBackupsAreSentBySFTP checks that backups are sent to an SFTP server, and that only the oldest backups are deleted there. The key of
// the server is stored, and no password is sent to a server with another key.
func TestBackupsAreSentBySFTP(t *testing.T) {
	apitest.Slow(t)
	s := startSFTP(t, "backup", "open sesame")
	m := startOnce(t)
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	remote := `"remoteBackupsEnabled":true,"transferProtocol":"SFTP","remoteHost":"` + s.address + `","remoteDirectory":"deep/er","remoteUser":"backup"`
	schedule := database + "/schedules/" + m.ID(database+"/schedules", `{"name":"away","maxFileCount":2,`+remote+`,"remotePassword":"open sesame"}`)
	there := filepath.Join(s.dir, "deep", "er")
	if err := os.MkdirAll(there, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mine.txt", "away-of-somebody.portolan"} {
		if err := os.WriteFile(filepath.Join(there, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := ""
	another := func() {
		t.Helper()
		m.Want(200, "PATCH", schedule, `{"state":"QUEUED"}`)
		apitest.Eventually(t, "a backup is sent", func() bool {
			at := m.Want(200, "GET", schedule, "").Text("lastRemoteDateTime")
			newest := m.Want(200, "GET", database+"/backups?orderBy=desc(id)", "").Text("data.0.name")
			if newest == last || at == "" {
				return false
			}
			if _, err := os.Stat(filepath.Join(there, newest)); err != nil {
				return false
			}
			last = newest
			return true
		})
	}
	for range 3 {
		another()
	}
	apitest.Eventually(t, "the oldest file is gone", func() bool { return len(files(t, there, "away-2")) == 2 })
	here, err := os.ReadFile(filepath.Join(m.dir, last))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(there, last)); err != nil || string(text) != string(here) {
		t.Errorf("%d bytes are there, and %d here: %v", len(text), len(here), err)
	}
	for _, name := range []string{"mine.txt", "away-of-somebody.portolan"} {
		if _, err := os.Stat(filepath.Join(there, name)); err != nil {
			t.Error(err)
		}
	}
	shown := m.Want(200, "GET", schedule, "")
	if key := shown.Text("remoteHostKey"); !strings.HasPrefix(key, "ssh-ed25519 AAAA") || strings.Contains(string(shown.Body), "sesame") {
		t.Errorf("the schedule is %s", shown.Body)
	}

	s.newKey(t)
	s.mu.Lock()
	before := s.passwords
	s.mu.Unlock()
	m.Want(200, "PATCH", schedule, `{"state":"QUEUED"}`)
	failed := func(text string) func() bool {
		return func() bool {
			newest := m.Want(200, "GET", "/api/v2/events?orderBy=desc(id)&"+apitest.Filter("eventType:'FAILED'"), "")
			return strings.Contains(newest.Text("data.0.message"), text)
		}
	}
	apitest.Eventually(t, "another key is refused", failed("has the host key SHA256:"))
	s.mu.Lock()
	if s.passwords != before {
		t.Error("a server with another key was sent the password")
	}
	s.mu.Unlock()
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		figures, err := backup.FiguresOf(tx, m.Address)
		if !strings.Contains(figures.UploadFault, "has the host key SHA256:") {
			t.Errorf("the figures are %+v", figures)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	m.Want(200, "PATCH", schedule, `{"remoteHostKey":null}`) // a changed schedule is tried at once
	apitest.Eventually(t, "the new key is kept", func() bool {
		key := m.Want(200, "GET", schedule, "").Text("remoteHostKey")
		return key != "" && key != shown.Text("remoteHostKey")
	})
	m.Verify()
}

// TestBackupsAreSentByS3 checks that without local backups a file is deleted after it was sent. The database still contains the time of the
// backup.
func TestBackupsAreSentByS3(t *testing.T) {
	backend := s3mem.New()
	s := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(s.Close)
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	m := startOnce(t)
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	schedule := database + "/schedules/" + m.ID(database+"/schedules", `{"name":"away","localBackupsEnabled":false,"remoteBackupsEnabled":true,
		"transferProtocol":"S3","remoteHost":"`+s.URL+`","remoteDirectory":"backups/of/portolan","remoteUser":"KEY","remotePassword":"SECRET"}`)
	m.Want(200, "PATCH", schedule, `{"state":"QUEUED"}`)
	apitest.Eventually(t, "a backup is sent", func() bool { return m.Want(200, "GET", schedule, "").Text("lastRemoteDateTime") != "" })
	prefix := gofakes3.NewPrefix(new("of/portolan/away-2"), nil)
	list, err := backend.ListBucket("backups", &prefix, gofakes3.ListBucketPage{})
	if err != nil || len(list.Contents) != 1 || list.Contents[0].Size < 1000 {
		t.Errorf("there are %v: %v", list, err)
	}
	apitest.Eventually(t, "it is not kept here", func() bool {
		return m.Want(200, "GET", database+"/backups", "").Count() == 0 && len(files(t, m.dir, "away")) == 0
	})
	if m.Want(200, "GET", database, "").Text("lastBackupDateTime") == "" {
		t.Error("the database does not say when it was backed up")
	}
	m.Verify()
}

// TestRemoteBackupsAreRefused checks that settings that cannot send a file are refused, each with its field.
func TestRemoteBackupsAreRefused(t *testing.T) {
	m := startOnce(t)
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	whole := map[string]string{"remoteBackupsEnabled": "true", "transferProtocol": `"SFTP"`, "remoteHost": `"vault.example"`, "remoteUser": `"u"`,
		"remotePassword": `"p"`}
	for _, c := range []struct{ field, value, code string }{
		{"transferProtocol", `"FTP"`, "UnsupportedResourceFieldValue"},
		{"transferProtocol", `null`, "MissingRequiredField"},
		{"remoteHost", `null`, "MissingRequiredField"},
		{"remoteUser", `null`, "MissingRequiredField"},
		{"remotePassword", `""`, "MissingRequiredField"},
		{"remoteHost", `"sftp://vault.example"`, "InvalidResourceFieldValue"},
		{"remoteHost", `"user@vault.example"`, "InvalidResourceFieldValue"},
		{"remoteHostKey", `"ssh-ed25519 nothing"`, "InvalidResourceFieldValue"},
	} {
		body := `{"name":"x"`
		for field, value := range whole {
			if field != c.field {
				body += `,"` + field + `":` + value
			}
		}
		m.Refused(400, c.code, c.field, "POST", database+"/schedules", body+`,"`+c.field+`":`+c.value+`}`)
	}
	s3 := `{"name":"x","remoteBackupsEnabled":true,"transferProtocol":"S3","remoteUser":"u","remotePassword":"p","remoteHost":`
	m.Refused(400, "MissingRequiredField", "remoteDirectory", "POST", database+"/schedules", s3+`"vault.example"}`)
	m.Refused(400, "InvalidResourceFieldValue", "remoteDirectory", "POST", database+"/schedules", s3+`"vault.example","remoteDirectory":"Not A Bucket"}`)
	m.Refused(400, "InvalidResourceFieldValue", "remoteHost", "POST", database+"/schedules", s3+`"http://192.0.2.1","remoteDirectory":"bucket"}`)
	same := `,"filePrefix":"same","remoteBackupsEnabled":true,"transferProtocol":"SFTP","remoteHost":"vault.example","remoteUser":"u","remotePassword":"p"`
	m.ID(database+"/schedules", `{"name":"one"`+same+`}`)
	m.Refused(409, "ResourceConflictsWithOther", "filePrefix", "POST", database+"/schedules", `{"name":"two"`+same+`}`)
	m.Want(201, "POST", database+"/schedules", `{"name":"two","remoteDirectory":"two"`+same+`}`)
	m.Verify()
}
