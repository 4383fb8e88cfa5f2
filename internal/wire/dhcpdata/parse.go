package dhcpdata

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseMatch parses the match expression of a client class in the syntax of ISC dhcpd: a data expression, or "if" with a condition. codes
// returns the code of an option by its name; the names that clients commonly send are built in, so it may be nil.
func ParseMatch(text string, codes func(name string) (uint8, bool)) (x *Expression, condition bool, err error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	if len(text) > maxExpression {
		return nil, false, fmt.Errorf("the expression has %d octets, more than %d", len(text), maxExpression)
	}
	p := &expressionParser{codes: codes}
	if err := p.split(text); err != nil {
		return nil, false, err
	}
	if strings.EqualFold(p.peek(), "match") {
		p.position++
	}
	if strings.EqualFold(p.peek(), "if") {
		p.position++
		condition = true
		x, err = p.disjunction(0)
	} else {
		x, err = p.data(0)
	}
	if err == nil && p.position < len(p.tokens) {
		err = fmt.Errorf("%q follows the end of the expression", p.peek())
	}
	if err == nil {
		err = x.check(condition)
	}
	return x, condition, err
}

// IsCondition reports whether a match expression is a condition, so that it begins with "if" or "match if".
func IsCondition(text string) bool {
	words := strings.Fields(text)
	if len(words) > 0 && strings.EqualFold(words[0], "match") {
		words = words[1:]
	}
	return len(words) > 0 && (strings.EqualFold(words[0], "if") || strings.HasPrefix(strings.ToLower(words[0]), "if("))
}

// maxExpression is the maximum size of the text of an expression in octets.
const maxExpression = 16 << 10

// expressionParser is a parser by recursive descent.
type expressionParser struct {
	tokens   []string // a text begins with a quotation mark, without the closing one
	position int
	codes    func(string) (uint8, bool)
}

// split splits the text into tokens.
func (p *expressionParser) split(text string) error {
	for at := 0; at < len(text); {
		c := text[at]
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
		case c == '"':
			one, n, err := quoted(text[at:])
			if err != nil {
				return err
			}
			p.tokens, at = append(p.tokens, one), at+n
		case strings.IndexByte("(),=", c) >= 0:
			p.tokens, at = append(p.tokens, text[at:at+1]), at+1
		case c == '!' || c == '~':
			if at+1 == len(text) || text[at+1] != '=' && (c != '~' || text[at+1] != '~') {
				return fmt.Errorf("%q is not an operator", text[at:min(len(text), at+2)])
			}
			p.tokens, at = append(p.tokens, text[at:at+2]), at+2
		default:
			end := at
			for end < len(text) && isWord(text[end]) {
				end++
			}
			if end == at {
				return fmt.Errorf("the character %q is not allowed in an expression", c)
			}
			p.tokens, at = append(p.tokens, text[at:end]), end
		}
	}
	return nil
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-._:", c) >= 0
}

// quoted returns the text at the start, with its opening quotation mark, and its length with both.
func quoted(text string) (string, int, error) {
	out := []byte{'"'}
	for at := 1; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			return string(out), at + 1, nil
		case c != '\\' || at+1 == len(text):
			out = append(out, c)
		default:
			at++
			octet, n := escaped(text[at:])
			out = append(out, octet)
			at += n - 1
		}
	}
	return "", 0, errors.New("a text in the expression has no end")
}

// escaped returns the octet of an escape sequence without its backslash, and the length of the sequence.
func escaped(text string) (byte, int) {
	switch c := text[0]; {
	case c == 't':
		return '\t', 1
	case c == 'r':
		return '\r', 1
	case c == 'n':
		return '\n', 1
	case c == 'x' && len(text) >= 3:
		if n, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
			return byte(n), 3
		}
	case c >= '0' && c <= '3' && len(text) >= 3:
		if n, err := strconv.ParseUint(text[:3], 8, 8); err == nil {
			return byte(n), 3
		}
	}
	return text[0], 1
}

func (p *expressionParser) peek() string {
	if p.position == len(p.tokens) {
		return ""
	}
	return p.tokens[p.position]
}

