package dns

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerServiceBindings declares the record types for service bindings.
func registerServiceBindings(r *resource.Registry) {
	for name, sample := range map[string]schema.Object{"SVCBRecord": &SVCBRecord{}, "HTTPSRecord": &HTTPSRecord{}} {
		declareRecord(r, name, sample, linkToExternalHost.Header(resource.Writing, name))
	}
}

// ServiceParameters are the parameters of a service binding (RFC 9460 section 7).
type ServiceParameters struct {
	// ALPNIdentifiers are the supported protocols, such as h2.
	ALPNIdentifiers []string `api:"alpnIdentifiers,nonblank"`
	// DefaultALPNIdentifierEnabled includes the default protocol of the service; null means true.
	DefaultALPNIdentifierEnabled *bool `api:"defaultAlpnIdentifierEnabled"`
	// Port is the port of the service; null uses the default port of the scheme.
	Port *int64 `api:"port" min:"1" max:"65535"`
	// IPv4AddressHints are IPv4 addresses of the target, which clients can use before they resolve it.
	IPv4AddressHints []string `api:"ipv4AddressHints,nonblank"`
	// IPv6AddressHints are IPv6 addresses of the target, which clients can use before they resolve it.
	IPv6AddressHints []string `api:"ipv6AddressHints,nonblank"`
	// EncryptedClientHello is the list of keys for Encrypted Client Hello, in base64.
	EncryptedClientHello string `api:"encryptedClientHello" length:"16384"`
	// MandatoryKeys are the keys that a client must support, such as alpn and port.
	MandatoryKeys []string `api:"mandatoryKeys,nonblank"`
	// PrivateUseValues are parameters with the keys key65280 to key65534.
	PrivateUseValues map[string]string `api:"privateUseValues"`
}

// serviceKeys maps the names of parameters to their keys (RFC 9460 section 14.3).
var serviceKeys = func() map[string]dns.SVCBKey {
	keys := map[string]dns.SVCBKey{}
	for _, k := range []dns.SVCBKey{dns.SVCB_ALPN, dns.SVCB_NO_DEFAULT_ALPN, dns.SVCB_PORT,
		dns.SVCB_IPV4HINT, dns.SVCB_ECHCONFIG, dns.SVCB_IPV6HINT} {
		keys[k.String()] = k
	}
	return keys
}()

// maxRecordSize is the maximum size of record data in bytes, without the two names, which have at most 255 bytes each (RFC 1035 section
// 4.2.2).
const maxRecordSize = 65535 - 2*255

// The range of private-use keys.
const (
	firstPrivateKey = 65280
	lastPrivateKey  = 65534
)

// privateKey parses the name of a private-use key.
func privateKey(name string) (dns.SVCBKey, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "key"), 10, 16)
	return dns.SVCBKey(n), err == nil && name == fmt.Sprintf("key%d", n) && n >= firstPrivateKey && n <= lastPrivateKey
}

// Check reports whether the parameters can be encoded.
func (x *ServiceParameters) Check() error {
	_, err := x.values()
	return err
}

// values returns the parameters in wire form, in the order of their keys.
func (x *ServiceParameters) values() (values []dns.SVCBKeyValue, err error) {
	if x == nil {
		return nil, nil
	}
	if len(x.ALPNIdentifiers) > 0 {
		values = append(values, &dns.SVCBAlpn{Alpn: x.ALPNIdentifiers})
	}
	if d := x.DefaultALPNIdentifierEnabled; d != nil && !*d {
		if len(x.ALPNIdentifiers) == 0 {
			return nil, schema.MemberError("defaultAlpnIdentifierEnabled", "false requires alpnIdentifiers: no protocol would remain")
		}
		values = append(values, &dns.SVCBNoDefaultAlpn{})
	}
	if x.Port != nil {
		values = append(values, &dns.SVCBPort{Port: uint16(*x.Port)}) //nolint:gosec // within its bounds
	}
	hints, err := parseHints("ipv4AddressHints", x.IPv4AddressHints, netip.Addr.Is4)
	if err != nil {
		return nil, err
	}
	if hints != nil {
		values = append(values, &dns.SVCBIPv4Hint{Hint: hints})
	}
	if x.EncryptedClientHello != "" {
		keys, err := base64.StdEncoding.DecodeString(x.EncryptedClientHello)
		if err != nil {
			return nil, schema.MemberError("encryptedClientHello", "is not valid base64")
		}
		values = append(values, &dns.SVCBECHConfig{ECH: keys})
	}
	if hints, err = parseHints("ipv6AddressHints", x.IPv6AddressHints, netip.Addr.Is6); err != nil {
		return nil, err
	}
	if hints != nil {
		values = append(values, &dns.SVCBIPv6Hint{Hint: hints})
	}
	for _, name := range slices.Sorted(maps.Keys(x.PrivateUseValues)) {
		key, ok := privateKey(name)
		if !ok {
			return nil, schema.MemberError("privateUseValues", "must be one of key%d to key%d, not %q", firstPrivateKey, lastPrivateKey, name)
		}
		values = append(values, &dns.SVCBLocal{KeyCode: key, Data: []byte(x.PrivateUseValues[name])})
	}
	return x.addMandatory(values)
}

