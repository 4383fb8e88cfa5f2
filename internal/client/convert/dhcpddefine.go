package convert

import (
	"net/netip"
	"strconv"
	"strings"
)

// The statements that send an option space, and the first code of options of a site.
const (
	vendorSpace = "vendor-option-space"
	siteSpace   = "site-option-space"
	firstSite   = 128
)

// scanStatements reads what the definitions and the networks depend on in all blocks: the option spaces that are sent, and the addresses
// of hosts.
func (d *dhcpd) scanStatements(all []statement) {
	for _, s := range all {
		switch {
		case s.hasBlock:
			d.scanStatements(s.block)
		case s.startsWith("vendor-option-space"):
			d.sent[strings.ToLower(s.word(1))] = vendorSpace
		case s.startsWith("site-option-space"):
			if space := strings.ToLower(s.word(1)); d.sent[space] == "" {
				d.sent[space] = siteSpace
			}
		case s.startsWith("fixed-address"):
			for _, word := range s.words[1:] {
				if a, err := netip.ParseAddr(strings.Trim(word, ",")); err == nil {
					d.reserved[a] = true
				}
			}
		}
	}
}

// define reads the definitions of options and option spaces in all blocks.
func (d *dhcpd) define(all []statement) {
	for _, s := range all {
		switch {
		case s.hasBlock:
			d.define(s.block)
		case s.startsWith("option", "space"):
			if d.spaces[strings.ToLower(s.word(2))] == nil {
				d.spaces[strings.ToLower(s.word(2))] = map[string]subOption{}
			}
		case s.startsWith("option") && strings.EqualFold(s.word(2), "code"):
			d.rowName = s.place()
			d.definition(s)
		}
	}
	d.rowName = ""
}

// definition reads the definition of an option: option NAME code NUMBER = TYPE.
func (d *dhcpd) definition(s statement) {
	rest := strings.Fields(strings.Replace(strings.Join(s.words[3:], " "), "=", " = ", 1))
	name := strings.ToLower(s.word(1))
	if len(rest) < 3 || rest[1] != "=" {
		d.leave("the definition of the option %s: it is written as code NUMBER = TYPE", name)
		return
	}
	code, err := strconv.Atoi(rest[0])
	if err != nil {
		d.leave("the definition of the option %s: %s is not a number", name, rest[0])
		return
	}
	format, err := typeFormat(rest[2:])
	space, short, dotted := strings.Cut(name, ".")
	switch {
	case dotted && d.sent[space] == siteSpace && code < firstSite:
		d.leave("the definition of the option %s: options of a site have codes from %d", name, firstSite)
	case dotted && d.sent[space] == siteSpace:
		plain := strings.ReplaceAll(name, ".", "-")
		d.defineOption(plain, code, format, err)
		if known, there := d.options4.byName[plain]; there {
			d.options4.byName[name] = known
		}
	case dotted && space != "dhcp6" && space != "dhcp":
		if err != nil {
			d.leave("the definition of the option %s: %v", name, err)
			return
		}
		if d.spaces[space] == nil {
			d.spaces[space] = map[string]subOption{}
		}
		d.spaces[space][short] = subOption{code, format}
	case rest[2] == "encapsulate":
		d.leave("the definition of the option %s: only vendor-option-space sends the options of a space", name)
	case space == "dhcp6":
		if known, there := d.options6.byCode[code]; there {
			d.options6.byName[short] = known
			return
		}
		d.leave("the definition of the option %s: DHCPv6 does not support custom options", name)
	default:
		d.defineOption(name, code, format, err)
	}
}
