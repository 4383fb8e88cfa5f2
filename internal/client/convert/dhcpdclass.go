package convert

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// dhcpdClass is a class: its name in Portolan, and the condition that selects its clients. The condition is empty for a class whose clients
// are selected by its subclasses.
type dhcpdClass struct {
	name, condition string
	// derived is the number of classes that follow from conditions inside of the class.
	derived int
}

// className returns a name of a class that Portolan accepts.
func className(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\"{};/", r) {
			return '-'
		}
		return r
	}, name)
}

// rawFormat returns a format as JSON.
func rawFormat(format string) json.RawMessage { return json.RawMessage(format) }

// class reads a class.
func (d *dhcpd) class(s statement, above *dhcpdScope) {
	row := d.rowName
	at := above.newBlock("class")
	if at.class = (&dhcpdClass{name: className(s.word(1))}); d.v6 {
		d.leave("the class %s: DHCPv6 has no classes", s.word(1))
		return
	}
	var match string
	var rest []statement
	for _, one := range s.block {
		d.rowName = one.place()
		switch {
		case one.startsWith("match", "if"):
			condition, err := d.expression(strings.TrimSpace(oneLine(one.source)[len("match if"):]))
			if err != nil {
				d.leave("the class %s: %v", at.class.name, err)
				return
			}
			match, at.class.condition = "if "+condition, condition
		case one.startsWith("match"):
			var err error
			if match, err = d.expression(strings.TrimSpace(oneLine(one.source)[len("match"):])); err != nil {
				d.leave("the class %s: %v", at.class.name, err)
				return
			}
		case one.startsWith("lease", "limit"):
			d.number(at, "dhcp-class-lease-limit", one.word(2))
		case one.startsWith("spawn"):
			d.leave("the class %s: classes are not created at run time", at.class.name)
			return
		case one.startsWith("if"), one.startsWith("elsif"), one.startsWith("else"):
			rest = append(rest, one)
		case !d.setting(one, at):
			d.other(one)
		}
	}
	d.encapsulate(at)
	if match == "" {
		d.rowName = row
		d.leave("the class %s: it has no match statement, so it has no clients", at.class.name)
		return
	}
	for i, one := range rest { // classes of conditions precede the class, whose options they replace
		if d.rowName = one.place(); one.startsWith("if") {
			d.conditional(chainOf(rest[i:]), at)
		}
	}
	d.rowName = row
	d.addClassWith(at.class.name, match, at.own, above)
}

// addClass adds a class.
func (d *Document) addClass(name, match string) {
	d.add(Resource{"type": "DHCPv4ClientClass", "name": name, "matchExpression": match, "tag": false})
}

// addClassWith adds a class with its settings.
func (d *dhcpd) addClassWith(name, match string, own *settings, above *dhcpdScope) {
	d.addClass(name, match)
	d.emitLimited("clientClasses/"+name, own, netip.Addr{}, above)
}

// subclass reads a subclass: a value of its class.
func (d *dhcpd) subclass(s statement, above *dhcpdScope) {
	row := d.rowName
	if len(s.words) < 3 || d.v6 {
		d.leave("the subclass %s: it has no value", s.word(1))
		return
	}
	value := identifierOf(valueWord{s.words[2], s.quoted[2]})
	d.add(Resource{"type": "DHCPv4Subclass", "in": "clientClasses/" + className(s.word(1)), "name": value, "value": value, "tag": false})
	at := above.newBlock("class")
	for _, one := range s.block {
		if d.rowName = one.place(); !d.setting(one, at) {
			d.other(one)
		}
	}
	d.encapsulate(at)
	d.rowName = row
	d.emitLimited("subclasses/"+value, at.own, netip.Addr{}, above)
}

// chainOf returns an if statement with the elsif and else statements that follow it.
func chainOf(all []statement) []statement {
	n := 1
	for n < len(all) && (all[n].startsWith("elsif") || all[n].startsWith("else")) {
		n++
	}
	return all[:n]
}

// localCondition is a condition inside of a subnet. It is imported if all subnets have the same one.
type localCondition struct {
	row       string
	scope     *dhcpdScope
	condition string
	own       *settings
}

