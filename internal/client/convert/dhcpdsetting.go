package convert

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/dhcpoption"
)

// The service options that are statements of dhcpd.conf with the same name, by the kind of their value.
var (
	flagStatements = []string{"always-broadcast", "always-reply-rfc1048", bootUnknown, "check-secs-byte-order", "ddns-updates",
		"ddns-dual-stack-mixed-mode", "ddns-guard-id-must-match", "ddns-other-guard-is-dynamic", "do-forward-updates", "do-reverse-updates",
		"echo-client-id", "ignore-client-uids", "infinite-is-reserved", "one-lease-per-client", "ping-check", "server-id-check",
		"stash-agent-options", "update-conflict-detection", "update-optimization", "update-static-leases", "use-host-decl-names",
		"use-lease-addr-for-default-route"}
	numberStatements = []string{"abandon-lease-time", "adaptive-lease-time-threshold", defaultLease, maximumLease, minimumLease,
		"dhcp-cache-threshold", "ddns-ttl", "dynamic-bootp-lease-length", "log-threshold-high", "log-threshold-low", "min-secs",
		"ping-timeout"}
	textStatements    = []string{fileName, serverName, "ddns-domainname", "ddns-rev-domainname"}
	addressStatements = []string{nextServer, "server-identifier", "ddns-local-address4", "ddns-local-address6"}

	// flag6, number6 and text6 are the statements that DHCPv6 has.
	flag6 = []string{bootUnknown, "ddns-updates", "ddns-dual-stack-mixed-mode", "ddns-guard-id-must-match", "ddns-other-guard-is-dynamic",
		"do-forward-updates", "do-reverse-updates", "update-conflict-detection", "update-optimization", "update-static-leases",
		"release-on-roam", "dhcpv6-set-tee-times"}
	number6 = []string{"abandon-lease-time", defaultLease, maximumLease, minimumLease, "dhcp-cache-threshold", "ddns-ttl",
		"preferred-lifetime", "limit-addrs-per-ia", "limit-prefs-per-ia"}
	text6    = []string{"ddns-domainname", "ddns-rev-domainname", "prefix-length-mode"}
	address6 = []string{"ddns-local-address6"}
)

// otherReasons are the statements that are not imported, with the reason.
var otherReasons = map[string]string{
	"leasequery": "lease queries are not answered", "get-lease-hostnames": "names of leases are not looked up in DNS",
	"omapi-port": processOnly, "omapi-key": processOnly,
	"log-facility":    processOnly,
	"lease-file-name": processOnly, "pid-file-name": processOnly, "dhcpv6-lease-file-name": processOnly,
	"dhcpv6-pid-file-name": processOnly,
	"local-port":           processOnly, "local-address": processOnly, "local-address6": processOnly, "remote-port": processOnly,
	"lease-id-format": processOnly, "db-time-format": processOnly, "delayed-ack": processOnly, "max-ack-delay": processOnly,
	"server-duid": "the server has a DUID of its own", "interface": "a server serves the interfaces with an address of a served network",
	"log": "log statements have no effect on clients", "set": "variables are not evaluated", "on": "statements at events are not executed",
	"execute": "programs are not started", "switch": "give it as if, elsif and else",
	"dhcp-update-billing-class": "spawned classes do not exist",
	"ddns-update-style":         "its value must be none, interim or standard", "spawn": "classes are not created at run time",
	"allow": "Portolan has no such permission", "deny": "Portolan has no such permission", "ignore": "Portolan has no such permission",
}

// processOnly is the reason for settings of the process of the other server.
const processOnly = "a setting of the process of the old server"

// other notes a statement that is not imported.
func (d *dhcpd) other(s statement) {
	reason, known := otherReasons[strings.ToLower(s.word(0))]
	switch {
	case s.startsWith("key"), s.startsWith("zone"), s.startsWith("failover"): // read in another place
	case s.describes():
		d.skip("the content of the block %s is not imported: move hosts and subnets out of it", s.word(0))
	case s.startsWith("option", "space"): // read by define
	case known:
		d.leave("the statement %s: %s", s.word(0), reason)
	default:
		d.leave("the statement %s: Portolan has no such setting", s.word(0))
	}
}