// addMandatory adds the mandatory keys before the parameters. Each of these parameters must be present (RFC 9460 section 8).
func (x *ServiceParameters) addMandatory(values []dns.SVCBKeyValue) ([]dns.SVCBKeyValue, error) {
	var needed []dns.SVCBKey
	for _, name := range x.MandatoryKeys {
		key, ok := serviceKeys[name]
		if !ok {
			key, ok = privateKey(name)
		}
		switch {
		case !ok:
			return nil, schema.MemberError("mandatoryKeys", "%q is not a parameter key: must be one of %s, or key%d to key%d", name,
				strings.Join(slices.Sorted(maps.Keys(serviceKeys)), ", "), firstPrivateKey, lastPrivateKey)
		case !slices.ContainsFunc(values, func(v dns.SVCBKeyValue) bool { return v.Key() == key }):
			return nil, schema.MemberError("mandatoryKeys", "%q is not among the parameters", name)
		case slices.Contains(needed, key):
			return nil, schema.MemberError("mandatoryKeys", "%q is listed twice", name)
		}
		needed = append(needed, key)
	}
	if needed == nil {
		return values, nil
	}
	slices.Sort(needed)
	return append([]dns.SVCBKeyValue{&dns.SVCBMandatory{Code: needed}}, values...), nil
}

// parseHints parses addresses of one family.
func parseHints(member string, texts []string, family func(netip.Addr) bool) (hints []net.IP, err error) {
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil || !family(a) || a.Is4In6() || a.Zone() != "" {
			return nil, schema.MemberError(member, "%q is not an address of this family", text)
		}
		hints = append(hints, a.AsSlice())
	}
	return hints, nil
}

// ServiceBinding has the common fields of SVCB and HTTPS records (RFC 9460).
type ServiceBinding struct {
	RecordHead
	// LinkedRecord is the host of the service, by id or by absoluteName. null means the name of the record itself, or with the
	// priority 0 for no service.
	LinkedRecord schema.Ref `api:"linkedRecord" identify:"absoluteName" ref:"HostRecord|AliasRecord|GenericRecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
	// Priority is the preference; the lowest is tried first. The priority 0 makes the record an alias for this service only.
	Priority int64 `api:"priority,required" min:"0" max:"65535"`
	// ServiceParameters are the parameters of the service. An alias has none.
	ServiceParameters *ServiceParameters `api:"serviceParameters"`
}

// check derives the absolute name, resolves the host and rejects an alias with parameters.
func (x *ServiceBinding) check(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	values, err := x.ServiceParameters.values()
	if err != nil {
		return err
	}
	whole := &dns.SVCB{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSVCB}, Target: ".", Value: values}
	if _, err := dns.PackRR(whole, make([]byte, maxRecordSize), 0, nil, false); err != nil {
		return problem.Field("InvalidResourceFieldValue", "serviceParameters", "cannot be encoded in a DNS message: %v", err)
	}
	if x.Priority == 0 && len(values) > 0 {
		return problem.Field("ConflictingResourceFieldValues", "serviceParameters",
			"a record with priority 0 is an alias and cannot have parameters (RFC 9460 section 2.4.2)")
	}
	return resolveLink(c, x.Parent, x.Config, &x.LinkedRecord)
}

// data returns the record data.
func (x *ServiceBinding) data(head dns.RR_Header, target string) (dns.SVCB, error) {
	if x.LinkedRecord.ID == 0 {
		target = "."
	}
	values, err := x.ServiceParameters.values()
	return dns.SVCB{Hdr: head, Priority: uint16(x.Priority), Target: target, Value: values}, err //nolint:gosec // within its bounds
}

// HasParametersOf reports whether the parameters of the binding encode to exactly those of a DNS record and its fields can store them.
func (x *ServiceBinding) HasParametersOf(rr *dns.SVCB) bool {
	values, err := x.ServiceParameters.values()
	if err != nil {
		return false
	}
	if p := x.ServiceParameters; p != nil && (p.Port != nil && *p.Port == 0 || !IsText(p.ALPNIdentifiers...) ||
		slices.ContainsFunc(p.ALPNIdentifiers, func(id string) bool { return strings.TrimSpace(id) == "" })) {
		return false
	}
	own := &dns.SVCB{Hdr: rr.Hdr, Priority: rr.Priority, Target: rr.Target, Value: values}
	var given, made dns.RFC3597
	return given.ToRFC3597(rr) == nil && made.ToRFC3597(own) == nil && given.Rdata == made.Rdata
}

// hasSameData reports whether both bindings have the same host and parameters. It returns false if the parameters of either are invalid.
func (x *ServiceBinding) hasSameData(y *ServiceBinding) bool {
	a, errA := x.data(dns.RR_Header{}, "")
	b, errB := y.data(dns.RR_Header{}, "")
	return errA == nil && errB == nil && x.LinkedRecord.ID == y.LinkedRecord.ID && a.String() == b.String()
}

// SVCBRecord is the binding of a service of any kind.
type SVCBRecord struct {
	ServiceBinding
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"SVCB"`
}