// conditional reads if, elsif and else: each branch becomes a class. A condition applies to all clients in the file itself, and to its
// members in a class.
func (d *dhcpd) conditional(chain []statement, at *dhcpdScope) {
	row := d.rowName
	before := "" // the negated conditions of the earlier branches
	for _, s := range chain {
		d.rowName = s.place()
		source := oneLine(s.source)
		words := strings.Fields(source)
		condition := strings.TrimSpace(strings.TrimPrefix(source, words[0]))
		if s.startsWith("else", "if") {
			condition = strings.TrimSpace(strings.TrimPrefix(condition, words[1]))
		}
		if s.describes() {
			d.skip("the content of the block %s is not imported: move hosts and subnets out of it", s.word(0))
			continue
		}
		var err error
		if condition != "" {
			condition, err = d.expression(condition)
		}
		if err != nil || d.v6 {
			if d.v6 {
				err = errors.New("DHCPv6 has no classes")
			}
			d.leave("the condition and its block: %v", err)
			break
		}
		whole := before
		if condition != "" {
			whole = both(before, condition)
			before = both(before, "not ("+condition+")")
		}
		d.branch(s, at, whole)
	}
	d.rowName = row
}

// both returns the conjunction of two conditions; an empty one is true.
func both(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return bracketed(a) + " and " + bracketed(b)
}

// bracketed returns a condition in brackets, unless it is a negation in brackets.
func bracketed(condition string) string {
	if strings.HasPrefix(condition, "not (") && !strings.Contains(condition, " or ") {
		return condition
	}
	return "(" + condition + ")"
}

// branch reads the block of a condition.
func (d *dhcpd) branch(s statement, at *dhcpdScope, condition string) {
	row := d.rowName
	inner := at.newBlock("if")
	var rest []statement
	for _, one := range s.block {
		switch d.rowName = one.place(); {
		case one.startsWith("if"), one.startsWith("elsif"), one.startsWith("else"):
			rest = append(rest, one)
		case !d.setting(one, inner):
			d.other(one)
		}
	}
	d.encapsulate(inner)
	d.rowName = row
	scope := at
	for scope.kind == "if" {
		scope = scope.above
	}
	if of := scope.class; of != nil && of.condition == "" {
		d.leave("the condition in the class %s, whose clients are selected by subclasses", of.name)
		return
	}
	for i, one := range rest {
		if d.rowName = one.place(); one.startsWith("if") {
			nested := &dhcpdScope{kind: "if", above: at, own: &settings{}, subs: map[string]map[int][]byte{}, class: &dhcpdClass{
				name: d.conditionName(scope), condition: both(d.outer(scope), condition)}}
			d.conditional(chainOf(rest[i:]), nested)
		}
	}
	if d.rowName = row; len(inner.own.all) == 0 {
		return
	}
	switch {
	case scope.class != nil:
		of := scope.class
		of.derived++
		d.addClassWith(fmt.Sprintf("%s-%d", of.name, of.derived), "if "+both(of.condition, condition), inner.own, at)
	case scope.above == nil:
		d.addClassWith(d.conditionName(scope), "if "+condition, inner.own, at)
	default:
		d.local = append(d.local, localCondition{row, scope, condition, inner.own})
	}
}

// outer returns the condition of the class that a scope is in.
func (d *dhcpd) outer(at *dhcpdScope) string {
	if at.class == nil {
		return ""
	}
	return at.class.condition
}

// conditionName returns the name of a class for a condition outside of classes.
func (d *dhcpd) conditionName(at *dhcpdScope) string {
	if at.class != nil {
		at.class.derived++
		return fmt.Sprintf("%s-%d", at.class.name, at.class.derived)
	}
	d.conditions++
	return fmt.Sprintf("condition-%d", d.conditions)
}

