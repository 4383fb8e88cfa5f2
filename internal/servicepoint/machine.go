package servicepoint

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/wire/checkin"

	"github.com/beevik/ntp"
)

// machineInterval is the interval of machine checks. ntpLimit is the timeout of an NTP server. maxClockOffset is the largest offset of a
// synchronized clock: the step threshold of NTP (RFC 5905 section 12).
const (
	machineInterval = 5 * time.Minute
	ntpLimit        = 5 * time.Second
	maxClockOffset  = 128 * time.Millisecond
)

// machine collects the state of the machine.
type machine struct {
	dir     string
	log     *slog.Logger
	changed func()
	// wake contains a token when the NTP servers have changed.
	wake chan struct{}

	mu sync.Mutex
	// The following fields are guarded by mu. idle and total are the processor ticks at the last check.
	servers     []string
	known       checkin.Machine
	idle, total uint64
}

func newMachine(dir string, log *slog.Logger, changed func()) *machine {
	m := &machine{dir: dir, log: log, changed: changed, wake: make(chan struct{}, 1)}
	m.known.Platform = platform()
	return m
}

// current returns the last collected state.
func (m *machine) current() checkin.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// setServers sets the NTP servers and starts a check.
func (m *machine) setServers(servers []string) {
	m.mu.Lock()
	m.servers = servers
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // a check is pending already
	}
}

// run checks the machine until ctx ends.
func (m *machine) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.refresh(ctx)
		timer := time.NewTimer(machineInterval)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.wake:
		}
		timer.Stop()
	}
}

func (m *machine) refresh(ctx context.Context) {
	m.mu.Lock()
	servers, idle, total := m.servers, m.idle, m.total
	m.mu.Unlock()
	next := m.current()
	next.NTPStatus = m.ntpStatus(ctx, servers)
	next.Resources, idle, total = resources(m.dir, idle, total)
	m.mu.Lock()
	moved := m.known != next
	m.known, m.idle, m.total = next, idle, total
	m.mu.Unlock()
	if moved {
		m.changed()
	}
}

// ntpStatus returns the clock status from the first NTP server that answers. Without servers the kernel reports whether its clock is
// synchronized.
func (m *machine) ntpStatus(ctx context.Context, servers []string) checkin.NTPStatus {
	for _, server := range servers {
		if ctx.Err() != nil {
			break
		}
		answer, err := ntp.QueryWithOptions(server, ntp.QueryOptions{Timeout: ntpLimit, Dialer: func(_, remote string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: ntpLimit}).DialContext(ctx, "udp", remote)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() }) // the end of ctx does not wait for the timeout
			}
			return conn, err
		}})
		if err == nil {
			err = answer.Validate()
		}
		if err != nil {
			m.log.Warn("NTP query failed", "server", server, "reason", err)
			continue
		}
		return checkin.NTPStatus{Stratum: strconv.Itoa(int(answer.Stratum)), Synchronized: answer.ClockOffset.Abs() <= maxClockOffset,
			OffsetMillis: answer.ClockOffset.Round(50 * time.Millisecond).Milliseconds()} // rounded, so that it seldom changes
	}
	return checkin.NTPStatus{Synchronized: len(servers) == 0 && clockSynchronized()}
}

// roundTo rounds n to a multiple of to, so that it seldom changes.
func roundTo(n, to int) int { return (n + to/2) / to * to }

// resources reads the resources of the machine. idle and total are the processor ticks at the last check; the results are those of now.
func resources(dir string, idle, total uint64) (r checkin.Resources, idleNow, totalNow uint64) {
	r.CPU.Cores = runtime.NumCPU()
	r.CPU.FrequencyMHz = int(kernelNumber("/proc/cpuinfo", "cpu MHz"))
	idleNow, totalNow = cpuTicks()
	if totalNow > total {
		r.CPU.IdlePercent = roundTo(int((idleNow-idle)*100/(totalNow-total)), 10) //nolint:gosec // up to 100
	}
	r.Memory.TotalMB = int(kernelNumber("/proc/meminfo", "MemTotal") / 1024)
	r.Memory.FreeMB = roundTo(int(kernelNumber("/proc/meminfo", "MemAvailable")/1024), max(1, r.Memory.TotalMB/20))
	r.Disk.VarTotalMB, r.Disk.VarFreeMB = diskSizes(dir)
	r.Disk.VarFreeMB = roundTo(r.Disk.VarFreeMB, max(1, r.Disk.VarTotalMB/50))
	return r, idleNow, totalNow
}

// kernelNumber returns the first number after a name in a file of the kernel; 0 if there is none.
func kernelNumber(path, name string) float64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			value, _, _ := strings.Cut(strings.TrimLeft(rest, " \t:"), " ")
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

// cpuTicks returns the idle and total processor ticks since the system's start; zeros if they are not available.
func cpuTicks() (idle, total uint64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			continue // the label
		}
		total += n
		if i == 4 {
			idle = n
		}
	}
	return idle, total
}
