package snmpwalk

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
)

// startFake starts an agent whose answers are computed by answer: the message to send, or nil for none.
func startFake(t *testing.T, answer func(request *gosnmp.SnmpPacket) []byte) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	go func() {
		defer close(done)
		decoder := gosnmp.GoSNMP{Version: gosnmp.Version2c}
		buffer := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			request, err := decoder.SnmpDecodePacket(buffer[:n])
			if err != nil {
				continue
			}
			if text := answer(request); text != nil {
				if _, err := conn.WriteTo(text, from); err != nil {
					return
				}
			}
		}
	}()
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

// reply returns the answer to a request with some rows.
func reply(request *gosnmp.SnmpPacket, failure gosnmp.SNMPError, rows ...gosnmp.SnmpPDU) []byte {
	p := *request
	p.PDUType, p.Error, p.Variables = gosnmp.GetResponse, failure, rows
	text, err := p.MarshalMsg()
	if err != nil {
		panic(err)
	}
	return text
}

// isGet reports a request for one value, which the fakes answer with a text.
func isGet(request *gosnmp.SnmpPacket) bool { return request.PDUType == gosnmp.GetRequest }

func text(oid, value string) gosnmp.SnmpPDU {
	return gosnmp.SnmpPDU{Name: oid, Type: gosnmp.OctetString, Value: value}
}

// TestHostileAgents checks that devices that loop, answer garbage, errors or endless tables end in a device with problems, or in an error.
func TestHostileAgents(t *testing.T) {
	first := func(request *gosnmp.SnmpPacket) string { return request.Variables[0].Name }
	for name, one := range map[string]struct {
		answer  func(request *gosnmp.SnmpPacket) []byte
		problem string
	}{
		"loop": {func(r *gosnmp.SnmpPacket) []byte {
			return reply(r, 0, text(first(r), "x"))
		}, errLoop.Error()},
		"backwards": {func(r *gosnmp.SnmpPacket) []byte {
			if isGet(r) {
				return reply(r, 0, text(first(r), "x"))
			}
			return reply(r, 0, text(".1.3.6.1.2.1.1.1.0", "x"))
		}, errLoop.Error()},
		"endless": {func(r *gosnmp.SnmpPacket) []byte {
			if isGet(r) {
				return reply(r, 0, text(first(r), "x"))
			}
			oid, _ := parseOID(first(r))
			next := first(r) + ".1"
			if len(oid) > 20 {
				parts := strings.Split(first(r), ".")
				next = strings.Join(parts[:len(parts)-1], ".") + "." + nextNumber(parts[len(parts)-1])
			}
			return reply(r, 0, text(next, "x"))
		}, errTruncated.Error()},
		"errors": {func(r *gosnmp.SnmpPacket) []byte {
			if isGet(r) {
				return reply(r, 0, text(first(r), "x"))
			}
			return reply(r, gosnmp.GenErr)
		}, "GenErr"},
		"silent": {func(r *gosnmp.SnmpPacket) []byte {
			if isGet(r) {
				return reply(r, 0, text(first(r), "x"))
			}
			return nil
		}, "timeout"},
		"garbage": {func(r *gosnmp.SnmpPacket) []byte {
			whole := reply(r, 0, text(first(r), "x"))
			if isGet(r) {
				return whole
			}
			return whole[:len(whole)-3]
		}, ""},
		"nothing": {func(r *gosnmp.SnmpPacket) []byte {
			if isGet(r) {
				return reply(r, 0, text(first(r), "x"))
			}
			return reply(r, 0)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, timeout := startFake(t, one.answer), 10*time.Second
			if name == "silent" || name == "garbage" { // each request waits for the end of the time
				timeout = 20 * time.Millisecond
			}
			d, err := Read(t.Context(), Target{Address: at, Version: V2c, Communities: []string{"c"}, Timeout: timeout, Retries: 1,
				MaxRows: 50})
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(d.Problems, "; "); !strings.Contains(all, one.problem) ||
				one.problem == "" && len(d.Neighbours)+len(d.Stations) > 0 {
				t.Errorf("the problems are %q", all)
			}
		})
	}
}

// nextNumber returns the number after a number.
func nextNumber(text string) string {
	oid, _ := parseOID(text)
	return strconv.FormatUint(uint64(oid[0])+1, 10)
}

// TestBulkFallback checks that a device that answers GETNEXT only is read, and asked with GETBULK once.
func TestBulkFallback(t *testing.T) {
	var bulk atomic.Int32
	at := startFake(t, func(r *gosnmp.SnmpPacket) []byte {
		switch {
		case isGet(r):
			return reply(r, 0, text(r.Variables[0].Name, "old"))
		case r.PDUType == gosnmp.GetBulkRequest:
			bulk.Add(1)
			return reply(r, gosnmp.GenErr)
		case r.Variables[0].Name == ifName:
			return reply(r, 0, text(ifName+".3", "port"))
		}
		return reply(r, 0, gosnmp.SnmpPDU{Name: r.Variables[0].Name, Type: gosnmp.EndOfMibView})
	})
	d, err := Read(t.Context(), Target{Address: at, Version: V2c, Communities: []string{"c"}, Timeout: 10 * time.Second})
	if err != nil || len(d.Problems) > 0 || d.PortName(3) != "port" || bulk.Load() != 1 {
		t.Errorf("%+v, %v after %d requests GETBULK", d, err, bulk.Load())
	}
}

// TestReadStops checks that the end of the context ends a read of a silent device.
func TestReadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	at := startFake(t, func(*gosnmp.SnmpPacket) []byte { cancel(); return nil })
	_, err := Read(ctx, Target{Address: at, Version: V2c, Communities: []string{"a", "b"}, Timeout: time.Minute})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the read ends with %v", err)
	}
}

// FuzzIndexes checks that no index of a table causes a panic or an invalid address.
func FuzzIndexes(f *testing.F) {
	f.Add("1.1.4.10.0.0.1")
	f.Add("1.4.20.254.128.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.2")
	f.Fuzz(func(t *testing.T, name string) {
		index, ok := parseOID(name)
		if !ok {
			return
		}
		for _, read := range []func([]uint32) (netip.Addr, bool){mediaAddress, physicalAddress} {
			if a, ok := read(index); ok && !a.IsValid() {
				t.Errorf("%s has an invalid address", name)
			}
		}
	})
}
