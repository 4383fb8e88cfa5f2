package dnspublish

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// checks are the checks of zone data before a deployment, as the server or its configuration sets them. The values IGNORE, WARN and FAIL
// have the same meaning as for named-checkzone of BIND. Unless Integrity is NONE, targets within the zone are checked. Targets elsewhere
// are not looked up, so LOCAL, LOCAL_SIBLING, FULL and FULL_SIBLING are the same, and only warn.
type checks struct {
	Settings  bool   `json:"dnsConfigurationValidationEnabled"`
	Zones     bool   `json:"dnsZoneValidationEnabled"`
	Integrity string `json:"checkIntegrityValidation"`
	MXAlias   string `json:"checkMxCnameValidation"`
	MX        string `json:"checkMxValidation"`
	Names     string `json:"checkNamesValidation"`
	NS        string `json:"checkNsValidation"`
	SRVAlias  string `json:"checkSrvCnameValidation"`
	Wildcard  string `json:"checkWildcardValidation"`
}

// checksOf returns the checks of a server.
func checksOf(tx *store.Tx, server *store.Resource) (c checks, err error) {
	row := server.Clone()
	if err := serverconfig.CompleteServers(tx, []*store.Resource{row}); err != nil {
		return c, err
	}
	return c, json.Unmarshal(row.Body, &c)
}

// enabled reports whether there are any checks.
func (c checks) enabled() bool { return c.Settings || c.Zones }

// findings are the problems of zones as sentences, up to maxFindings.
type findings struct {
	warnings, errors []string
	more             int
}

// maxFindings is the maximum number of findings that are listed.
const maxFindings = 20

func (f *findings) add(level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case level == "IGNORE" || level == "":
	case len(f.warnings)+len(f.errors) >= maxFindings && (level != "FAIL" || len(f.errors) > 0):
		f.more++
	case level == "FAIL":
		f.errors = append(f.errors, text)
	default:
		f.warnings = append(f.warnings, text)
	}
}

// checkZone checks the records of a zone.
func (c checks) checkZone(f *findings, apex string, entries []zonedata.Entry) error {
	if !c.Zones {
		return nil
	}
	kinds, glue := map[string]map[uint16]bool{}, map[string]bool{}
	for _, e := range entries {
		owner := string(e.Record().Owner())
		if kinds[owner] == nil {
			kinds[owner] = map[uint16]bool{}
		}
		kinds[owner][e.Record().Type()] = true
		if e.Record().Type() == wire.TypeNS {
			rr, err := e.Record().RR()
			if err != nil {
				return err
			}
			if ns, ok := rr.(*wire.NS); ok {
				glue[wire.CanonicalName(ns.Ns)] = true
			}
		}
	}
	for _, e := range entries {
		rr, err := e.Record().RR()
		if err != nil {
			return err
		}
		c.checkRecord(f, apex, rr, kinds)
		c.checkOccluded(f, apex, rr, kinds, glue)
	}
	return nil
}

// checkOccluded reports a record below a delegation that is not an address of a name server there (glue). Such a record is never returned
// to a client (RFC 1034 section 4.2.1).
func (c checks) checkOccluded(f *findings, apex string, rr wire.RR, kinds map[string]map[uint16]bool, glue map[string]bool) {
	name := wire.CanonicalName(rr.Header().Name)
	if c.Integrity == "NONE" || name == apex || isAddress(rr) && glue[name] {
		return
	}
	packed := make([]byte, 256)
	for at := name; at != apex && at != "." && wire.IsSubDomain(apex, at); _, at, _ = naming.Cut(at) {
		n, err := wire.PackDomainName(at, packed, 0, nil, false)
		if err != nil {
			return
		}
		if !kinds[string(packed[:n])][wire.TypeNS] {
			continue
		}
		// NS and DS records belong to the delegation itself.
		if t := rr.Header().Rrtype; at == name && (t == wire.TypeNS || t == wire.TypeDS) {
			continue
		}
		f.add("WARN", "the %s record of %s is in %s, which is delegated: it is not served from here",
			wire.TypeToString[rr.Header().Rrtype], name, at)
		return
	}
}

