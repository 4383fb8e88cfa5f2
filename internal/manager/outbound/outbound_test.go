package outbound

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOutbound checks that stored settings reach only allowed addresses, in any notation, and never the addresses of cloud metadata
// services.
func TestOutbound(t *testing.T) {
	defer Allow(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func(host string) error {
		c, err := Dialer().DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		if err := dial(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0", "64:ff9b::a9fe:a9fe", "fd00:ec2::254",
		"2002:a9fe:a9fe::1", "::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1::a9fe:a9fe", "::ffff:0:169.254.169.254",
		"2001:0:a9fe:a9fe::1",
		"224.0.0.1"} {
		if err := dial(host); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", host, err)
		}
	}
	prefixes, err := Parse([]string{"10.0.0.0/8", "2001:db8::1"})
	if err != nil {
		t.Fatal(err)
	}
	Allow(prefixes)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1"} {
		if err := dial(host); !errors.Is(err, ErrDenied) {
			t.Errorf("%s is not allowed: %v", host, err)
		}
	}
	for text, want := range map[string]bool{"10.1.2.3": true, "2001:db8::1": true, "2001:db8::2": false, "11.0.0.1": false,
		"::ffff:10.1.2.3": true} {
		if err := Check(netip.MustParseAddr(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "10.0.0.0/33", "host"} {
		if _, err := Parse([]string{text}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// byItself lists the files that connect without Dialer, and why these connections do not depend on stored settings.
var byItself = map[string]string{
	"internal/base/snmpwalk/client.go":             "discovery calls Check before it reads a device",
	"internal/manager/kms/aws.go":                  "the service that the operator names when the program starts",
	"internal/manager/kms/vault.go":                "as above",
	"internal/manager/server/feeds.go":             "--response-feeds says where",
	"internal/manager/server/figures.go":           "--figures-url says where",
	"internal/manager/server/examine.go":           "the manager itself",
	"internal/manager/history/syslog.go":           "--history-syslog says where",
	"internal/manager/notify/mail.go":              "--smtp says where",
	"internal/manager/notify/trap.go":              "--snmp-trap says where",
	"internal/manager/dns/transfer/transfer_in.go": "the command line asks, on its own machine",
}

// TestConnectionsUseDialer checks that every file of the manager that connects uses Dialer or is in the list above, so that a new one is
// reviewed.
func TestConnectionsUseDialer(t *testing.T) {
	found := map[string]bool{}
	var files []string
	if err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	}); err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	connects := regexp.MustCompile(`\b(net|tls|dns|ldap|radius)\.(Dial|Client\{|Transfer\{)|new\(net\.Dialer\)|gosnmp\.GoSNMP\{|new\(dns\.|` +
		`\bhttp\.(Get|Post|Head|PostForm|DefaultClient|DefaultTransport)\b|\bhttp\.(Client|Transport)\{`)
	for _, file := range files {
		name := "internal/" + filepath.ToSlash(strings.TrimPrefix(file, "../../"))
		// Service points and their applications may connect wherever their own machine allows.
		others := []string{"servicepoint", "manager/outbound", "testkit"}
		if strings.HasSuffix(name, "_test.go") ||
			slices.ContainsFunc(others, func(room string) bool { return strings.HasPrefix(name, "internal/"+room+"/") }) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		guarded := strings.Contains(string(text), "outbound.Dialer()") ||
			strings.Contains(string(text), "newHTTPClient(&http.Transport{") || // with Dialer, in authn
			strings.Contains(string(text), "DialContext: connect,") // with Dialer, in remote
		if connects.Match(text) && !guarded {
			found[name] = true
			if byItself[name] == "" {
				t.Errorf("%s connects without outbound.Dialer", name)
			}
		}
	}
	for name, why := range byItself {
		if !found[name] {
			t.Errorf("%s does not connect by itself any more (%s)", name, why)
		}
	}
}
