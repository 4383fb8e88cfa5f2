package leasefile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// keaHead begins the head of a file of Kea.
const keaHead = "address,"

// infiniteLifetime is the lifetime of a lease without an end (RFC 2131 section 3.3).
const infiniteLifetime = 1<<32 - 1

// keaStates are the states of leases, by their numbers in the column state.
var keaStates = []struct {
	name  string
	state State
}{{"default", Active}, {"declined", Abandoned}, {"expired-reclaimed", Inactive}, {"released", Inactive}, {"registered", Inactive}}

// The values of the column lease_type.
const (
	keaAddress   = "0"
	keaTemporary = "1"
	keaPrefix    = "2"
)

// keaRow is a line of a file of Kea, by column.
type keaRow map[string]string

// kea reads a file of Kea. A head may follow other lines, because a server has several files.
func (r *reader) kea(file []byte) {
	var columns []string
	for line := 1; len(file) > 0; line++ {
		text, rest, ended := bytes.Cut(file, []byte("\n"))
		file = rest
		one := strings.TrimRight(string(text), "\r")
		switch {
		case strings.TrimSpace(one) == "":
			continue
		case strings.HasPrefix(one, keaHead):
			columns, r.known = strings.Split(one, ","), true
			continue
		}
		cells := strings.Split(one, ",")
		a, _ := netip.ParseAddr(cells[0])
		if len(cells) != len(columns) {
			why := "the line has %d cells, but the head has %d"
			if !ended {
				why += ": the file is truncated here"
			}
			r.addFault(line, a, why, len(cells), len(columns))
			continue
		}
		row := make(keaRow, len(cells))
		for i, name := range columns {
			row[name] = keaText(cells[i])
		}
		l, err := row.lease()
		if err == nil {
			err = l.check()
		}
		if err != nil {
			r.addFault(line, a, "%w", err)
			continue
		}
		l.Line = line
		r.add(l)
	}
}

// keaEscape is the form of a character that has a meaning in the file, such as &#x2c for a comma.
var keaEscape = regexp.MustCompile("&#x[0-9a-fA-F]{2}")

// keaText returns the text of a cell.
func keaText(cell string) string {
	return keaEscape.ReplaceAllStringFunc(cell, func(code string) string {
		n, err := strconv.ParseUint(code[3:], 16, 8)
		if err != nil {
			return code
		}
		return string([]byte{byte(n)})
	})
}

// number returns the number in a column; 0 for an empty cell.
func (row keaRow) number(name string, bits int) (uint64, error) {
	text := row[name]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number", name, text)
	}
	return n, nil
}

// octets returns the octets in a column, which are hexadecimal digits.
func (row keaRow) octets(name string) ([]byte, error) {
	out, err := hex.DecodeString(strings.ReplaceAll(row[name], ":", ""))
	if err != nil {
		return nil, fmt.Errorf("%s: must be hexadecimal digits, such as 00:00:5e:00:53:01, not %q", name, row[name])
	}
	return out, nil
}

// lease returns the lease of a line.
func (row keaRow) lease() (l Lease, err error) {
	if l.Address, err = netip.ParseAddr(row["address"]); err != nil {
		return l, fmt.Errorf("%q is not an IP address", row["address"])
	}
	numbers := map[string]uint64{}
	for name, bits := range map[string]int{"valid_lifetime": 32, "expire": 63, "state": 8, "iaid": 32, "prefix_len": 8, "hwtype": 8} {
		if numbers[name], err = row.number(name, bits); err != nil {
			return l, err
		}
	}
	for name, to := range map[string]*[]byte{"hwaddr": &l.Hardware, "client_id": &l.ClientID, "duid": &l.DUID} {
		if *to, err = row.octets(name); err != nil {
			return l, err
		}
	}
	state, lifetime, expire := numbers["state"], numbers["valid_lifetime"], int64(numbers["expire"]) //nolint:gosec // 63 bits
	if state >= uint64(len(keaStates)) {
		return l, fmt.Errorf("the state %d is unknown", state)
	}
	l.State, l.Status = keaStates[state].state, keaStates[state].name
	l.HostName, l.IAID = row["hostname"], uint32(numbers["iaid"]) //nolint:gosec // 32 bits
	if len(l.Hardware) > 0 {
		l.HardwareType = max(uint8(numbers["hwtype"]), 1) //nolint:gosec // 8 bits
	}
	switch row["lease_type"] {
	case "", keaAddress, "IA_NA":
	case keaTemporary, "IA_TA":
		if l.State == Active {
			l.State = Temporary
		}
	case keaPrefix, "IA_PD":
		if l.PrefixLength = int(numbers["prefix_len"]); l.PrefixLength < 1 || l.PrefixLength > 128 || l.Address.Is4() { //nolint:gosec // 8 bits
			return l, fmt.Errorf("the prefix length %d is invalid", l.PrefixLength)
		}
	default:
		return l, fmt.Errorf("unknown lease type %s", row["lease_type"])
	}
	switch {
	case lifetime == 0:
		l.State, l.Status = Inactive, "deleted"
	case expire == 0:
		return l, errors.New("the lease has no end (expire)")
	case lifetime == infiniteLifetime:
		l.Start = time.Unix(max(0, expire-infiniteLifetime), 0)
	default:
		l.Start, l.Expires = time.Unix(max(0, expire-int64(lifetime)), 0), time.Unix(expire, 0) //nolint:gosec // 32 bits
	}
	l.relay(row["user_context"])
	return l, nil
}

// relay reads the relay information that Kea stores with store-extended-info.
func (l *Lease) relay(context string) {
	var in struct {
		ISC struct {
			Relay json.RawMessage `json:"relay-agent-info"`
		}
	}
	if context == "" || json.Unmarshal([]byte(context), &in) != nil { // the context is the operator's own text
		return
	}
	var info struct {
		Options string `json:"sub-options"`
	}
	digits := ""
	if json.Unmarshal(in.ISC.Relay, &info) == nil && info.Options != "" {
		digits = info.Options
	} else if json.Unmarshal(in.ISC.Relay, &digits) != nil { // the form before Kea 2.3.8
		return
	}
	options, err := hex.DecodeString(strings.TrimPrefix(digits, "0x"))
	if err != nil || l.Address.Is6() {
		return
	}
	for len(options) > 2 && len(options) >= 2+int(options[1]) {
		switch value := options[2 : 2+int(options[1])]; options[0] {
		case 1:
			l.CircuitID = value
		case 2:
			l.RemoteID = value
		}
		options = options[2+int(options[1]):]
	}
}