// setting reads a statement that sets options of a block. It returns false for another statement.
func (d *dhcpd) setting(s statement, at *dhcpdScope) bool {
	if s.hasBlock {
		switch {
		case s.startsWith("key"):
			d.keys[s.word(1)] = s
		case s.startsWith("zone"):
			d.zones = append(d.zones, s)
		case s.startsWith("failover", "peer"):
			d.peer(s, at)
		default:
			return false
		}
		return true
	}
	switch first := strings.ToLower(s.word(0)); first {
	case "option":
		return d.option(s, at)
	case "allow", "deny", "ignore":
		return d.permission(s, at, first == "allow")
	case "authoritative":
		d.put(at, first, true)
		return true
	case "not":
		if s.startsWith("not", "authoritative") {
			d.put(at, "authoritative", false)
			return true
		}
		return false
	case vendorSpace:
		at.space = s.word(1)
		return true
	case siteSpace: // read by scanStatements: its options are defined as options of DHCP
		if at.above != nil {
			d.leave("the block of site-option-space %s: its options are sent to all clients that request them", s.word(1))
		}
		return true
	case "ddns-update-style":
		if slices.Contains([]string{"none", "interim", "standard"}, s.word(1)) {
			d.put(at, first, s.word(1))
			return true
		}
		return false
	case "ddns-hostname":
		if len(s.words) == 2 && s.quoted[1] {
			d.put(at, first, []any{"FIXED", s.word(1)})
		} else {
			d.leave("the statement %s: its value is computed", first)
		}
		return true
	case "server-identifier":
		return d.service(s, at, first)
	default:
		return d.service(s, at, first)
	}
}

// put adds a service option to a block.
func (d *dhcpd) put(at *dhcpdScope, name string, value any) {
	at.own.put(setting{d.rowName, true, name, value})
}

// service reads a statement that is a service option of Portolan.
func (d *dhcpd) service(s statement, at *dhcpdScope, name string) bool {
	flags, numbers, texts, addresses := flagStatements, numberStatements, textStatements, addressStatements
	if d.v6 {
		flags, numbers, texts, addresses = flag6, number6, text6, address6
	}
	var value any
	var err error
	text := s.word(1)
	switch {
	case slices.Contains(flags, name):
		value, err = flagOf(text)
	case slices.Contains(numbers, name):
		if value = int64(0xffffffff); !strings.EqualFold(text, "infinite") && text != "-1" {
			value, err = strconv.ParseUint(text, 10, 32)
		}
	case slices.Contains(texts, name):
		value = strings.TrimSuffix(text, ".")
		if name == fileName || name == serverName {
			value = text
		}
	case slices.Contains(addresses, name):
		a, e := netip.ParseAddr(text)
		if value = a.String(); e != nil {
			err = fmt.Errorf("%s is a host name, which the server resolves: enter the address", text)
		}
	default:
		return false
	}
	switch {
	case err == nil && len(s.words) != 2:
		err = errors.New("its value is computed")
	case err == nil && name == "limit-addrs-per-ia":
		name = "limit-addresses-per-ia"
	case err == nil && name == "limit-prefs-per-ia":
		name = "limit-prefixes-per-ia"
	}
	if err != nil {
		d.leave("the statement %s: %v", name, err)
		return true
	}
	d.put(at, name, value)
	return true
}

// computedOptions are the options that the server computes itself, with the reason or the service option.
var computedOptions = map[string]string{"subnet-mask": "the mask is that of the network", "dhcp-lease-time": "use default-lease-time",
	"dhcp-client-identifier": "it identifies clients in hosts", "dhcp-message-type": "the server sets it",
	"dhcp-parameter-request-list": "clients send it", "dhcp-max-message-size": "clients send it", "user-class": "clients send it"}

