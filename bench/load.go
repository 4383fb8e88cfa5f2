package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// child is a server process.
type child struct {
	cmd        *exec.Cmd
	addr       string // the address of the API or the bare server
	checkinURL string
	token      string
	extra      string
}

// spawn starts this program in a role. The role prints its addresses and token in one line.
func spawn(role, data, body string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, "-role", role, "-data", data, "-body", body)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 1 {
		c.stop()
		return nil, fmt.Errorf("the %s does not start: %q %w", role, line, err)
	}
	c.addr = words[0]
	if len(words) > 3 {
		c.checkinURL, c.token, c.extra = words[1], words[2], words[3]
	}
	return c, nil
}

// memory is the peak memory of the managers of this run.
var memory struct {
	// now is the current measurement. of is the measurement with the peak, and mib the peak in MiB.
	now, of string
	mib     float64
}

// stop ends the process and records the memory of a manager.
func (c *child) stop() {
	if mib, err := c.resident(); err == nil && c.token != "" {
		if mib > memory.mib {
			memory.mib, memory.of = mib, memory.now
		}
	}
	_ = c.cmd.Process.Signal(os.Interrupt)
	_ = c.cmd.Wait()
}

// resident returns the peak resident memory of the process, in MiB (VmHWM).
func (c *child) resident() (float64, error) {
	return status(c.cmd.Process.Pid, "VmHWM:")
}

// residentNow returns the resident memory of the process, in MiB (VmRSS).
func (c *child) residentNow() (float64, error) {
	return status(c.cmd.Process.Pid, "VmRSS:")
}

func status(pid int, name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("no " + name + " in the status of the process")
}

// connection sends prepared requests over one connection and reads the responses with minimal work.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dial(addr string, config *tls.Config) (*connection, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if config != nil {
		conn = tls.Client(conn, config)
	}
	return &connection{conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

// request returns an HTTP request.
func request(method, path, token, body string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

// do sends a request and returns the status and the body. The body is nil unless want is true.
func (c *connection) do(rq []byte, want bool) (int, []byte, error) {
	if _, err := c.conn.Write(rq); err != nil {
		return 0, nil, err
	}
	line, err := c.reader.ReadSlice('\n')
	if err != nil || len(line) < 12 {
		return 0, nil, fmt.Errorf("no status line: %q %w", line, err)
	}
	code, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, nil, err
	}
	length, chunked := 0, false
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		if len(line) <= 2 {
			break
		}
		switch {
		case len(line) > 16 && strings.EqualFold(string(line[:15]), "content-length:"):
			if length, err = strconv.Atoi(strings.TrimSpace(string(line[15:]))); err != nil {
				return 0, nil, err
			}
		case len(line) > 18 && strings.EqualFold(string(line[:18]), "transfer-encoding:"):
			chunked = true
		}
	}
	var body []byte
	read := func(n int) error {
		if want {
			part := make([]byte, n)
			if _, err := io.ReadFull(c.reader, part); err != nil {
				return err
			}
			body = append(body, part...)
			return nil
		}
		_, err := c.reader.Discard(n)
		return err
	}
	if !chunked {
		return code, body, read(length)
	}
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return 0, nil, err
		}
		if err := read(int(n)); err != nil {
			return 0, nil, err
		}
		if _, err := c.reader.Discard(2); err != nil {
			return 0, nil, err
		}
		if n == 0 {
			return code, body, nil
		}
	}
}

// rate loads a server with several connections and returns responses per second. next returns the n-th request of a client.
func rate(addr string, config func(client int) *tls.Config, clients int, length time.Duration, want int,
	next func(client, n int) []byte) (float64, error) {
	return rateOf([]string{addr}, config, clients, length, want, next)
}

// rateOf is rate with the clients spread over several servers.
func rateOf(addrs []string, config func(client int) *tls.Config, clients int, length time.Duration, want int,
	next func(client, n int) []byte) (float64, error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	ready := make(chan struct{})
	var measuring atomic.Bool
	stop := make(chan struct{})
	var connected sync.WaitGroup
	for client := range clients {
		connected.Add(1)
		all.Go(func() {
			var tlsConfig *tls.Config
			if config != nil {
				tlsConfig = config(client)
			}
			c, err := dial(addrs[client%len(addrs)], tlsConfig)
			if err == nil { // the first request includes the handshake
				_, _, err = c.do(next(client, 0), false)
			}
			connected.Done()
			<-ready
			for n := 1; err == nil; n++ {
				select {
				case <-stop:
					_ = c.conn.Close()
					return
				default:
				}
				var code int
				if code, _, err = c.do(next(client, n), false); err == nil && code != want {
					err = fmt.Errorf("an answer of %d, want %d", code, want)
				}
				if measuring.Load() {
					done.Add(1)
				}
			}
			failed.Store(&err)
		})
	}
	connected.Wait()
	close(ready)
	time.Sleep(length / 6) // warm-up, not measured
	start := time.Now()
	measuring.Store(true)
	time.Sleep(length)
	measuring.Store(false)
	took := time.Since(start)
	close(stop)
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / took.Seconds(), nil
}

// latency returns the median duration of sequential requests.
func latency(addr string, times int, want int, rq func(n int) []byte) (time.Duration, error) {
	c, err := dial(addr, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	var all []time.Duration
	for n := range times {
		start := time.Now()
		code, body, err := c.do(rq(n), want != code200)
		if err != nil {
			return 0, err
		}
		if code != want {
			return 0, fmt.Errorf("an answer of %d, want %d: %s", code, want, body)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

const code200 = 200
