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

// OptionFields are the fields of options that have a definition.
type OptionFields struct {
	// Configuration is the configuration of the option.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// ServerScope is the server or server group that the option is for; null means all servers.
	ServerScope schema.Ref `api:"serverScope" ref:"Server|HAServer|ServerGroup" onDelete:"refuse"`
	// Value is the value, in the format that the definition requires.
	Value json.RawMessage `api:"value,any"`
	// Code is the number of the option; null where it has none.
	Code *int64 `api:"code" min:"1" max:"255"`
	// Resource is the resource that the option is set on.
	Resource schema.Ref `api:"resource,readOnly" column:"parent" onSplit:"copy"`
	// Mentions are the access control lists, keys, pools and classes that the value names.
	Mentions schema.RefList `api:"mentions,hidden" onDelete:"refuse"`
}

// DHCPv4ClientOption is an option that is sent to DHCPv4 clients.
type DHCPv4ClientOption struct {
	schema.Head `head:"nonblank" parents:"subclasses|configurations|servers|serverGroups|blocks|networks|ranges|addresses|macAddresses|macPools|clientClasses|templates"`
	OptionFields
	// Definition is the definition of the option; a request may give its name, its code or this field.
	Definition schema.Ref `api:"definition" ref:"DHCPv4ClientOptionDefinition|DHCPv4CustomClientOptionDefinition" onDelete:"refuse"`
}

// DHCPv4ServiceOption is a setting of DHCPv4 servers.
type DHCPv4ServiceOption struct {
	schema.Head `head:"nonblank" parents:"subclasses|configurations|servers|serverGroups|blocks|networks|ranges|addresses|macAddresses|macPools|clientClasses|templates"`
	OptionFields
	// Definition is the definition of the option; a request may give its name or this field.
	Definition schema.Ref `api:"definition" ref:"DHCPv4ServiceOptionDefinition"`
}

// DHCPv6ClientOption is an option that is sent to DHCPv6 clients.
type DHCPv6ClientOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|ranges|addresses"`
	OptionFields
	// Definition is the definition of the option; a request may give its name, its code or this field.
	Definition schema.Ref `api:"definition" ref:"DHCPv6ClientOptionDefinition"`
}

// DHCPv6ServiceOption is a setting of DHCPv6 servers.
type DHCPv6ServiceOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|ranges|addresses"`
	OptionFields
	// Definition is the definition of the option; a request may give its name or this field.
	Definition schema.Ref `api:"definition" ref:"DHCPv6ServiceOptionDefinition"`
}

// DNSOption is a setting of name servers.
type DNSOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|views|zones|templates"`
	OptionFields
	// Definition is the definition of the option; a request may give its name or this field.
	Definition schema.Ref `api:"definition" ref:"DNSOptionDefinition"`
}

// StartOfAuthority sets the contents of the SOA records of zones. Its value is a list of eight: time to live, primary server, mail address,
// serial (auto, date or a number), refresh, retry, expire and minimum. A null entry means the default.
type StartOfAuthority struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|views|zones|templates"`
	OptionFields
	// Definition is the definition of the option.
	Definition schema.Ref `api:"definition" ref:"StartOfAuthorityDefinition"`
}

// DHCPVendorOption is an option of a vendor, which is sent to the vendor's clients within option 43.
type DHCPVendorOption struct {
	schema.Head `head:"nonblank" parents:"configurations|servers|serverGroups|blocks|networks|ranges|addresses|macAddresses|macPools|templates"`
	OptionFields
	// Definition is the definition of the option.
	Definition schema.Ref `api:"definition,post" ref:"DHCPVendorOptionDefinition" onDelete:"refuse"`
}

// RawFields are the fields of raw options: text that is copied into the configuration of a server.
type RawFields struct {
	// Configuration is the configuration of the option.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// ServerScope is the server or server group that the option is for; null means all servers.
	ServerScope schema.Ref `api:"serverScope" ref:"Server|HAServer|ServerGroup" onDelete:"refuse"`
	// Resource is the resource that the option is set on.
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

// BeforeWrite finds the definition, and checks the value against it.
func (x *OptionFields) BeforeWrite(c *resource.Change) error {
	return x.resolveDefinition(c, schema.HeadOf(c.New), c.Type.RefOf(c.New, "definition"))
}

// Validate rejects a second option with the same definition, resource and server scope.
func (x *OptionFields) Validate(c *resource.Change) error {
	return x.checkUnique(c, schema.HeadOf(c.New), *c.Type.RefOf(c.New, "definition"))
}

// BeforeWrite rejects the option on a resource that does not have its protocol.
func (x *RawFields) BeforeWrite(c *resource.Change) error {
	return checkFamily(c, schema.HeadOf(c.New))
}

// BeforeWrite checks the eight parts of the value.
func (x *StartOfAuthority) BeforeWrite(c *resource.Change) error {
	if err := checkFamily(c, &x.Head); err != nil {
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

// SOAParts are the formats of the parts of a start of authority. The fourth part, the serial, is checked separately.
var SOAParts = []string{"<unsigned_integer_32 0..2147483647>", "<domain_name>", "<email>", "", "<unsigned_integer_32 1..2147483647>",
	"<unsigned_integer_32 1..2147483647>", "<unsigned_integer_32 1..2147483647>", "<unsigned_integer_32 0..2147483647>"}

// checkSOA returns an error for a value that is not a start of authority (RFC 1035 section 3.3.13).
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