// option reads an option statement.
func (d *dhcpd) option(s statement, at *dhcpdScope) bool {
	name := strings.ToLower(s.word(1))
	if name == "space" || len(s.words) < 2 || strings.EqualFold(s.word(2), "code") {
		return true // read by define
	}
	table, six := d.options4, false
	if short, found := strings.CutPrefix(name, "dhcp6."); found {
		table, name, six = d.options6, short, true
	}
	words := make([]valueWord, 0, len(s.words))
	for i := 2; i < len(s.words); i++ {
		words = append(words, valueWord{s.words[i], s.quoted[i]})
	}
	if len(words) > 0 && words[0].text == "=" && !words[0].quoted {
		if words = words[1:]; len(words) != 1 || !words[0].quoted {
			d.leave("the option %s: its value is computed", name)
			return true
		}
	}
	space, short, dotted := strings.Cut(name, ".")
	definition, known := table.byName[name]
	var err error
	switch {
	case computedOptions[name] != "":
		d.leave("the option %s: %s", name, computedOptions[name])
	case name == "dhcp-server-identifier" && len(words) == 1:
		d.address(at, "server-identifier", words[0].text)
	case six && name == "preference", six && name == "rapid-commit":
		err = d.six(at, name, words)
	case known:
		var value any
		if value, err = valueOf(definition.Format, d.addressesOf(name, definition.Format, words)); err == nil {
			at.own.put(setting{d.rowName, false, definition.Name, value})
		}
	case dotted && d.spaces[space] != nil:
		err = d.sub(at, space, short, words)
	case space == "fqdn":
		d.leave("the option %s: the server answers the option 81 itself; see client-updates", name)
	case six:
		d.leave("the option dhcp6.%s: DHCPv6 does not support custom options", name)
	default:
		d.leave("the option %s: it is not defined", name)
	}
	if err != nil {
		d.leave("the option %s: %v", name, err)
	}
	return true
}

// addressesOf returns the words of a list of addresses without names. It notes the names.
func (d *dhcpd) addressesOf(name, format string, words []valueWord) []valueWord {
	if format != `["<ipv4_address>"]` && format != `["<ipv6_address>"]` {
		return words
	}
	isName := func(word valueWord) bool { _, err := netip.ParseAddr(word.text); return err != nil }
	if !slices.ContainsFunc(words, isName) || !slices.ContainsFunc(words, func(w valueWord) bool { return !isName(w) }) {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), func(word valueWord) bool {
		if isName(word) {
			d.leave("the name %s in the option %s: give its address", word.text, name)
		}
		return isName(word)
	})
}

// address adds a service option whose value is an address.
func (d *dhcpd) address(at *dhcpdScope, name, text string) {
	if _, err := netip.ParseAddr(text); err != nil {
		d.leave("the statement %s: %s is a host name, which the server resolves: enter the address", name, text)
		return
	}
	d.put(at, name, text)
}

// six reads the options of DHCPv6 that are service options of Portolan.
func (d *dhcpd) six(at *dhcpdScope, name string, words []valueWord) error {
	if name == "rapid-commit" {
		d.put(at, name, true)
		return nil
	}
	value, err := valueOf(`"<unsigned_integer_8>"`, words)
	if err == nil {
		d.put(at, name, value)
	}
	return err
}

// subOption is an option inside of another one.
type subOption struct {
	code   int
	format string
}

// defineIn defines an option of DHCPv4: as another name of an existing one with the code, or as a custom option.
func (d *Document) defineIn(table *optionTable, name string, code int, format string) error {
	if known, there := table.byCode[code]; there {
		if slices.Contains(d.custom, code) && known.Format != format {
			return fmt.Errorf("the option %s has the code %d and another type", known.Name, code)
		}
		table.byName[name] = known
		return nil
	}
	if code < 1 || code > 254 || slices.Contains([]int{50, 51, 52, 53, 54, 55, 56, 57, 61, 77, 81, 82, 90, 93, 94, 97, 118}, code) {
		if sent, there := sentNames[code]; there {
			table.byName[name] = dhcpoption.Definition{Name: sent, Code: code}
			return nil
		}
		return fmt.Errorf("the server sets the option %d itself", code)
	}
	one := dhcpoption.Definition{Name: name, Code: code, Format: format}
	d.custom = append(d.custom, code)
	table.byName[name], table.byCode[code] = one, one
	d.add(Resource{"type": "DHCPv4CustomClientOptionDefinition", "name": name, "code": code, "displayName": name,
		"description": "Imported option " + strconv.Itoa(code) + ".", "valueFormat": rawFormat(format), "tag": false})
	return nil
}

