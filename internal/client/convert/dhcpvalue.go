package convert

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// valueWord is a word of the value of an option. quoted means that it was in quotation marks.
type valueWord struct {
	text   string
	quoted bool
}

// routesFormat is the format of the classless static routes (RFC 3442).
const routesFormat = `["<route>"]`

// formatKinds returns the kinds of the values of a format such as ["<ipv4_address>"]. list means that it has several, and rows that these
// are lists themselves.
func formatKinds(format string) (kinds []string, list, rows bool, err error) {
	var one string
	var many []string
	var table [][]string
	switch {
	case json.Unmarshal([]byte(format), &one) == nil:
		many = []string{one}
	case json.Unmarshal([]byte(format), &many) == nil && len(many) == 1:
		list = true
	case json.Unmarshal([]byte(format), &table) == nil && len(table) == 1:
		many, list, rows = table[0], true, true
	default:
		return nil, false, false, fmt.Errorf("the format %s is unknown", format)
	}
	for _, kind := range many {
		kind, _, _ = strings.Cut(strings.Trim(kind, "<>"), " ")
		kinds = append(kinds, kind)
	}
	return kinds, list, rows, nil
}

// valueOf returns the value of an option in its format.
func valueOf(format string, words []valueWord) (any, error) {
	if len(words) == 0 {
		return nil, errors.New("it has no value")
	}
	if format == routesFormat {
		return routesOf(words)
	}
	kinds, list, rows, err := formatKinds(format)
	if err != nil {
		return nil, err
	}
	if !list && len(words) > 1 {
		return nil, fmt.Errorf("it has %d values, and Portolan has one", len(words))
	}
	if rows && len(words)%len(kinds) != 0 {
		return nil, fmt.Errorf("it has %d values, which is not a multiple of %d", len(words), len(kinds))
	}
	var all, row []any
	for i, word := range words {
		one, err := scalarOf(kinds[i%len(kinds)], word)
		if err != nil {
			return nil, err
		}
		switch row = append(row, one); {
		case !rows:
			all, row = append(all, one), nil
		case len(row) == len(kinds):
			all, row = append(all, row), nil
		}
	}
	if !list {
		return all[0], nil
	}
	return all, nil
}

// scalarOf returns one value of a kind.
func scalarOf(kind string, word valueWord) (any, error) {
	text := word.text
	switch kind {
	case "ipv4_address", "ipv6_address", "ipv4_mask", "ip_address":
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%s is a host name, which the server resolves: enter the address", text)
		}
		if kind != "ip_address" && a.Is4() == (kind == "ipv6_address") {
			return nil, fmt.Errorf("%s is an address of the other family", text)
		}
		return a.String(), nil
	case "boolean":
		return flagOf(text)
	case "hex", "string":
		if data, ok := colonOctets(text); ok && !word.quoted {
			return "0x" + strings.ToUpper(hex.EncodeToString(data)), nil
		}
		if kind == "hex" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return "0x" + strings.ToUpper(hex.EncodeToString([]byte(text))), nil
		}
		return text, nil
	case "text", "domain_name", "url":
		if data, ok := colonOctets(text); ok && !word.quoted && strings.Contains(text, ":") && kind == "text" {
			text = string(data)
		}
		return text, nil
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

// flagOf parses true, false, on or off.
func flagOf(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "on", "1":
		return true, nil
	case "false", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

// colonOctets parses hexadecimal octets with colons between them, or digits after 0x.
func colonOctets(text string) (data []byte, ok bool) {
	if digits, found := strings.CutPrefix(strings.ToLower(text), "0x"); found {
		data, err := hex.DecodeString(digits)
		return data, err == nil && len(data) > 0
	}
	for one := range strings.SplitSeq(text, ":") {
		n, err := strconv.ParseUint(one, 16, 8)
		if err != nil || len(one) > 2 {
			return nil, false
		}
		data = append(data, byte(n))
	}
	return data, true
}

// routesOf returns classless static routes: from octets as numbers, in hexadecimal, or as "10.0.0.0/8 - 10.1.0.1".
func routesOf(words []valueWord) (any, error) {
	var data []byte
	for _, word := range words {
		if strings.Contains(word.text, " - ") {
			return writtenRoutes(words)
		}
		if octets, ok := colonOctets(word.text); ok && strings.Contains(word.text, ":") {
			data = append(data, octets...)
			continue
		}
		n, err := strconv.ParseUint(word.text, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("%q is not an octet of a route", word.text)
		}
		data = append(data, byte(n))
	}
	var all []any
	for len(data) > 0 {
		bits := int(data[0])
		octets := (bits + 7) / 8
		if bits > 32 || len(data) < 1+octets+4 {
			return nil, errors.New("the octets of the routes are incomplete")
		}
		var at, via [4]byte
		copy(at[:], data[1:1+octets])
		copy(via[:], data[1+octets:])
		all = append(all, fmt.Sprintf("%v:%v", netip.PrefixFrom(netip.AddrFrom4(at), bits).Masked(), netip.AddrFrom4(via)))
		data = data[1+octets+4:]
	}
	return all, nil
}

// writtenRoutes returns routes of the notation of Kea.
func writtenRoutes(words []valueWord) (any, error) {
	var all []any
	for _, word := range words {
		prefix, gateway, _ := strings.Cut(word.text, " - ")
		p, err := netip.ParsePrefix(strings.TrimSpace(prefix))
		via, wrong := netip.ParseAddr(strings.TrimSpace(gateway))
		if err != nil || wrong != nil {
			return nil, fmt.Errorf("%q is not a route", word.text)
		}
		all = append(all, fmt.Sprintf("%v:%v", p.Masked(), via))
	}
	return all, nil
}

// octetsOf returns the octets of a value, for options inside of another one.
func octetsOf(format string, words []valueWord) (data []byte, err error) {
	kinds, _, _, err := formatKinds(format)
	if err != nil {
		return nil, err
	}
	for i, word := range words {
		kind := kinds[i%len(kinds)]
		one, err := scalarOf(kind, word)
		if err != nil {
			return nil, err
		}
		switch value := one.(type) {
		case bool:
			data = append(data, map[bool]byte{true: 1}[value])
		case int64:
			data = appendInteger(data, kind, value)
		case string:
			a, err := netip.ParseAddr(value)
			digits, isHex := strings.CutPrefix(value, "0x")
			switch octets, wrong := hex.DecodeString(digits); {
			case err == nil && strings.HasPrefix(kind, "ip"):
				data = append(data, a.AsSlice()...)
			case isHex && wrong == nil:
				data = append(data, octets...)
			case kind == "domain_name":
				return nil, errors.New("names in it are not imported")
			default:
				data = append(data, value...)
			}
		}
	}
	return data, nil
}

// appendInteger appends a number in the width of its kind.
func appendInteger(data []byte, kind string, value int64) []byte {
	switch kind[strings.LastIndexByte(kind, '_')+1:] {
	case "8":
		return append(data, byte(value))
	case "16":
		return binary.BigEndian.AppendUint16(data, uint16(value)) //nolint:gosec // the definition limits it
	}
	return binary.BigEndian.AppendUint32(data, uint32(value)) //nolint:gosec // the definition limits it
}
