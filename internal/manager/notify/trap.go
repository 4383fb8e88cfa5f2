package notify

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"portolan/internal/engine/event"

	"github.com/gosnmp/gosnmp"
)

// Traps is a receiver of SNMP traps, version 2c (RFC 3416 section 4.2.6).
type Traps struct {
	host, community string
	port            uint16
}

// trapTime is the timeout of sending a trap.
const trapTime = 5 * time.Second

// ParseTraps parses the URL of a receiver of traps: snmp://COMMUNITY@HOST:PORT. The default port is 162.
func ParseTraps(text string) (*Traps, error) {
	u, err := url.Parse(text)
	bad := errors.New("the receiver of traps must be a URL such as snmp://public@192.0.2.1:162")
	if err != nil || u.Scheme != "snmp" || u.Hostname() == "" || u.User.Username() == "" {
		return nil, bad
	}
	t := &Traps{host: u.Hostname(), community: u.User.Username(), port: 162}
	if u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			return nil, bad
		}
		t.port = uint16(port)
	}
	return t, nil
}

// The objects of a trap. They are in the subtree for experiments (netSnmpPlaypen), as Portolan has no enterprise number.
const (
	trapOID    = ".1.3.6.1.6.3.1.1.4.1.0"
	eventTrap  = ".1.3.6.1.4.1.8072.9999.9999.1"
	eventField = ".1.3.6.1.4.1.8072.9999.9999.1."
)

// send sends an event. Traps are not acknowledged.
func (t *Traps) send(ctx context.Context, e *event.Event) error {
	g := &gosnmp.GoSNMP{Context: ctx, Target: t.host, Port: t.port, Community: t.community, Version: gosnmp.Version2c, Timeout: trapTime,
		MaxOids: gosnmp.MaxOids}
	if err := g.Connect(); err != nil {
		return err
	}
	defer func() { _ = g.Conn.Close() }()
	trap := gosnmp.SnmpTrap{Variables: []gosnmp.SnmpPDU{{Name: trapOID, Type: gosnmp.ObjectIdentifier, Value: eventTrap}}}
	for i, text := range []string{e.Category, e.EventType, e.SourceName, e.Message, e.DateTime.UTC().Format(time.RFC3339)} {
		trap.Variables = append(trap.Variables, gosnmp.SnmpPDU{Name: eventField + strconv.Itoa(i+1), Type: gosnmp.OctetString, Value: text})
	}
	_, err := g.SendTrap(trap)
	return err
}
