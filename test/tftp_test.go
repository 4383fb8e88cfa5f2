package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
)

// upload sends a file with its content, and returns its id. method is POST to a group or folder, PUT to a file.
func (m *manager) upload(method, path, name, content string) string {
	m.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	info := fmt.Sprintf(`{"type":"TFTPFile","name":%q}`, name)
	if err := w.WriteField("fileInfo", info); err != nil {
		m.t.Fatal(err)
	}
	part, err := w.CreateFormFile("fileData", name)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	status, text, err := callWith(m.t.Context(), method, "http://"+m.api+"/api/v2"+path, m.token, body.String(),
		map[string]string{"Content-Type": w.FormDataContentType()})
	var made struct{ ID int64 }
	if err != nil || status/100 != 2 || json.Unmarshal([]byte(text), &made) != nil {
		m.t.Fatal(status, text, err)
	}
	return strconv.FormatInt(made.ID, 10)
}

// TestFilesOnTheWire checks that files that were uploaded by the API are fetched by TFTP and HTTP after a deployment. A change sends the
// changed file only. The files are served without the manager after a restart of the agent.
func TestFilesOnTheWire(t *testing.T) {
	t.Parallel()
	curl := peers.Program(t, "curl")
	onBoth(t, func(t *testing.T, database string) { serveFiles(t, database, curl) })
}

func serveFiles(t *testing.T, database, curl string) {
	t.Helper()
	m := serve(t, database)
	configuration := m.id("/configurations", `{"name":"main"}`)
	group := m.id("/configurations/"+configuration+"/tftpGroups", `{"name":"boot"}`)
	other := m.id("/configurations/"+configuration+"/tftpGroups", `{"name":"phones"}`)
	kernel := strings.Repeat("kernel-", 400_000) // 2.8 MB, in three parts
	folder := m.id("/tftpGroups/"+group+"/files", `{"type":"TFTPFolder","name":"images"}`)
	m.upload("POST", "/files/"+folder+"/files", "vmlinuz", kernel)
	loader := m.upload("POST", "/tftpGroups/"+group+"/files", "pxe.0", "first")
	phones := m.id("/tftpGroups/"+other+"/files", `{"type":"TFTPFolder","name":"images"}`) // merged with the other folder
	m.upload("POST", "/files/"+phones+"/files", "phone.cfg", "ring")

	a := &authority{fleetPoint: &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state")}}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(a.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	a.start(created.RegistrationKey)
	stop := func() {
		if err := a.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, a.process.text())
		}
	}
	t.Cleanup(func() { stop() })
	tftp, web := freeport.Reserve(t), freeport.Reserve(t)
	file := filepath.Join(t.TempDir(), "tftp.json")
	listener := func(at netip.AddrPort) string { return fmt.Sprintf(`[{"address":%q,"port":%d}]`, at.Addr(), at.Port()) }
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"listen":%s,"http":%s}`, listener(tftp), listener(web)), 0o600); err != nil {
		t.Fatal(err)
	}
	a.server = m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"boot1","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+
		created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"boot1","managementAddress":"192.0.2.53"}]}`)
	deploy := func(state, says string) string {
		t.Helper()
		got, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"TFTP"}`)
		if got != state || !strings.Contains(message, says) {
			t.Fatalf("a deployment is %s: %s", got, message)
		}
		return message
	}
	deploy("FAILED", "tftp-service")
	a.fleet("deploy", "edge", "tftp-service", "--configuration", file)
	a.becomes("HEALTHY")
	deploy("COMPLETED_WITH_WARNINGS", "no TFTP role")
	for _, one := range []string{group, other} {
		m.id("/tftpGroups/"+one+"/deploymentRoles", `{"type":"TFTPDeploymentRole","server":{"id":`+a.server+`}}`)
	}
	deploy("COMPLETED", "3 files, 3 of them changed: 2800009 bytes to send, 0 removed")
	get := func(url string) string {
		into := filepath.Join(t.TempDir(), "file")
		out, err := exec.Command(curl, "-sS", "--fail", "--max-time", "20", "-o", into, url).CombinedOutput()
		got, failed := os.ReadFile(into)
		if err != nil || failed != nil {
			return fmt.Sprintf("%v %v %s", err, failed, out)
		}
		return string(got)
	}
	serves := func(path, want string) {
		t.Helper()
		for _, url := range []string{"tftp://" + tftp.String() + "/" + path, "http://" + web.String() + "/" + path} {
			if got := get(url); got != want {
				t.Fatalf("%s has %d octets, %.100q", url, len(got), got)
			}
		}
	}
	serves("images/vmlinuz", kernel)
	serves("images/phone.cfg", "ring")
	serves("pxe.0", "first")

	m.upload("PUT", "/files/"+loader, "pxe.0", "second")
	serves("pxe.0", "first") // not deployed yet
	deploy("COMPLETED", "3 files, 1 of them changed: 6 bytes to send, 0 removed")
	serves("pxe.0", "second")
	streams, err := filepath.Glob(filepath.Join(a.state, "content", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := os.Stat(streams[len(streams)-1])
	if err != nil || last.Size() > 4096 {
		t.Errorf("the change of one file is a stream of %d octets, %v", last.Size(), err)
	}
	deploy("COMPLETED", "0 of them changed: 0 bytes")
	if text := m.portolan("deploy", "server", "boot1", "--service", "TFTP", "--url", "http://"+m.api, "--token", m.token); !strings.Contains(
		text, "3 files") {
		t.Errorf("the command says %s", text)
	}
	conflict := m.upload("POST", "/files/"+phones+"/files", "vmlinuz", "another")
	deploy("FAILED", `have the same path "images/vmlinuz"`)
	if status, text, err := m.call("DELETE", "/files/"+conflict, ""); status != http.StatusNoContent {
		t.Fatal(status, text, err)
	}

	_ = m.process.signal(syscall.SIGKILL)
	stop()
	a.start("")
	if !until(func() bool { return get("http://"+web.String()+"/pxe.0") == "second" }) {
		t.Fatalf("it does not serve without the manager:\n%s", a.process.text())
	}
	serves("images/vmlinuz", kernel)
	m.start()
	if status, text, err := m.call("DELETE", "/tftpGroups/"+group, ""); status != http.StatusNoContent {
		t.Fatal(status, text, err)
	}
	a.becomes("HEALTHY")
	if state, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"TFTP"}`); !regexp.MustCompile(
		`^1 file, 0 of them changed: 0 bytes to send, 2 removed`).MatchString(message) || state != "COMPLETED" {
		t.Errorf("%s %s", state, message)
	}
	if got := get("tftp://" + tftp.String() + "/pxe.0"); !strings.Contains(got, "exit status 68") {
		t.Errorf("a deleted file is %.100q", got)
	}
	events := m.count("/events", `category:"DEPLOYMENT" and subcategory:"TFTP"`)
	if events == 0 {
		t.Error("deployments of TFTP have raised no events")
	}
}
