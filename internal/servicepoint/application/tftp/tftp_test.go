package tftp

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
	"portolan/internal/wire/content"
	"portolan/internal/wire/filetree"

	peer "github.com/pin/tftp/v3"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// stream returns the stream from a revision to a tree, and the revision of the tree. known are the contents that are not sent.
func stream(t testing.TB, from string, number int64, files map[string]string, known ...string) ([]byte, string) {
	t.Helper()
	var m filetree.Manifest
	for _, path := range slices.Sorted(maps.Keys(files)) {
		m.Files = append(m.Files, filetree.File{Path: path, Size: int64(len(files[path])), Hash: hashOf(files[path])})
	}
	text, hash, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	to := content.Revision{Number: number, Hash: hash}.String()
	var out bytes.Buffer
	w := filetree.NewWriter(&out, content.Envelope{From: from, To: to}, text)
	sent := map[string]bool{}
	for _, data := range files {
		if sent[data] || slices.Contains(known, data) {
			continue
		}
		sent[data] = true
		w.Blob(hashOf(data))
		for part := range slices.Chunk([]byte(data), 1<<20) {
			w.Data(part)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), to
}

// start starts a server with files. It returns the server, and its addresses for TFTP and HTTP.
func start(t testing.TB, files map[string]string, more string) (s *server, at, web netip.AddrPort) {
	t.Helper()
	s = newServer(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	at, web = freeport.Reserve(t), freeport.Reserve(t)
	text := fmt.Sprintf(`{"listen":[{"address":%q,"port":%d}],"http":[{"address":%q,"port":%d}]%s}`, at.Addr(), at.Port(), web.Addr(),
		web.Port(), more)
	data, _ := stream(t, "", 1, files)
	if err := s.ApplyContent(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(json.RawMessage(text)); err != nil {
		t.Fatal(err)
	}
	return s, at, web
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// itoa returns the decimal digits of a number.
func itoa(n int) string { return strconv.Itoa(n) }

// random returns n random octets.
func random(n int) string {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return string(data)
}

// TestPrograms checks that curl fetches files of each length around a block by TFTP and HTTP, that tftp-hpa fetches them, and that a
// library fetches them in each mode.
func TestPrograms(t *testing.T) {
	files := map[string]string{"empty": "", "one": "x", "block": random(512), "more": random(513), "a b/c/deep.bin": random(70_000),
		"text.cfg": "line 1\nline 2\rend\n"}
	s, at, web := start(t, files, "")
	await(t, "it is not healthy", func() bool { return len(s.Health()) == 0 })
	client, err := peer.NewClient(at.String())
	if err != nil {
		t.Fatal(err)
	}
	client.SetBlockSize(1400)
	client.RequestTSize(true)
	for name, want := range files {
		from, err := client.Receive(name, "octet")
		if err != nil {
			t.Fatal(name, err)
		}
		if size, ok := from.(peer.IncomingTransfer).Size(); want != "" && (!ok || size != int64(len(want))) {
			t.Errorf("%s has the size %d, %v", name, size, ok)
		}
		var got bytes.Buffer
		if _, err := from.WriteTo(&got); err != nil || got.String() != want {
			t.Errorf("%s: %d octets of %d, %v", name, got.Len(), len(want), err)
		}
	}
	from, err := client.Receive("text.cfg", "netascii")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := from.WriteTo(&text); err != nil || text.String() != files["text.cfg"] {
		t.Errorf("%q %v", text.String(), err)
	}
	curl := peers.Program(t, "curl")
	for name, want := range files {
		for _, url := range []string{"tftp://" + at.String() + "//", "http://" + web.String() + "/"} {
			into := filepath.Join(t.TempDir(), "file")
			url += strings.ReplaceAll(name, " ", "%20")
			out, err := exec.Command(curl, "-sS", "--fail", "--max-time", "20", "-o", into, url).CombinedOutput()
			got, failed := os.ReadFile(into)
			if want == "" && os.IsNotExist(failed) { // curl creates no empty file
				failed = nil
			}
			if err != nil || failed != nil || string(got) != want {
				t.Errorf("%s: %d octets of %d, %v %v %s", url, len(got), len(want), err, failed, out)
			}
		}
	}
	hpa := peers.Program(t, "tftp")
	for name, want := range files {
		if strings.Contains(name, " ") || name == "text.cfg" {
			continue // tftp-hpa splits its command at blanks
		}
		into := filepath.Join(t.TempDir(), "file")
		out, err := exec.Command(hpa, "-m", "binary", at.Addr().String(), fmt.Sprint(at.Port()), "-c", "get", name, into).CombinedOutput()
		got, failed := os.ReadFile(into)
		if err != nil || failed != nil || string(got) != want {
			t.Errorf("tftp-hpa gets %s with %d octets of %d: %v %v %s", name, len(got), len(want), err, failed, out)
		}
	}
	code := func(arguments ...string) int {
		command := exec.Command(curl, append([]string{"-sS", "--max-time", "20"}, arguments...)...)
		_ = command.Run() // the exit status tells
		return command.ProcessState.ExitCode()
	}
	if got := code("tftp://" + at.String() + "/none"); got != 68 { // file not found
		t.Errorf("curl ended with %d", got)
	}
	if got := code("-T", "tftp_test.go", "tftp://"+at.String()+"/one"); got != 69 { // permission
		t.Errorf("curl ended with %d", got)
	}
	await(t, "transfers stay", func() bool { d, _ := s.Diagnostics().(Diagnostics); return d.Active == 0 })
	d, _ := s.Diagnostics().(Diagnostics)
	if d.Completed != 17 || d.HTTPAnswers != int64(len(files)) || d.Refused[refusedWrite] != 1 ||
		d.Refused[refusedName] != 1 || d.Files != len(files) {
		t.Errorf("%+v", d)
	}
}

// TestWeb checks methods, ranges, conditions and names over HTTP.
func TestWeb(t *testing.T) {
	_, _, web := start(t, map[string]string{"dir/pxe.0": "0123456789"}, "")
	for _, c := range []struct {
		method, path, header, value string
		status                      int
		body                        string
	}{
		{"GET", "/dir/pxe.0", "", "", 200, "0123456789"},
		{"HEAD", "/dir/pxe.0", "", "", 200, ""},
		{"GET", "/dir/pxe.0", "Range", "bytes=2-4", 206, "234"},
		{"GET", "/dir/pxe.0", "If-None-Match", `"` + hashOf("0123456789") + `"`, 304, ""},
		{"GET", "/dir", "", "", 404, "the file does not exist\n"},
		{"GET", "/", "", "", 404, "the request names no file\n"},
		{"GET", "/dir/../dir/pxe.0", "", "", 404, ""},
		{"GET", "/dir/%2e%2e/%2e%2e/etc/passwd", "", "", 404, ""},
		{"PUT", "/dir/pxe.0", "", "", 405, ""},
		{"DELETE", "/dir/pxe.0", "", "", 405, ""},
		{"POST", "/new", "", "", 405, ""},
	} {
		rq, err := http.NewRequest(c.method, "http://"+web.String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			rq.Header.Set(c.header, c.value)
		}
		rs, err := http.DefaultTransport.RoundTrip(rq)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(rs.Body)
		_ = rs.Body.Close()
		if err != nil || rs.StatusCode != c.status || c.body != "" && string(body) != c.body || c.status == 200 && rs.ContentLength != 10 {
			t.Errorf("%s %s: %d %q %v", c.method, c.path, rs.StatusCode, body, err)
		}
	}
}

// raw is a client that sends and receives single packets.
type raw struct {
	t    testing.TB
	conn *net.UDPConn
	at   *net.UDPAddr
	tid  *net.UDPAddr
}

func newRaw(t testing.TB, at netip.AddrPort) *raw {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &raw{t: t, conn: conn, at: net.UDPAddrFromAddrPort(at)}
}

// request sends a request with fields.
func (r *raw) request(op byte, fields ...string) {
	r.t.Helper()
	r.packet(r.at, "\x00"+string(op)+strings.Join(fields, "\x00")+"\x00")
}

func (r *raw) packet(to *net.UDPAddr, text string) {
	r.t.Helper()
	if _, err := r.conn.WriteToUDP([]byte(text), to); err != nil {
		r.t.Fatal(err)
	}
}

// receive returns the next packet; empty if none arrives in time.
func (r *raw) receive(wait time.Duration) string {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		r.t.Fatal(err)
	}
	buffer := make([]byte, 65536)
	n, from, err := r.conn.ReadFromUDP(buffer)
	if err != nil {
		return ""
	}
	r.tid = from
	return string(buffer[:n])
}

func (r *raw) ack(block uint16) {
	r.t.Helper()
	r.packet(r.tid, string(binary.BigEndian.AppendUint16([]byte{0, opAck}, block)))
}

// dataHead returns the start of a data packet.
func dataHead(block uint16) string {
	return string(binary.BigEndian.AppendUint16([]byte{0, opData}, block))
}

const soon = 5 * time.Second

// TestRefusals checks the answers to requests that get no file. Packets that are not requests get no answer.
func TestRefusals(t *testing.T) {
	s, at, _ := start(t, map[string]string{"dir/pxe.0": "boot"}, "")
	refused := func(code errorCode, text string, op byte, fields ...string) {
		t.Helper()
		r := newRaw(t, at)
		r.request(op, fields...)
		got := r.receive(soon)
		if !strings.HasPrefix(got, string([]byte{0, opError, 0, byte(code)})) || !strings.Contains(got, text) || !strings.HasSuffix(got, "\x00") {
			t.Errorf("%q: %q", fields, got)
		}
	}
	refused(codeAccess, "read only", opWrite, "dir/pxe.0", "octet")
	refused(codeIllegal, "mode", opRead, "dir/pxe.0", "mail")
	refused(codeIllegal, "mode", opRead, "dir/pxe.0", "")
	refused(codeAccess, "outside", opRead, "../etc/passwd", "octet")
	refused(codeAccess, "outside", opRead, `dir\..\..\etc\passwd`, "octet")
	refused(codeAccess, "outside", opRead, "/dir/../dir/pxe.0", "octet")
	refused(codeNotFound, "does not exist", opRead, "/etc/passwd", "octet")
	refused(codeNotFound, "does not exist", opRead, "dir", "octet")
	refused(codeNotFound, "does not exist", opRead, "dir/PXE.0", "octet")
	refused(codeNotFound, "no file", opRead, "///", "octet")
	refused(codeNotFound, "does not exist", opRead, strings.Repeat("x", 1500), "octet")
	for _, text := range []string{"", "\x00", "\x00\x01", "\x00\x01ab", "\x00\x01name\x00", "\x00\x01name\x00octet", "\x00\x03\x00\x01data",
		"\x00\x04\x00\x01", "\x00\x05\x00\x01text\x00", "\x00\x06x\x00", "\x00\x09x\x00octet\x00", "\x01\x00x\x00octet\x00",
		"\x00\x01" + strings.Repeat("x", 3000) + "\x00octet\x00"} {
		r := newRaw(t, at)
		r.packet(r.at, text)
		r.request(opRead, "none", "octet") // its answer is the first one
		if got := r.receive(soon); !strings.Contains(got, "none") {
			t.Errorf("%q got %q", text, got)
		}
	}
	if d, _ := s.Diagnostics().(Diagnostics); d.Refused[refusedPacket] != 13 || d.Active != 0 {
		t.Errorf("%+v", d)
	}
}

// TestOptions checks which options are acknowledged, with which values.
func TestOptions(t *testing.T) {
	_, at, _ := start(t, map[string]string{"file": random(3000)}, "")
	for _, c := range []struct {
		options []string
		want    string // without the operation code; empty if the data follows at once
	}{
		{nil, ""},
		{[]string{"blksize", "8"}, "blksize\x008\x00"},
		{[]string{"BLKSIZE", "1024"}, "blksize\x001024\x00"},
		{[]string{"blksize", "7"}, ""},
		{[]string{"blksize", "65465"}, ""},
		{[]string{"blksize", "-1"}, ""},
		{[]string{"blksize", "1e3"}, ""},
		{[]string{"tsize", "0"}, "tsize\x003000\x00"},
		{[]string{"tsize", "0", "blksize", "1000"}, "blksize\x001000\x00tsize\x003000\x00"},
		{[]string{"timeout", "3"}, "timeout\x003\x00"},
		{[]string{"timeout", "0"}, ""},
		{[]string{"timeout", "30"}, "timeout\x0030\x00"},
		{[]string{"timeout", "31"}, ""},
		{[]string{"windowsize", "4"}, "windowsize\x004\x00"},
		{[]string{"windowsize", "65535"}, "windowsize\x0064\x00"},
		{[]string{"windowsize", "0"}, ""},
		{[]string{"multicast", "", "x"}, ""},
		{[]string{"blksize"}, ""},
	} {
		r := newRaw(t, at)
		r.request(opRead, append([]string{"file", "octet"}, c.options...)...)
		got := r.receive(soon)
		if c.want == "" && !strings.HasPrefix(got, dataHead(1)) || c.want != "" && got != "\x00\x06"+c.want {
			t.Errorf("%q: %.60q", c.options, got)
		}
		r.packet(r.tid, "\x00\x05\x00\x00enough\x00")
	}
}

// fetch fetches a file with a window. loses decides which data packets do not arrive.
func (r *raw) fetch(name string, block, window int, loses func(block int) bool) (got []byte) {
	r.t.Helper()
	r.request(opRead, name, "octet", "blksize", itoa(block), "windowsize", itoa(window))
	if first := r.receive(soon); !strings.HasPrefix(first, "\x00\x06") {
		r.t.Fatalf("%q", first)
	}
	r.ack(0)
	for last, inWindow := 0, 0; ; {
		p := r.receive(soon)
		if p == "" {
			r.t.Fatalf("nothing after block %d", last)
		}
		n := int(binary.BigEndian.Uint16([]byte(p[2:])))
		switch {
		case loses != nil && loses(last+1):
			continue
		case n != (last+1)&0xffff:
			r.ack(uint16(last)) // the packet before was lost, or this one is a repetition
			inWindow = 0
			continue
		}
		last++
		got = append(got, p[4:]...)
		if inWindow++; inWindow == window || len(p) < block+4 {
			r.ack(uint16(last))
			inWindow = 0
		}
		if len(p) < block+4 {
			return got
		}
	}
}

// TestWindows checks that files arrive complete in windows, with lost packets, and with more blocks than there are numbers.
func TestWindows(t *testing.T) {
	large, small := random(8*70_000+3), random(100*512)
	s, at, _ := start(t, map[string]string{"large": large, "small": small}, "")
	if got := newRaw(t, at).fetch("large", 8, 64, nil); string(got) != large {
		t.Errorf("%d octets of %d", len(got), len(large))
	}
	for _, window := range []int{1, 2, 7, 16} {
		lost := map[int]bool{}
		began := time.Now()
		got := newRaw(t, at).fetch("small", 512, window, func(block int) bool {
			if lost[block] || block != 3 && block != 28 && block != 50 {
				return false
			}
			lost[block] = true
			return true
		})
		if string(got) != small || len(lost) != 3 {
			t.Errorf("window %d: %d octets of %d, %d lost", window, len(got), len(small), len(lost))
		}
		t.Logf("window %d: %d packets lost, %v", window, len(lost), time.Since(began).Round(time.Millisecond))
	}
	await(t, "transfers stay", func() bool { d, _ := s.Diagnostics().(Diagnostics); return d.Active == 0 && d.Failed == 0 })
}

// TestRetries checks that a packet without an acknowledgement is repeated after the requested timeout, that an acknowledgement that is
// repeated causes no packet, and that a client that has gone ends its transfer.
func TestRetries(t *testing.T) {
	s, at, _ := start(t, map[string]string{"file": random(3000)}, "")
	r := newRaw(t, at)
	r.request(opRead, "file", "octet", "timeout", "1")
	began := time.Now()
	first := r.receive(soon)
	if again := r.receive(soon); again != first || time.Since(began) < 800*time.Millisecond {
		t.Errorf("%q after %v", again, time.Since(began))
	}
	r.request(opRead, "file", "octet", "timeout", "1") // the client repeats its request: no second transfer
	r.ack(0)
	if got := r.receive(soon); !strings.HasPrefix(got, dataHead(1)) {
		t.Errorf("%.20q", got)
	}
	r.ack(1)
	if got := r.receive(soon); !strings.HasPrefix(got, dataHead(2)) {
		t.Errorf("%.20q", got)
	}
	r.ack(1)
	if got := r.receive(300 * time.Millisecond); got != "" {
		t.Errorf("a repeated acknowledgement got %.20q", got)
	}
	d, _ := s.Diagnostics().(Diagnostics)
	if d.Active != 1 || d.Refused[refusedRepeated] != 1 {
		t.Errorf("%+v", d)
	}
	if err := r.conn.Close(); err != nil { // the kernel answers the next packet with an ICMP error
		t.Fatal(err)
	}
	await(t, "the transfer stays", func() bool { d, _ := s.Diagnostics().(Diagnostics); return d.Active == 0 && d.Failed == 1 })
}

// TestTransfersAreLimited checks that one client cannot have all transfers.
func TestTransfersAreLimited(t *testing.T) {
	s, at, _ := start(t, map[string]string{"file": random(3000)}, `,"maxTransfers":8`)
	var all []*raw
	for range 3 {
		r := newRaw(t, at)
		r.request(opRead, "file", "octet")
		all = append(all, r)
	}
	await(t, "the third request is not refused", func() bool {
		d, _ := s.Diagnostics().(Diagnostics)
		return d.Active == 2 && d.Refused[refusedBusy] == 1
	})
	for _, r := range all[:2] {
		r.receive(soon)
		r.packet(r.tid, "\x00\x05\x00\x00enough\x00")
	}
	await(t, "transfers stay", func() bool { d, _ := s.Diagnostics().(Diagnostics); return d.Active == 0 })
	all[2].request(opRead, "file", "octet")
	if got := all[2].receive(soon); !strings.HasPrefix(got, dataHead(1)) {
		t.Errorf("%.20q", got)
	}
}

// TestContent checks that unchanged contents are not needed again, and that a stream that is not valid changes nothing.
func TestContent(t *testing.T) {
	one, two, three := random(100_000), "two", strings.Repeat("three", 1000)
	s, _, web := start(t, map[string]string{"1": one, "dir/2": two}, "")
	get := func(name string) string {
		t.Helper()
		rs, err := http.Get("http://" + web.String() + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rs.Body.Close() }()
		body, err := io.ReadAll(rs.Body)
		if err != nil || rs.StatusCode != 200 {
			return fmt.Sprint(rs.StatusCode, err)
		}
		return string(body)
	}
	first := s.Content()
	change, second := stream(t, first, 2, map[string]string{"1": one, "copy": one, "3": three}, one)
	if len(change) > 6000 {
		t.Errorf("the change has %d octets", len(change))
	}
	if err := s.ApplyContent(bytes.NewReader(change)); err != nil || s.Content() != second {
		t.Fatal(err)
	}
	if get("1") != one || get("copy") != one || get("3") != three || !strings.HasPrefix(get("dir/2"), "404") {
		t.Error("the tree is not the second one")
	}
	changed := bytes.Replace(change, []byte("three"), []byte("thrEE"), 1)
	missing, _ := stream(t, second, 3, map[string]string{"4": "four"}, "four")
	whole, _ := stream(t, "", 3, map[string]string{"4": "four"}, "four")
	otherFrom, _ := stream(t, first, 3, map[string]string{"1": one}, one)
	good, third := stream(t, second, 3, map[string]string{"1": one}, one)
	for name, data := range map[string][]byte{"another hash": bytes.Replace(changed, []byte(first), []byte(second), 1), "missing": missing,
		"missing in the whole": whole, "another revision": otherFrom, "truncated": good[:len(good)-1]} {
		if err := s.ApplyContent(bytes.NewReader(data)); err == nil || s.Content() != second || get("copy") != one {
			t.Errorf("%s: %v, %s", name, err, s.Content())
		}
	}
	if err := s.ApplyContent(bytes.NewReader(slices.Concat(good, missing))); err == nil || s.Content() != third || get("1") != one {
		t.Errorf("the good one of two: %v", err)
	}
	full, _ := stream(t, "", 1, map[string]string{"1": one})
	if err := s.ApplyContent(bytes.NewReader(slices.Concat(full, missing))); err == nil || s.Content() != third {
		t.Errorf("a whole one and a bad one: %v %s", err, s.Content())
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none")) // contents stay in memory
	if err := s.ApplyContent(bytes.NewReader(full)); err != nil || get("1") != one ||
		s.tree.Load().blobs[hashOf(one)].reader.(*space).file != nil {
		t.Error(err)
	}
}

// TestListeners checks that a change of the configuration keeps unchanged listeners, and that one that cannot be opened changes nothing.
func TestListeners(t *testing.T) {
	s, at, web := start(t, map[string]string{"file": random(3000)}, "")
	r := newRaw(t, at)
	r.request(opRead, "file", "octet")
	r.receive(soon)
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	configuration := fmt.Sprintf(`{"listen":[{"address":%q,"port":%d},{"address":"127.0.0.1","port":%d}]}`, at.Addr(), at.Port(),
		taken.LocalAddr().(*net.UDPAddr).Port)
	if err := s.Configure(json.RawMessage(configuration)); err == nil {
		t.Error("it listens at a port of another program")
	}
	if _, err := http.Get("http://" + web.String() + "/none"); err != nil {
		t.Error(err)
	}
	if err := s.Configure(fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%d}]}`, at.Addr(), at.Port())); err != nil {
		t.Fatal(err)
	}
	r.ack(1)
	if got := r.receive(soon); !strings.HasPrefix(got, dataHead(2)) {
		t.Errorf("the transfer has ended: %.20q", got)
	}
	if rs, err := http.Get("http://" + web.String() + "/none"); err == nil {
		_ = rs.Body.Close()
		t.Error("it still listens for HTTP")
	}
	await(t, "it is not healthy", func() bool { return len(s.Health()) == 0 })
}

// TestListenerSurvivesErrors checks that failures of the socket are counted, and that requests are answered after them.
func TestListenerSurvivesErrors(t *testing.T) {
	s, at, _ := start(t, map[string]string{"file": "content"}, "")
	s.mu.Lock()
	var conn *net.UDPConn
	for _, l := range s.listeners {
		if one, is := l.(*tftpListener); is {
			conn = one.conn
		}
	}
	s.mu.Unlock()
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	await(t, "failures are not counted", func() bool {
		d, _ := s.Diagnostics().(Diagnostics)
		return d.Refused[receiveFailed] > 5
	})
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, at)
	r.request(opRead, "file", "octet")
	if got := r.receive(soon); !strings.HasPrefix(got, dataHead(1)+"content") {
		t.Errorf("the answer is %q", got)
	}
}

// FuzzRequest checks that no packet makes the parser panic, and that each path in a request is a valid one.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x00\x01dir/pxe.0\x00octet\x00blksize\x001400\x00"))
	f.Add([]byte("\x00\x02x\x00mail\x00"))
	f.Add([]byte("\x00\x01..\\x\x00NETASCII\x00tsize\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := parseRequest(p)
		if err == nil && strings.Contains("/"+r.path+"/", "/../") {
			t.Errorf("%q: the path is %q", p, r.path)
		}
		_, _, _ = parseAnswer(p)
	})
}
