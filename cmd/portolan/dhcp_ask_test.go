package main

import (
	"strings"
	"testing"
)

// TestAskRefusesWrongArguments checks that arguments that no server can answer are refused by name, before a message is sent.
func TestAskRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		c    dhcpAskCommand
		want string
	}{
		"no address":       {dhcpAskCommand{Server: "host.example"}, "is not an IPv4 address"},
		"IPv6":             {dhcpAskCommand{Server: "::1"}, "is not an IPv4 address"},
		"any address":      {dhcpAskCommand{Server: "0.0.0.0"}, "is not the address of one server"},
		"multicast":        {dhcpAskCommand{Server: "224.0.0.1"}, "is not the address of one server"},
		"broadcast":        {dhcpAskCommand{Server: "255.255.255.255"}, "is not the address of one server"},
		"port 0":           {dhcpAskCommand{Server: "127.0.0.1:0"}, "is not the address of one server"},
		"port 70000":       {dhcpAskCommand{Server: "127.0.0.1:70000"}, "is not an IPv4 address"},
		"no MAC address":   {dhcpAskCommand{Server: "127.0.0.1", MACAddress: "zz"}, "is not a MAC address"},
		"eight octets":     {dhcpAskCommand{Server: "127.0.0.1", MACAddress: "02:00:00:00:00:01:02:03"}, "is not a MAC address"},
		"group":            {dhcpAskCommand{Server: "127.0.0.1", MACAddress: "ff:ff:ff:ff:ff:ff"}, "group or empty"},
		"zeros":            {dhcpAskCommand{Server: "127.0.0.1", MACAddress: "00:00:00:00:00:00"}, "group or empty"},
		"no network":       {dhcpAskCommand{Server: "127.0.0.1"}, "--network is required"},
		"length 33":        {dhcpAskCommand{Server: "127.0.0.1", Network: "10.0.0.0/33"}, "--network"},
		"length 0":         {dhcpAskCommand{Server: "127.0.0.1", Network: "0.0.0.0/0"}, "--network"},
		"length 32":        {dhcpAskCommand{Server: "127.0.0.1", Network: "10.0.0.1/32"}, "--network"},
		"network of IPv6":  {dhcpAskCommand{Server: "127.0.0.1", Network: "2001:db8::/64"}, "--network"},
		"long host name":   {dhcpAskCommand{Server: "127.0.0.1", HostName: strings.Repeat("a", 256)}, "--host-name"},
		"line in a name":   {dhcpAskCommand{Server: "127.0.0.1", HostName: "a\nb"}, "--host-name"},
		"nothing released": {dhcpAskCommand{Server: "127.0.0.1", Offer: true, Release: true}, "--release"},
	} {
		a, err := one.c.asker()
		if err == nil {
			_ = a.conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: %v, want %q", name, err, one.want)
		}
	}
	a, err := (&dhcpAskCommand{Server: "127.0.0.1:9", Network: "10.0.0.0/24", HostName: "lamp"}).asker()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.conn.Close(); err != nil {
		t.Error(err)
	}
	if got := visible("a\x1b[2Jb\n\tc\u009b"); got != "a\ufffd[2Jb\n\tc\ufffd" {
		t.Errorf("visible is %q", got)
	}
}