// defineOption defines an option of DHCPv4, whose type has an equivalent unless err is set.
func (d *dhcpd) defineOption(name string, code int, format string, err error) {
	if err == nil {
		err = d.defineIn(d.options4, name, code, format)
	} else if known, there := d.options4.byCode[code]; there {
		d.options4.byName[name], err = known, nil
	}
	if err != nil {
		d.leave("the definition of the option %s: %v", name, err)
	}
}

// sentNames are the names of options that clients send, which expressions of classes use.
var sentNames = map[int]string{50: "dhcp-requested-address", 51: "dhcp-lease-time", 53: "dhcp-message-type", 54: "dhcp-server-identifier",
	55: "dhcp-parameter-request-list", 56: "dhcp-message", 57: "dhcp-max-message-size", 61: "dhcp-client-identifier", 77: "user-class",
	81: "fqdn", 82: "relay-agent-information", 93: "pxe-system-type", 94: "pxe-interface-id", 97: "pxe-client-id"}

// typeFormat returns the format of a type of dhcpd: ip-address, text, string, boolean, integers, arrays and records of them.
func typeFormat(words []string) (string, error) {
	list := false
	if len(words) > 2 && words[0] == "array" && words[1] == "of" {
		list, words = true, words[2:]
	}
	var tokens []string
	for i := 0; i < len(words); i++ {
		signed := ""
		switch words[i] {
		case "{", "}":
			continue
		case "unsigned":
			signed = "unsigned_"
			i++
		case "signed":
			i++
		}
		if i == len(words) {
			break
		}
		token := map[string]string{"ip-address": "ipv4_address", "ip6-address": "ipv6_address", "text": "text", "string": "string",
			"boolean": "boolean", "flag": "boolean", "domain-name": "domain_name", "domain-list": "domain_name"}[words[i]]
		if words[i] == "integer" && i+1 < len(words) {
			i++
			token = signed + "integer_" + words[i]
		}
		list = list || words[i] == "domain-list"
		if token == "" {
			return "", fmt.Errorf("the type %s has no equivalent", strings.Join(words, " "))
		}
		tokens = append(tokens, `"<`+token+`>"`)
	}
	switch text := strings.Join(tokens, ","); {
	case len(tokens) == 0:
		return "", errors.New("the option has no type")
	case len(tokens) > 1:
		return "[[" + text + "]]", nil
	case list:
		return "[" + text + "]", nil
	default:
		return text, nil
	}
}

// sub reads an option inside of another one.
func (d *dhcpd) sub(at *dhcpdScope, space, name string, words []valueWord) error {
	definition, known := d.spaces[space][name]
	if !known {
		return errors.New("it is not defined")
	}
	if d.sent[space] == "" {
		return fmt.Errorf("no vendor-option-space or site-option-space sends the options of the space %s", space)
	}
	data, err := octetsOf(definition.format, words)
	if err == nil && len(data) > 255 {
		err = errors.New("it has more than 255 octets")
	}
	if err == nil {
		if at.subs[space] == nil {
			at.subs[space] = map[int][]byte{}
		}
		at.subs[space][definition.code] = data
	}
	return err
}

// encapsulate adds option 43 to a block that chooses an option space, or that has options of the space that an enclosing block chooses.
func (d *dhcpd) encapsulate(at *dhcpdScope) {
	space := ""
	for above := at; above != nil && space == ""; above = above.above {
		space = strings.ToLower(above.space)
	}
	if space == "" || at.space == "" && at.subs[space] == nil {
		return
	}
	all := map[int][]byte{}
	for above := at; above != nil; above = above.above {
		for code, data := range above.subs[space] {
			if _, there := all[code]; !there {
				all[code] = data
			}
		}
	}
	var out []byte
	for _, code := range slices.Sorted(maps.Keys(all)) {
		out = append(append(out, byte(code), byte(len(all[code]))), all[code]...) //nolint:gosec // checked by sub
	}
	if len(out) > 0 && !at.own.has(false, vendorOption) {
		at.own.put(setting{d.rowName, false, vendorOption, "0x" + strings.ToUpper(hex.EncodeToString(out))})
	}
}
