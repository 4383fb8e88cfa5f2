package dhcp

import (
	"encoding/hex"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
)

// registerClientClasses declares the collections of client classes and their subclasses.
func registerClientClasses(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "clientClasses", Parents: []string{"configurations"}}, &DHCPv4ClientClass{})
	r.Collection(resource.Collection{Name: "subclasses", Parents: []string{"clientClasses"}}, &DHCPv4Subclass{})
}

// DHCPv4ClientClass is a class of DHCPv4 clients. Clients belong to it by a part of an option that they send, or by an expression.
type DHCPv4ClientClass struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the class.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Description is a free text about the purpose of the class.
	Description string `api:"description,search" length:"4000"`
	// Option is the option to compare: hardware, dhcp-client-identifier, vendor-class-identifier, agent.circuit-id or agent.remote-id.
	Option string `api:"option,nonblank"`
	// MatchOffset is the first byte of the option to compare.
	MatchOffset *int64 `api:"matchOffset"`
	// MatchLength is the number of bytes to compare.
	MatchLength *int64 `api:"matchLength"`
	// MatchExpression replaces the three fields above with an expression of ISC dhcpd. An expression that starts with "if " selects the
	// clients of the class itself, without subclasses.
	MatchExpression string `api:"matchExpression,nonblank" length:"4000"`
}

// DHCPv4Subclass contains the clients of a class that send a specific value.
type DHCPv4Subclass struct {
	schema.Head `head:"readOnly" unique:"siblings"`
	// Configuration is the configuration that contains the subclass.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Description is a free text about the clients with this value.
	Description string `api:"description,search" length:"4000"`
	// Value is the value: a text, or bytes such as 0x0A0B.
	Value string `api:"value,required,nonblank,digits"`
}

// matchBounds contains the options that a class can compare, with the lowest and the highest offset, and the upper bound of offset plus
// length.
var matchBounds = map[string]struct{ first, last, end int64 }{
	"hardware":                {1, 6, 7},
	"dhcp-client-identifier":  {1, 256, 257},
	"vendor-class-identifier": {0, 255, 256},
	"agent.circuit-id":        {0, 255, 256},
	"agent.remote-id":         {0, 255, 256},
}

// Validate requires either option, matchOffset and matchLength, or an expression.
func (x *DHCPv4ClientClass) Validate(c *resource.Change) error {
	if err := plainName(x.Name); err != nil {
		return err
	}
	criteria := func(field, format string, args ...any) error {
		return problem.Field("InvalidMatchCriteria", field, format, args...)
	}
	switch {
	case x.MatchExpression != "" && (x.Option != "" || x.MatchOffset != nil || x.MatchLength != nil):
		return criteria("matchExpression", "cannot be combined with option, matchOffset and matchLength")
	case x.MatchExpression != "":
		return x.checkExpression(c)
	case x.Option == "" && x.MatchOffset == nil && x.MatchLength == nil:
		return nil // a class without criteria: other settings assign its clients
	}
	bytes, known := matchBounds[x.Option]
	switch {
	case x.Option == "" || x.MatchOffset == nil || x.MatchLength == nil:
		return criteria("option", "must be set together with matchOffset and matchLength")
	case !known:
		return criteria("option", "must be hardware, dhcp-client-identifier, vendor-class-identifier, agent.circuit-id or agent.remote-id, "+
			"not %q", x.Option)
	case *x.MatchOffset < bytes.first || *x.MatchOffset > bytes.last:
		return criteria("matchOffset", "must be %d to %d for %s, not %d", bytes.first, bytes.last, x.Option, *x.MatchOffset)
	case *x.MatchLength < 1 || *x.MatchLength > bytes.end-*x.MatchOffset:
		return criteria("matchLength", "must be 1 to %d from byte %d of %s, not %d", bytes.end-*x.MatchOffset, *x.MatchOffset, x.Option,
			*x.MatchLength)
	}
	return x.coversSubclasses(c)
}

