package serverconfig

import (
	"encoding/json"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerOptions declares the collection of deployment options.
func registerOptions(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "deploymentOptions"}, &DHCPv4ClientOption{}, &DHCPv4ServiceOption{}, &DHCPv6ClientOption{},
		&DHCPv6ServiceOption{}, &DHCPVendorOption{}, &DNSOption{}, &StartOfAuthority{}, &DHCPv4RawOption{}, &DHCPv6RawOption{}, &DNSRawOption{})
	r.Rule(resource.Rule{Types: []string{"ACL", "TSIGKey", "MACPool", "DHCPv4ClientClass"}, AfterWrite: renameInOptions})
}

// OptionFields are what options have that a definition says the shape of.
type OptionFields struct {
	// Configuration is the configuration the option lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// ServerScope is the server, or the group of servers, that the option is for; null means all.
	ServerScope schema.Ref `api:"serverScope" ref:"Server|HAServer|ServerGroup" onDelete:"refuse"`
	// Value is the value, of the shape that the definition says.
	Value json.RawMessage `api:"value,any"`
	// Code is the number of the option; null where it has none.
	Code *int64 `api:"code" min:"1" max:"255"`
	// Resource is what the option lies at.
	Resource schema.Ref `api:"resource,readOnly" column:"parent" onSplit:"copy"`
	// Mentions are the lists, keys, pools and classes that the value names.
	Mentions schema.RefList `api:"mentions,hidden" onDelete:"refuse"`
}

// DHCPv4ClientOption is an option that DHCPv4 clients are sent.
type DHCPv4ClientOption struct {
	schema.Head `head:"nonblank" parents:"subclasses|configurations|servers|serverGroups|blocks|networks|ranges|addresses|macAddresses|macPools|clientClasses|templates"`
	OptionFields
	// Definition is what defines the option; a request may give its name, code or this.
	Definition schema.Ref `api:"definition" ref:"DHCPv4ClientOptionDefinition|DHCPv4CustomClientOptionDefinition" onDelete:"refuse"`
}

// DHCPv4ServiceOption is a setting of DHCPv4 servers.
type DHCPv4ServiceOption struct {
	schema.Head `head:"nonblank" parents:"subclasses|configurations|servers|serverGroups|blocks|networks|ranges|addresses|macAddresses|macPools|clientClasses|templates"`
	OptionFields
	// Definition is what defines the option; a request may give its name or this.
	Definition schema.Ref `api:"definition" ref:"DHCPv4ServiceOptionDefinition"`
}

// DHCPv6ClientOption is an option that DHCPv6 clients are sent.
type DHCPv6ClientOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|ranges|addresses"`
	OptionFields
	// Definition is what defines the option; a request may give its name, code or this.
	Definition schema.Ref `api:"definition" ref:"DHCPv6ClientOptionDefinition"`
}

// DHCPv6ServiceOption is a setting of DHCPv6 servers.
type DHCPv6ServiceOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|ranges|addresses"`
	OptionFields
	// Definition is what defines the option; a request may give its name or this.
	Definition schema.Ref `api:"definition" ref:"DHCPv6ServiceOptionDefinition"`
}

// DNSOption is a setting of name servers.
type DNSOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|views|zones|templates"`
	OptionFields
	// Definition is what defines the option; a request may give its name or this.
	Definition schema.Ref `api:"definition" ref:"DNSOptionDefinition"`
}

// StartOfAuthority is what the SOA records of zones say: a list of time to live, primary server, mail address, serial (auto, date or a
// number), refresh, retry, expire and minimum; null in it is the default.
type StartOfAuthority struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|views|zones|templates"`
	OptionFields
	// Definition is what defines the option.
	Definition schema.Ref `api:"definition" ref:"StartOfAuthorityDefinition"`
}

// DHCPVendorOption is an option of a vendor's own, which the vendor's clients are sent within option 43.
type DHCPVendorOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|ranges|addresses|macAddresses|macPools|templates"`
	OptionFields
	// Definition is what defines the option.
	Definition schema.Ref `api:"definition,post" ref:"DHCPVendorOptionDefinition" onDelete:"refuse"`
}