// isAddress reports whether a record is an address.
func isAddress(rr wire.RR) bool {
	t := rr.Header().Rrtype
	return t == wire.TypeA || t == wire.TypeAAAA
}

// checkRecord checks one record. kinds are the types at each name of the zone.
func (c checks) checkRecord(f *findings, apex string, rr wire.RR, kinds map[string]map[uint16]bool) {
	name := rr.Header().Name
	if labels := wire.SplitDomainName(name); len(labels) > 1 {
		for _, label := range labels[1:] {
			if label == "*" {
				f.add(c.Wildcard, "%s has a * that is not at the start", name)
			}
		}
	}
	var target, what, alias string
	switch x := rr.(type) {
	case *wire.A, *wire.AAAA:
		if !hostLabels(name) {
			f.add(c.Names, "%s is not a host name", name)
		}
		return
	case *wire.MX:
		target, what, alias = x.Mx, "MX", c.MXAlias
		if isLiteral(target) {
			f.add(c.MX, "the MX record of %s points to an address, %s; it must point to a name", name, target)
		}
		if !hostLabels(name) {
			f.add(c.Names, "%s is not a host name", name)
		}
	case *wire.SRV:
		target, what, alias = x.Target, "SRV", c.SRVAlias
	case *wire.NS:
		target, what, alias = x.Ns, "NS", c.NS // an alias is not valid for a name server (RFC 2181 section 10.3)
		if isLiteral(target) {
			f.add(c.NS, "the NS record of %s points to an address, %s; it must point to a name", name, target)
		}
	default:
		return
	}
	if target == "." || !wire.IsSubDomain(apex, wire.CanonicalName(target)) {
		return
	}
	packed := make([]byte, 256)
	n, err := wire.PackDomainName(wire.CanonicalName(target), packed, 0, nil, false)
	if err != nil {
		return
	}
	of := kinds[string(packed[:n])]
	if of[wire.TypeCNAME] {
		f.add(alias, "the %s record of %s points to an alias, %s", what, name, target)
		return
	}
	if c.Integrity == "NONE" || of[wire.TypeA] || of[wire.TypeAAAA] {
		return
	}
	// A name server below its own delegation is reachable only if the parent zone has its address (RFC 1034 section 4.2.1).
	if what == "NS" && wire.CanonicalName(name) != apex && wire.IsSubDomain(wire.CanonicalName(name), wire.CanonicalName(target)) {
		f.add("WARN", "the NS record of %s points to %s, which is below it and has no address here (glue)", name, target)
		return
	}
	if !isDelegated(kinds, apex, target) {
		f.add("WARN", "the %s record of %s points to %s, which has no address", what, name, target)
	}
}

// isDelegated reports whether a name is below a delegation of the zone, or is covered by a wildcard.
func isDelegated(kinds map[string]map[uint16]bool, apex, name string) bool {
	for name = wire.CanonicalName(name); name != apex && wire.IsSubDomain(apex, name); {
		packed := make([]byte, 256)
		n, err := wire.PackDomainName(name, packed, 0, nil, false)
		if err != nil {
			return false
		}
		if kinds[string(packed[:n])][wire.TypeNS] {
			return true
		}
		_, name, _ = naming.Cut(name)
		wildcard := make([]byte, 256)
		if n, err = wire.PackDomainName("*."+name, wildcard, 0, nil, false); err == nil && len(kinds[string(wildcard[:n])]) > 0 {
			return true
		}
	}
	return false
}

// isLiteral reports whether a name is written like an IPv4 address.
func isLiteral(name string) bool {
	a, err := netip.ParseAddr(strings.TrimSuffix(name, "."))
	return err == nil && a.Is4()
}

// hostLabels reports whether a name is a valid host name (RFC 1123 section 2.1), or a wildcard for host names.
func hostLabels(name string) bool {
	for _, label := range wire.SplitDomainName(strings.TrimPrefix(name, "*.")) {
		if strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

// err returns the faults as one error; nil where there are none.
func (f *findings) err() error {
	if len(f.errors) == 0 {
		return nil
	}
	text := strings.Join(f.errors, "; ")
	if f.more > 0 {
		text += fmt.Sprintf("; and %d more", f.more)
	}
	return problem.BadRequest("InvalidDeploymentData", "%s", text)
}