// coversSubclasses rejects a class that compares fewer bytes than the value of a subclass has.
func (x *DHCPv4ClientClass) coversSubclasses(c *resource.Change) error {
	if old, ok := c.Old.(*DHCPv4ClientClass); !ok || old.MatchLength != nil && *x.MatchLength >= *old.MatchLength {
		return nil
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("subclasses"), store.HasParent(x.ID)}},
		func(r *store.Resource) error {
			o, err := c.API.Object(r)
			if err != nil {
				return err
			}
			bytes, err := ReadValue(o.(*DHCPv4Subclass).Value)
			if err == nil && int64(len(bytes)) > *x.MatchLength {
				err = problem.Field("InvalidMatchCriteria", "matchLength", "subclass %s (%d) has %d bytes", r.Name, r.ID, len(bytes))
			}
			return err
		})
}

// selectsClients reports whether the expression of the class selects its clients itself, so that subclasses are not possible.
func (x *DHCPv4ClientClass) selectsClients() bool { return dhcpdata.IsCondition(x.MatchExpression) }

// checkExpression rejects an invalid expression. If the class has subclasses, it also rejects an expression that does not allow them.
func (x *DHCPv4ClientClass) checkExpression(c *resource.Change) error {
	if err := checkBalance(x.MatchExpression); err != "" {
		return problem.Field("InvalidMatchCriteria", "matchExpression", "%s", err)
	}
	if !x.selectsClients() || x.ID == 0 {
		return nil
	}
	there, err := c.Tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection("subclasses"), store.HasParent(x.ID)}})
	if err == nil && there {
		err = problem.InUse("matchExpression: an expression that starts with if is not allowed for a class with subclasses")
	}
	return err
}

// checkBalance describes a fault of an expression: unbalanced quotes or brackets, or more than one statement. It returns an empty string if
// the expression is valid.
func checkBalance(text string) string {
	depth, quoted, escaped := 0, false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				return "closes a bracket that was not opened"
			}
		case r == ';' && strings.TrimSpace(text[i+1:]) != "", r == '{' || r == '}' || r == '#' || r < ' ':
			return "is one expression on one line, without statements and comments"
		}
	}
	switch {
	case quoted:
		return "has a text that does not end"
	case depth > 0:
		return "opens a bracket that is not closed"
	}
	return ""
}

// plainName rejects a name with blanks, quotes, braces or semicolons, which a server cannot parse.
func plainName(name string) error {
	if strings.ContainsAny(name, " \t\"{};") {
		return problem.Invalid("name", "%q must not contain blanks, quotes, braces or semicolons", name)
	}
	return nil
}

// BeforeWrite sets the name of the subclass to its value.
func (x *DHCPv4Subclass) BeforeWrite(*resource.Change) error {
	x.Value = strings.TrimSpace(x.Value)
	x.Name = strings.Trim(x.Value, `"`)
	return nil
}

// Validate parses the value, and rejects one that is longer than the class compares.
func (x *DHCPv4Subclass) Validate(c *resource.Change) error {
	row, err := c.ReadParent(x.Parent)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	class := o.(*DHCPv4ClientClass)
	if class.selectsClients() {
		return problem.Conflict("ResourceConflictsWithOther",
			"the class %s cannot have subclasses because its matchExpression starts with if",
			class.Name)
	}
	bytes, err := ReadValue(x.Value)
	if err != nil {
		return problem.Invalid("value", "%v", err)
	}
	if len(bytes) == 0 {
		return problem.Invalid("value", "has no byte")
	}
	if class.MatchLength != nil && int64(len(bytes)) > *class.MatchLength {
		return problem.Invalid("value", "has %d bytes, but the class compares %d", len(bytes), *class.MatchLength)
	}
	return nil
}

// ReadValue parses the value of a subclass: bytes such as 0x0A0B or 0A:0B, or a text with or without quotes.
func ReadValue(text string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		return hex.DecodeString(digits)
	}
	if plain := strings.ReplaceAll(text, ":", ""); strings.Contains(text, ":") && len(plain) == strings.Count(text, ":")*2+2 {
		if data, err := hex.DecodeString(plain); err == nil {
			return data, nil
		}
	}
	if strings.HasPrefix(text, `"`) {
		unquoted, err := strconv.Unquote(text)
		return []byte(unquoted), err
	}
	return []byte(text), nil
}