func (p *expressionParser) next() string {
	one := p.peek()
	if one != "" {
		p.position++
	}
	return one
}

func (p *expressionParser) expectToken(token string) error {
	if got := p.next(); got != token {
		return fmt.Errorf("%q is expected instead of %q", token, strings.TrimPrefix(got, `"`))
	}
	return nil
}

var errDeep = fmt.Errorf("the expression is more than %d deep", maxDepth)

// disjunction parses conditions that are joined by "or".
func (p *expressionParser) disjunction(depth int) (*Expression, error) {
	return p.joined(OpOr, depth, func(depth int) (*Expression, error) {
		return p.joined(OpAnd, depth, p.condition)
	})
}

func (p *expressionParser) joined(op string, depth int, part func(int) (*Expression, error)) (*Expression, error) {
	first, err := part(depth + 1)
	if err != nil {
		return nil, err
	}
	all := []*Expression{first}
	for strings.EqualFold(p.peek(), op) {
		p.position++
		more, err := part(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, more)
	}
	if len(all) == 1 {
		return first, nil
	}
	return &Expression{Op: op, Args: all}, nil
}

// condition parses a condition without "and" and "or".
func (p *expressionParser) condition(depth int) (*Expression, error) {
	if depth > 3*maxDepth {
		return nil, errDeep
	}
	switch strings.ToLower(p.peek()) {
	case "(":
		p.position++
		x, err := p.disjunction(depth + 1)
		if err != nil {
			return nil, err
		}
		return x, p.expectToken(")")
	case OpNot:
		p.position++
		x, err := p.condition(depth + 1)
		return &Expression{Op: OpNot, Args: []*Expression{x}}, err
	case OpKnown, OpStatic:
		return &Expression{Op: strings.ToLower(p.next())}, nil
	case OpExists:
		p.position++
		code, sub, err := p.option()
		return &Expression{Op: OpExists, Code: code, Sub: sub}, err
	}
	left, err := p.data(depth + 1)
	if err != nil {
		return nil, err
	}
	op := p.next()
	switch op {
	case OpEqual, OpNotEqual:
		right, err := p.data(depth + 1)
		return &Expression{Op: op, Args: []*Expression{left, right}}, err
	case OpRegexp, OpRegexpI:
		pattern, ok := strings.CutPrefix(p.next(), `"`)
		if !ok {
			return nil, fmt.Errorf("a text in quotation marks is expected after %s", op)
		}
		return &Expression{Op: op, Data: Hex(pattern), Args: []*Expression{left}}, nil
	}
	return nil, fmt.Errorf("one of =, !=, ~= and ~~ is expected instead of %q", op)
}

// data parses a data expression.
func (p *expressionParser) data(depth int) (*Expression, error) {
	if depth > 3*maxDepth {
		return nil, errDeep
	}
	token := p.next()
	if text, ok := strings.CutPrefix(token, `"`); ok {
		return &Expression{Op: OpConstant, Data: Hex(text)}, nil
	}
	switch op := strings.ToLower(token); op {
	case "":
		return nil, errors.New("the expression ends too early")
	case OpOption:
		code, sub, err := p.option()
		return &Expression{Op: OpOption, Code: code, Sub: sub}, err
	case OpHardware:
		return &Expression{Op: OpHardware}, nil
	case OpPacket, OpSubstring, OpSuffix, OpToText, OpConcat, OpFirst, OpLower, OpUpper:
		return p.call(op, depth)
	}
	if octets, ok := colonHex(token); ok {
		return &Expression{Op: OpConstant, Data: octets}, nil
	}
	return nil, fmt.Errorf("%q is not a data expression", token)
}

