package servicepoint

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestStartWithin checks that a process starts in the network namespace of its application, that the agent stays in its own, and that a
// namespace that does not exist is an error.
func TestStartWithin(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	name := fmt.Sprint("start", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Skipf("ip netns: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", name).Run() })
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	inside := func(namespace string) (string, error) {
		var out strings.Builder
		c := exec.Command("readlink", "/proc/self/ns/net")
		c.Stdout = &out
		if err := startWithin(namespace, c); err != nil {
			return "", err
		}
		err := c.Wait()
		return strings.TrimSpace(out.String()), err
	}
	for range 20 { // on several threads
		if got, err := inside(name); err != nil || got == own || got == "" {
			t.Errorf("in the namespace: %q, %v; the agent is in %s", got, err, own)
		}
		if got, err := inside(""); err != nil || got != own {
			t.Errorf("without one: %q, %v; the agent is in %s", got, err, own)
		}
	}
	if _, err := inside("missing-" + name); err == nil || !strings.Contains(err.Error(), "network namespace missing-") {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}
