package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnsible checks that the Ansible collection creates the resources of a playbook once, that check mode only tries it, and that hosts
// can be an inventory.
func TestAnsible(t *testing.T) {
	t.Parallel()
	ansible := os.Getenv("PORTOLAN_TEST_ANSIBLE") // the directory of ansible-playbook; make ansible-test sets it
	if ansible == "" {
		t.Skip("Ansible is not here: make ansible-test")
	}
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("play.yml", `
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - portolan.network.resources:
        into: configurations/main
        resources:
          - {type: IPv4Network, range: 10.1.0.0/24, name: office}
          - {type: IPv4Block, range: 10.0.0.0/8}
          - {type: View, name: inside}
          - {type: Zone, absoluteName: lab.example}
          - {type: HostRecord, absoluteName: www.lab.example, addresses: [10.1.0.10]}
    - portolan.network.assign: {path: networks/10.1.0.0/24, name: printer}
      register: printer
      when: not ansible_check_mode
    - portolan.network.info: {path: networks, filter: "range:within('10.0.0.0/8')", fields: "range"}
      register: networks
    - ansible.builtin.debug:
        msg: "printer {{ printer.resource.address }}, networks {{ networks.resources | map(attribute='range') | join(' ') }}"
      when: not ansible_check_mode
`)
	write("hosts.portolan.yml", "plugin: portolan.network.hosts\n")
	run := func(program string, args ...string) string {
		t.Helper()
		collections, err := filepath.Abs("../clients/ansible")
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(filepath.Join(ansible, program), args...)
		c.Dir = dir
		c.Env = m.environment("ANSIBLE_COLLECTIONS_PATH="+collections, "ANSIBLE_LOCALHOST_WARNING=false",
			"ANSIBLE_INVENTORY_ENABLED=portolan.network.hosts",
			"PYTHONDONTWRITEBYTECODE=1", "ANSIBLE_HOME="+filepath.Join(dir, "home"), "ANSIBLE_NOCOLOR=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := run("ansible-playbook", "--check", "--diff", "play.yml"); !strings.Contains(out, "IPv4Network 10.1.0.0/24") {
		t.Errorf("check mode says\n%s", out)
	}
	if n := m.portolan("list", "networks", "--total"); n != "0" {
		t.Errorf("check mode made %s networks", n)
	}
	if out := run("ansible-playbook", "play.yml"); !strings.Contains(out, "printer 10.1.0.2, networks 10.1.0.0/24") ||
		!strings.Contains(out, "changed=2") {
		t.Errorf("the play says\n%s", out)
	}
	if out := run("ansible-playbook", "play.yml"); !strings.Contains(out, "printer 10.1.0.2") || !strings.Contains(out, "changed=0") {
		t.Errorf("again, the play says\n%s", out)
	}
	if out := run("ansible-inventory", "-i", "hosts.portolan.yml", "--list"); !strings.Contains(out, `"10.1.0.10"`) ||
		!strings.Contains(out, `"lab_example"`) {
		t.Errorf("the inventory is\n%s", out)
	}
	m.check()
}