// closeConditions imports the conditions that all subnets have, and notes those of single subnets.
func (d *dhcpd) closeConditions() {
	type group struct {
		first  localCondition
		scopes []*dhcpdScope
		rows   []string
	}
	groups := map[string]*group{}
	var order []string
	for _, one := range d.local {
		key := one.condition
		for _, s := range one.own.all {
			key += fmt.Sprintf("\n%v %s %v", s.service, s.name, s.value)
		}
		if groups[key] == nil {
			groups[key] = &group{first: one}
			order = append(order, key)
		}
		g := groups[key]
		if g.rows = append(g.rows, one.row); one.scope.kind == "subnet" && !slices.Contains(g.scopes, one.scope) {
			g.scopes = append(g.scopes, one.scope)
		}
	}
	for _, key := range order {
		g := groups[key]
		if d.rowName = g.first.row; len(g.scopes) == len(d.subnets) {
			d.addClassWith(d.conditionName(g.first.scope), "if "+g.first.condition, g.first.own, g.first.scope)
			continue
		}
		for _, d.rowName = range g.rows {
			d.leave("a condition of single subnets or pools: a class applies to all networks")
		}
	}
	d.rowName = ""
}

// functions and words are the names that expressions of Portolan have.
var (
	expressionFunctions = []string{"substring", "suffix", "concat", "binary-to-ascii", "pick-first-value", "pick", "lcase", "ucase", "packet"}
	expressionWords     = []string{"and", "or", "not", "known", "static", "hardware"}
)

// expression returns an expression of dhcpd with the option names of Portolan, or an error for a part that Portolan does not have.
func (d *dhcpd) expression(source string) (string, error) {
	source = strings.TrimSuffix(strings.TrimSpace(source), ";")
	var out strings.Builder
	named := false // the next word is the name of an option
	for i := 0; i < len(source); {
		c := source[i]
		end := i + 1
		switch {
		case c == '"':
			for end < len(source) && source[end] != '"' {
				if source[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(source))
		case isExpressionWord(c):
			for end < len(source) && isExpressionWord(source[end]) {
				end++
			}
			word, err := d.expressionWord(source[i:end], strings.TrimSpace(source[end:]), named)
			if err != nil {
				return "", err
			}
			lower := strings.ToLower(word)
			named = lower == "option" || lower == "exists"
			out.WriteString(word)
			i = end
			continue
		}
		out.WriteString(source[i:end])
		i = end
	}
	text := out.String()
	if data, ok := strings.CutPrefix(text, "option "); ok && !strings.ContainsAny(data, " =~") {
		return text, nil
	}
	return text, nil
}

// isExpressionWord reports whether an octet is a part of a word of an expression.
func isExpressionWord(c byte) bool {
	return unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)) || strings.IndexByte("-._:", c) >= 0
}

// expressionWord returns a word of an expression in the words of Portolan. rest follows the word, and named means that it is the name of an
// option.
func (d *dhcpd) expressionWord(word, rest string, named bool) (string, error) {
	lower := strings.ToLower(word)
	switch {
	case named:
		return d.sentOption(lower)
	case lower == "option", lower == "exists", slices.Contains(expressionWords, lower):
		return word, nil
	case strings.HasPrefix(rest, "("):
		if !slices.Contains(expressionFunctions, lower) {
			return "", fmt.Errorf("the function %s is not supported in conditions", word)
		}
		if lower == "pick" {
			return "pick-first-value", nil
		}
		return word, nil
	}
	if _, isOctets := colonOctets(word); isOctets || strings.Trim(word, "0123456789") == "" {
		return word, nil
	}
	return "", fmt.Errorf("%s is not supported in conditions", word)
}

// sentOption returns the name of an option of clients in the words of Portolan.
func (d *dhcpd) sentOption(name string) (string, error) {
	if strings.HasPrefix(name, "agent.") {
		if slices.Contains([]string{"agent.circuit-id", "agent.remote-id", "agent.link-selection", "agent.subscriber-id", "agent.relay-id"},
			name) {
			return name, nil
		}
		return "", fmt.Errorf("the option %s is not supported in conditions", name)
	}
	for _, sent := range sentNames {
		if sent == name {
			return name, nil
		}
	}
	if slices.Contains([]string{"host-name", "vendor-class-identifier", "arch"}, name) {
		return name, nil
	}
	if definition, known := d.options4.byName[name]; known {
		return definition.Name, nil
	}
	return "", fmt.Errorf("the option %s is not defined", name)
}

// hexText returns octets as 0x and digits.
func hexText(data []byte) string { return "0x" + strings.ToUpper(hex.EncodeToString(data)) }
