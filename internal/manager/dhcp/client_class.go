package dhcp

import (
	"encoding/hex"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerClientClasses declares the collections of client classes and their subclasses.
func registerClientClasses(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "clientClasses", Parents: []string{"configurations"}}, &DHCPv4ClientClass{})
	r.Collection(resource.Collection{Name: "subclasses", Parents: []string{"clientClasses"}}, &DHCPv4Subclass{})
}

// DHCPv4ClientClass is a class of DHCPv4 clients: those of whom a part of what they send, or an expression, is alike.
type DHCPv4ClientClass struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration the class lies in.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Description says what the class is for.
	Description string `api:"description,search" length:"4000"`
	// Option is what is looked at: hardware, dhcp-client-identifier, vendor-class-identifier, agent.circuit-id, agent.remote-id.
	Option string `api:"option,nonblank"`
	// MatchOffset is the byte of it that the match begins with.
	MatchOffset *int64 `api:"matchOffset"`
	// MatchLength is how many bytes are compared.
	MatchLength *int64 `api:"matchLength"`
	// MatchExpression stands in for the three: an expression as ISC dhcpd has them; one that begins with "if " says itself who is in the
	// class.
	MatchExpression string `api:"matchExpression,nonblank" length:"4000"`
}

// DHCPv4Subclass is the clients of a class that sent one value.
type DHCPv4Subclass struct {
	schema.Head `head:"readOnly" unique:"siblings"`
	// Configuration is the configuration the subclass lies in.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Description says whose value it is.
	Description string `api:"description,search" length:"4000"`
	// Value is the value: a text, or bytes as 0x0A0B.
	Value string `api:"value,required,nonblank,digits"`
}

// matched are what a class may look at, and which bytes of it there are: the first, the last and one more than the last.
var matchBounds = map[string]struct{ first, last, end int64 }{
	"hardware":                {1, 6, 7},
	"dhcp-client-identifier":  {1, 256, 257},
	"vendor-class-identifier": {0, 255, 256},
	"agent.circuit-id":        {0, 255, 256},
	"agent.remote-id":         {0, 255, 256},
}

// Validate asks for what is compared, or for an expression, and not for both.
func (x *DHCPv4ClientClass) Validate(c *resource.Change) error {
	if err := plainName(x.Name); err != nil {
		return err
	}
	criteria := func(field, format string, args ...any) error {
		return problem.Field("InvalidMatchCriteria", field, format, args...)
	}
	switch {
	case x.MatchExpression != "" && (x.Option != "" || x.MatchOffset != nil || x.MatchLength != nil):
		return criteria("matchExpression", "stands in for option, matchOffset and matchLength; give the one or the others")
	case x.MatchExpression != "":
		return x.checkExpression(c)
	case x.Option == "" && x.MatchOffset == nil && x.MatchLength == nil:
		return nil // who is in the class is said elsewhere
	}
	bytes, known := matchBounds[x.Option]
	switch {
	case x.Option == "" || x.MatchOffset == nil || x.MatchLength == nil:
		return criteria("option", "option, matchOffset and matchLength are given together")
	case !known:
		return criteria("option", "%q is none of hardware, dhcp-client-identifier, vendor-class-identifier, agent.circuit-id, agent.remote-id",
			x.Option)
	case *x.MatchOffset < bytes.first || *x.MatchOffset > bytes.last:
		return criteria("matchOffset", "of %s is %d to %d", x.Option, bytes.first, bytes.last)
	case *x.MatchLength < 1 || *x.MatchLength > bytes.end-*x.MatchOffset:
		return criteria("matchLength", "from byte %d of %s is 1 to %d", *x.MatchOffset, x.Option, bytes.end-*x.MatchOffset)
	}
	return x.coversSubclasses(c)
}

// coversSubclasses refuses a class that compares fewer bytes than its subclasses have.
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
			bytes, err := readValue(o.(*DHCPv4Subclass).Value)
			if err == nil && int64(len(bytes)) > *x.MatchLength {
				err = problem.Field("InvalidMatchCriteria", "matchLength", "subclass %d, %s, has %d bytes", r.ID, r.Name, len(bytes))
			}
			return err
		})
}

// decides reports whether the class's expression says itself who is in it, so that there is nothing to tell subclasses apart by.
func (x *DHCPv4ClientClass) selectsClients() bool { return strings.HasPrefix(x.MatchExpression, "if ") }

// checkExpression refuses what a server could not read as one expression, and one that takes no subclasses where there are some.
func (x *DHCPv4ClientClass) checkExpression(c *resource.Change) error {
	if err := checkBalance(x.MatchExpression); err != "" {
		return problem.Field("InvalidMatchCriteria", "matchExpression", "%s", err)
	}
	if !x.selectsClients() || x.ID == 0 {
		return nil
	}
	there, err := c.Tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection("subclasses"), store.HasParent(x.ID)}})
	if err == nil && there {
		err = problem.InUse("matchExpression: the class has subclasses, and an expression that begins with if takes none")
	}
	return err
}

// balanced says what is wrong with the quotes and brackets of an expression, or that a statement ends in it; empty where nothing is.
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

// plainName refuses a name with blanks, which a server could not read.
func plainName(name string) error {
	if strings.ContainsAny(name, " \t\"{};") {
		return problem.Invalid("name", "%q has blanks, quotes or any of { } ;", name)
	}
	return nil
}

// BeforeWrite names the subclass by its value.
func (x *DHCPv4Subclass) BeforeWrite(*resource.Change) error {
	x.Value = strings.TrimSpace(x.Value)
	x.Name = strings.Trim(x.Value, `"`)
	return nil
}

// Validate reads the value, and refuses one that does not fit the class.
func (x *DHCPv4Subclass) Validate(c *resource.Change) error {
	row, err := c.Above(x.Parent)
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
			"the class %s says itself who is in it, by an expression that begins with if: it has no subclasses",
			class.Name)
	}
	bytes, err := readValue(x.Value)
	if err != nil {
		return problem.Invalid("value", "%v", err)
	}
	if len(bytes) == 0 {
		return problem.Invalid("value", "has no byte")
	}
	if class.MatchLength != nil && int64(len(bytes)) > *class.MatchLength {
		return problem.Invalid("value", "has %d bytes, and the class compares %d", len(bytes), *class.MatchLength)
	}
	return nil
}

// readValue reads the value of a subclass: bytes as 0x0A0B or 0A:0B, or a text, in quotes or not.
func readValue(text string) ([]byte, error) {
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