// RawFields are what raw options have: they are text for the configuration of a server, as it stands.
type RawFields struct {
	// Configuration is the configuration the option lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// ServerScope is the server, or the group of servers, that the option is for; null means all.
	ServerScope schema.Ref `api:"serverScope" ref:"Server|HAServer|ServerGroup" onDelete:"refuse"`
	// Resource is what the option lies at.
	Resource schema.Ref `api:"resource,readOnly" column:"parent" onSplit:"copy"`
	// Value is the text.
	Value string `api:"value,required,nonblank" length:"65535"`
}

// DHCPv4RawOption is text for the configuration of DHCPv4 servers.
type DHCPv4RawOption struct {
	schema.Head `head:"nonblank" parents:"subclasses|servers|serverGroups|networks|ranges|addresses|macAddresses|macPools|clientClasses|templates"`
	RawFields
}

// DHCPv6RawOption is text for the configuration of DHCPv6 servers.
type DHCPv6RawOption struct {
	schema.Head `head:"nonblank" parents:"servers|serverGroups|networks|ranges|addresses"`
	RawFields
}

// DNSRawOption is text for the configuration of name servers.
type DNSRawOption struct {
	schema.Head `head:"nonblank" parents:"servers|serverGroups|blocks|networks|views|zones|templates"`
	RawFields
}

// BeforeWrite finds the definition, and checks the value by it.
func (x *OptionFields) BeforeWrite(c *resource.Change) error {
	return x.define(c, schema.HeadOf(c.New), c.Type.RefOf(c.New, "definition"))
}

// Validate refuses a second option of the definition at the same place for the same servers.
func (x *OptionFields) Validate(c *resource.Change) error {
	return x.alone(c, schema.HeadOf(c.New), *c.Type.RefOf(c.New, "definition"))
}

// BeforeWrite refuses the option where its protocol is not served.
func (x *RawFields) BeforeWrite(c *resource.Change) error { return fits(c, schema.HeadOf(c.New)) }

// BeforeWrite reads the eight parts.
func (x *StartOfAuthority) BeforeWrite(c *resource.Change) error {
	if err := fits(c, &x.Head); err != nil {
		return err
	}
	row, err := x.definitionOf(c, &x.Head, x.Definition)
	if err != nil {
		return err
	}
	x.Name, x.Code, x.Definition = row.Name, nil, schema.Ref{ID: row.ID}
	if len(x.Value) == 0 {
		return problem.Missing("value")
	}
	return checkSOA(x.Value)
}

// SOAParts are the parts of a start of authority, and what each of them is; the fourth, the serial, is read apart.
var SOAParts = []string{"<unsigned_integer_32 0..2147483647>", "<domain_name>", "<email>", "", "<unsigned_integer_32 1..2147483647>",
	"<unsigned_integer_32 1..2147483647>", "<unsigned_integer_32 1..2147483647>", "<unsigned_integer_32 0..2147483647>"}

// checkSOA refuses what is no start of authority (RFC 1035 section 3.3.13).
func checkSOA(value json.RawMessage) error {
	bad := func(format string, args ...any) error {
		return problem.Field("InvalidResourceFieldValue", "value", format, args...)
	}
	var parts []json.RawMessage
	if json.Unmarshal(value, &parts) != nil || len(parts) != len(SOAParts) {
		return bad("must be a list of eight: TTL, primary server, mail address, serial, refresh, retry, expire, minimum")
	}
	for i, part := range parts {
		switch text := string(part); {
		case text == "null":
		case SOAParts[i] != "":
			t, err := readToken(SOAParts[i])
			if err != nil {
				return err
			}
			if _, err := t.check(part, nil); err != nil {
				return bad("part %d %v", i, err)
			}
		case text != `"auto"` && text != `"date"`:
			t, err := readToken("<unsigned_integer_32>")
			if err != nil {
				return err
			}
			if _, err := t.check(part, nil); err != nil {
				return bad("part %d, the serial, must be auto, date or a number", i)
			}
		}
	}
	return nil
}