// call parses the arguments of a function.
func (p *expressionParser) call(op string, depth int) (*Expression, error) {
	x := &Expression{Op: op}
	if err := p.expectToken("("); err != nil {
		return nil, err
	}
	// The arguments of each function: d is data, n and m are Offset and Length, s is the separator.
	shapes := map[string]string{OpPacket: "nm", OpSubstring: "dnm", OpSuffix: "dm", OpToText: "nmsd", OpLower: "d", OpUpper: "d"}
	shape, fixed := shapes[op]
	for i := 0; !fixed || i < len(shape); i++ {
		if i > 0 && p.peek() == ")" && !fixed {
			break
		}
		if i > 0 {
			if err := p.expectToken(","); err != nil {
				return nil, err
			}
		}
		kind := byte('d')
		if fixed {
			kind = shape[i]
		}
		if err := p.argument(x, kind, depth); err != nil {
			return nil, err
		}
	}
	return x, p.expectToken(")")
}

func (p *expressionParser) argument(x *Expression, kind byte, depth int) error {
	switch kind {
	case 'd':
		one, err := p.data(depth + 1)
		x.Args = append(x.Args, one)
		return err
	case 's':
		text, ok := strings.CutPrefix(p.next(), `"`)
		if !ok {
			return errors.New("the separator of binary-to-ascii must be a text in quotation marks")
		}
		x.Data = Hex(text)
		return nil
	}
	token := p.next()
	n, err := strconv.ParseUint(token, 10, 16)
	if err != nil {
		return fmt.Errorf("%q is not a number of 0 to 65535", token)
	}
	if kind == 'n' {
		x.Offset = int(n)
	} else {
		x.Length = int(n)
	}
	return nil
}

// option parses the name of an option.
func (p *expressionParser) option() (code, sub uint8, err error) {
	name := strings.ToLower(p.next())
	if both, ok := sentByClients[name]; ok {
		return both[0], both[1], nil
	}
	if p.codes != nil {
		if code, ok := p.codes(name); ok {
			return code, 0, nil
		}
	}
	return 0, 0, fmt.Errorf("unknown option %q", name)
}

// sentByClients are the options that clients and relays commonly send, as code and sub-option.
var sentByClients = map[string][2]uint8{
	"host-name": {12}, "dhcp-requested-address": {50}, "dhcp-lease-time": {51}, "dhcp-message-type": {53},
	"dhcp-server-identifier": {54}, "dhcp-parameter-request-list": {55}, "dhcp-message": {56}, "dhcp-max-message-size": {57},
	"vendor-class-identifier": {60}, "dhcp-client-identifier": {61}, "user-class": {77}, "fqdn": {81}, "relay-agent-information": {82},
	"pxe-system-type": {93}, "arch": {93}, "pxe-interface-id": {94}, "pxe-client-id": {97}, "vivco": {124}, "vivso": {125},
	"vendor-encapsulated-options": {43}, "agent.circuit-id": {82, 1}, "agent.remote-id": {82, 2}, "agent.link-selection": {82, 5},
	"agent.subscriber-id": {82, 6}, "agent.relay-id": {82, 12}, "agent.vss": {82, 151},
}

// colonHex parses octets in hexadecimal digits that are separated by colons, or digits after 0x.
func colonHex(text string) (Hex, bool) {
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		octets, err := hex.DecodeString(digits)
		return octets, err == nil && len(octets) > 0
	}
	if !strings.Contains(text, ":") && len(text) > 2 {
		return nil, false
	}
	var out Hex
	for one := range strings.SplitSeq(text, ":") {
		n, err := strconv.ParseUint(one, 16, 8)
		if err != nil || len(one) > 2 {
			return nil, false
		}
		out = append(out, byte(n))
	}
	return out, true
}

// MatchOf returns the expression of a class that compares a part of an option: hardware, dhcp-client-identifier, vendor-class-identifier,
// agent.circuit-id or agent.remote-id.
func MatchOf(option string, offset, length int) (*Expression, error) {
	x := &Expression{Op: OpHardware}
	if option != OpHardware {
		both, ok := sentByClients[option]
		if !ok {
			return nil, fmt.Errorf("unknown option %q", option)
		}
		x = &Expression{Op: OpOption, Code: both[0], Sub: both[1]}
	}
	x = &Expression{Op: OpSubstring, Offset: offset, Length: length, Args: []*Expression{x}}
	return x, x.check(false)
}