// BeforeWrite derives the absolute name and checks the data.
func (x *SVCBRecord) BeforeWrite(c *resource.Change) error { return x.check(c) }

// Validate rejects a duplicate record, and a name that is an alias.
func (x *SVCBRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *SVCBRecord) SameData(o schema.Object) bool {
	y, ok := o.(*SVCBRecord)
	return ok && x.hasSameData(&y.ServiceBinding)
}

// HTTPSRecord is the binding of an HTTP service.
type HTTPSRecord struct {
	ServiceBinding
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"HTTPS"`
}

// BeforeWrite derives the absolute name and checks the data.
func (x *HTTPSRecord) BeforeWrite(c *resource.Change) error { return x.check(c) }

// Validate rejects a duplicate record, and a name that is an alias.
func (x *HTTPSRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *HTTPSRecord) SameData(o schema.Object) bool {
	y, ok := o.(*HTTPSRecord)
	return ok && x.hasSameData(&y.ServiceBinding)
}

// ServiceBindingOf returns the binding of a DNS record and its target. It returns nil if the fields of a binding cannot store the
// parameters.
func ServiceBindingOf(rr *dns.SVCB) (x *ServiceBinding, target string) {
	x = &ServiceBinding{Priority: int64(rr.Priority)}
	if rr.Target != "." {
		target = rr.Target
	}
	if len(rr.Value) == 0 {
		return x, target
	}
	p := &ServiceParameters{}
	x.ServiceParameters = p
	for _, value := range rr.Value {
		switch v := value.(type) {
		case *dns.SVCBMandatory:
			for _, key := range v.Code {
				p.MandatoryKeys = append(p.MandatoryKeys, key.String())
			}
		case *dns.SVCBAlpn:
			p.ALPNIdentifiers = v.Alpn
		case *dns.SVCBNoDefaultAlpn:
			p.DefaultALPNIdentifierEnabled = new(bool)
		case *dns.SVCBPort:
			port := int64(v.Port)
			p.Port = &port
		case *dns.SVCBIPv4Hint:
			p.IPv4AddressHints = addressTexts(v.Hint)
		case *dns.SVCBIPv6Hint:
			p.IPv6AddressHints = addressTexts(v.Hint)
		case *dns.SVCBECHConfig:
			p.EncryptedClientHello = base64.StdEncoding.EncodeToString(v.ECH)
		case *dns.SVCBLocal:
			if p.PrivateUseValues == nil {
				p.PrivateUseValues = map[string]string{}
			}
			if !utf8.Valid(v.Data) || bytes.ContainsFunc(v.Data, unicode.IsControl) { // a field cannot store this value
				return nil, ""
			}
			p.PrivateUseValues[fmt.Sprintf("key%d", v.KeyCode)] = string(v.Data)
		default:
			return nil, ""
		}
	}
	if p.Check() != nil { // for example an unassigned parameter
		return nil, ""
	}
	return x, target
}

func addressTexts(hints []net.IP) (list []string) {
	for _, ip := range hints {
		list = append(list, ip.String())
	}
	return list
}
