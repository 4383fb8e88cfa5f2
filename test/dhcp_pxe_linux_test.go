package test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/testkit/peers"
)

// TestPXEBoot checks that a client with the vendor class of a PXE ROM gets the name of its boot program by a client class, and fetches it
// by TFTP from the server that the reply names. One service point serves both.
func TestPXEBoot(t *testing.T) {
	t.Parallel()
	udhcpc, curl := peers.Program(t, "udhcpc"), peers.Program(t, "curl")
	l := newSourceLab(t, "pxe")
	s := newSourceManager(t, l)
	l.address(l.server, "s0", netip.MustParseAddr("192.0.2.254"), 24)
	block := s.m.id("/configurations/"+s.configuration+"/blocks", `{"type":"IPv4Block","range":"192.0.2.0/24"}`)
	network := s.m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"192.0.2.0/24"}`)
	s.m.id("/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"192.0.2.100-192.0.2.110"}`)
	s.m.id("/networks/"+network+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"next-server","value":"192.0.2.254"}`)
	class := s.m.id("/configurations/"+s.configuration+"/clientClasses", `{"name":"efi","matchExpression":"if substring(option `+
		`vendor-class-identifier, 0, 20) = \"PXEClient:Arch:00007\""}`)
	for at, file := range map[string]string{"networks/" + network: "bios/pxe.0", "clientClasses/" + class: "efi/boot.efi"} {
		s.m.id("/"+at+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"filename","value":"`+file+`"}`)
	}
	var interfaces struct{ Data []struct{ ID int64 } }
	l.get(s.m, "/servers/"+s.server+"/interfaces", &interfaces)
	if len(interfaces.Data) != 1 {
		t.Fatalf("the server has the interfaces %v", interfaces.Data)
	}
	s.m.id("/networks/"+network+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+
		strconv.FormatInt(interfaces.Data[0].ID, 10)+`}]}`)
	group := s.m.id("/configurations/"+s.configuration+"/tftpGroups", `{"name":"boot"}`)
	s.m.id("/tftpGroups/"+group+"/deploymentRoles", `{"type":"TFTPDeploymentRole","server":{"id":`+s.server+`}}`)
	for folder, file := range map[string]string{"bios": "pxe.0", "efi": "boot.efi"} {
		at := s.m.id("/tftpGroups/"+group+"/files", `{"type":"TFTPFolder","name":"`+folder+`"}`)
		s.m.upload("POST", "/files/"+at+"/files", file, "program of "+folder)
	}
	s.serves("DHCPv4")
	settings := filepath.Join(t.TempDir(), "tftp.json")
	if err := os.WriteFile(settings, []byte(`{"listen":[{"address":"192.0.2.254","port":69}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.fleet("deploy", s.point, "tftp-service", "--configuration", settings)
	if !until(func() bool {
		state, _ := s.deploy("/servers/"+s.server+"/deployments", `{"type":"FullDeployment","service":"TFTP"}`)
		return state == "COMPLETED"
	}) {
		t.Fatalf("the files are not deployed:\n%s", s.process.text())
	}
	script, reply := filepath.Join(l.dir, "script"), filepath.Join(l.dir, "reply")
	text := "#!/bin/sh\n[ \"$1\" = bound ] || exit 0\nip address replace $ip/24 dev c0\necho \"tftp://$siaddr/$boot_file\" >" + reply + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	for class, want := range map[string]string{"PXEClient:Arch:00000:UNDI:002001": "bios", "PXEClient:Arch:00007:UNDI:003016": "efi"} {
		if out, err := exec.Command("ip", "netns", "exec", l.client, udhcpc, "-f", "-q", "-n", "-t", "10", "-T", "2", "-i", "c0", "-s", script,
			"-V", class).CombinedOutput(); err != nil {
			t.Fatalf("udhcpc: %v\n%s\n%s", err, out, s.process.text())
		}
		url, err := os.ReadFile(reply)
		if err != nil {
			t.Fatal(err)
		}
		fetch := []string{"netns", "exec", l.client, curl, "-sS", "--max-time", "20", strings.TrimSpace(string(url))}
		out, err := exec.Command("ip", fetch...).CombinedOutput()
		if err != nil || string(out) != "program of "+want {
			t.Errorf("a client of the class %s fetches %s: %v\n%s", class, url, err, out)
		}
	}
}
