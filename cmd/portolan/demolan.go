package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// demoSegment is a network segment of the demo: two network namespaces with a link between their interfaces lan0 and eth0. The DHCP server
// runs in one, clients run in the other. Neither is connected to another network.
type demoSegment struct{ server, client string }

// demoPrefix begins the names of the demo's network namespaces. The number of the process follows.
const demoPrefix = "portolan-demo-"

// createSegment creates the segment; nil if this machine does not permit it. The caller removes it.
func createSegment(ctx context.Context, log *slog.Logger) *demoSegment {
	if _, err := exec.LookPath("ip"); err != nil || runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return nil
	}
	s := &demoSegment{server: fmt.Sprint(demoPrefix, os.Getpid()), client: fmt.Sprint(demoPrefix, os.Getpid(), "-client")}
	removeSegments(ctx, log)
	for _, command := range []string{
		"netns add " + s.server, "netns add " + s.client,
		"link add lan0 netns " + s.server + " type veth peer name eth0 netns " + s.client,
		"-n " + s.server + " address add " + demoLAN.address + "/24 dev lan0",
		"-n " + s.server + " link set lo up", "-n " + s.server + " link set lan0 up",
		"-n " + s.client + " link set lo up", "-n " + s.client + " link set eth0 up"} {
		if err := runIP(ctx, command); err != nil {
			log.Info("demo network segment not available", "error", err)
			s.remove(ctx, log)
			return nil
		}
	}
	return s
}

// remove deletes the namespaces that exist.
func (s *demoSegment) remove(ctx context.Context, log *slog.Logger) {
	names, err := demoNamespaces(ctx)
	for _, name := range names {
		if name == s.server || name == s.client {
			err = errors.Join(err, runIP(ctx, "netns delete "+name))
		}
	}
	if err != nil {
		log.Warn("demo network segment not removed", "error", err)
	}
}

// removeSegments deletes the namespaces of demos that were killed.
func removeSegments(ctx context.Context, log *slog.Logger) {
	names, err := demoNamespaces(ctx)
	for _, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, demoPrefix), "-")
		if _, e := strconv.Atoi(number); e != nil {
			continue // not ours
		}
		if _, e := os.Stat("/proc/" + number); errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, runIP(ctx, "netns delete "+name))
		}
	}
	if err != nil {
		log.Warn("demo network segment not removed", "error", err)
	}
}

// demoNamespaces returns the names of the network namespaces of all demos.
func demoNamespaces(ctx context.Context) (all []string, err error) {
	text, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, demoPrefix) {
			all = append(all, name)
		}
	}
	return all, err
}

// runIP runs ip of iproute2.
func runIP(ctx context.Context, command string) error {
	text, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(text)))
	}
	return nil
}

// namespaces returns the namespace of the DHCP server of a service point; nil if it runs in the namespace of the demo.
func (s *demoSegment) namespaces(servicePoint, application string) map[string]string {
	if s == nil || servicePoint != demoLAN.servicePoint {
		return nil
	}
	return map[string]string{application: s.server}
}

// command returns the command of a DHCP client that changes nothing on this machine; empty if none is installed.
func (s *demoSegment) command() string {
	if s == nil {
		return ""
	}
	if _, err := exec.LookPath("udhcpc"); err != nil {
		return ""
	}
	return "ip netns exec " + s.client + " udhcpc -i eth0 -f -q -n -s /bin/true"
}
