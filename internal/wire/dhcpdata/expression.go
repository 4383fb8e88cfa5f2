package dhcpdata

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
)

// Expression is a data expression or a condition about a message, as in the match statements of ISC dhcpd.
type Expression struct {
	// Op is the operation: one of the Op constants.
	Op string `json:"op"`
	// Code is the code of an option, and Sub that of a sub-option of the relay information (option 82); 0 for the whole option.
	Code uint8 `json:"code,omitempty"`
	Sub  uint8 `json:"sub,omitempty"`
	// Offset and Length are those of a part; the base and the width of OpToText.
	Offset int `json:"offset,omitempty"`
	Length int `json:"length,omitempty"`
	// Data is a constant, the pattern of OpRegexp, or the separator of OpToText.
	Data Hex           `json:"data,omitempty"`
	Args []*Expression `json:"args,omitempty"`

	pattern *regexp.Regexp
}

// The operations. Those up to OpLower return data; the others are conditions.
const (
	OpConstant  = "constant"
	OpOption    = "option"
	OpHardware  = "hardware"
	OpPacket    = "packet"
	OpSubstring = "substring"
	OpSuffix    = "suffix"
	OpConcat    = "concat"
	OpToText    = "binary-to-ascii"
	OpFirst     = "pick-first-value"
	OpLower     = "lcase"
	OpUpper     = "ucase"

	OpExists   = "exists"
	OpKnown    = "known"
	OpStatic   = "static"
	OpEqual    = "="
	OpNotEqual = "!="
	OpRegexp   = "~="
	OpRegexpI  = "~~"
	OpAnd      = "and"
	OpOr       = "or"
	OpNot      = "not"
)

// Limits of an expression. maxData limits the octets of a computed value.
const (
	maxDepth    = 32
	maxNodes    = 500
	maxPattern  = 500
	maxData     = 4 << 10
	maxConstant = 1 << 10
)

// check returns an error unless the expression is valid, and a condition or data as wanted. It compiles the regular expressions.
func (x *Expression) check(condition bool) error {
	nodes := 0
	return x.checkNode(condition, 1, &nodes)
}

// arities are the operations that return data, and conditions is the list of conditions, with their numbers of arguments: the minimum, and
// the maximum or -1.
var (
	arities = map[string][2]int{OpConstant: {0, 0}, OpOption: {0, 0}, OpHardware: {0, 0}, OpPacket: {0, 0}, OpSubstring: {1, 1},
		OpSuffix: {1, 1}, OpConcat: {1, -1}, OpToText: {1, 1}, OpFirst: {1, -1}, OpLower: {1, 1}, OpUpper: {1, 1}}
	conditions = map[string][2]int{OpExists: {0, 0}, OpKnown: {0, 0}, OpStatic: {0, 0}, OpEqual: {2, 2}, OpNotEqual: {2, 2},
		OpRegexp: {1, 1}, OpRegexpI: {1, 1}, OpAnd: {2, -1}, OpOr: {2, -1}, OpNot: {1, 1}}
)

func (x *Expression) checkNode(condition bool, depth int, nodes *int) error {
	if x == nil {
		return errors.New("a part of the expression is missing")
	}
	if *nodes++; depth > maxDepth || *nodes > maxNodes {
		return fmt.Errorf("the expression is more than %d deep, or has more than %d parts", maxDepth, maxNodes)
	}
	operations, kind := arities, "data"
	if condition {
		operations, kind = conditions, "a condition"
	}
	arity, ok := operations[x.Op]
	if !ok {
		return fmt.Errorf("%q does not return %s", x.Op, kind)
	}
	if len(x.Args) < arity[0] || arity[1] >= 0 && len(x.Args) > arity[1] {
		return fmt.Errorf("%s has %d arguments", x.Op, len(x.Args))
	}
	if x.Offset < 0 || x.Offset > 65535 || x.Length < 0 || x.Length > 65535 {
		return fmt.Errorf("%s has a position outside of a message", x.Op)
	}
	switch x.Op {
	case OpOption, OpExists:
		if x.Code == 0 || x.Code == 255 || x.Sub != 0 && x.Code != 82 {
			return fmt.Errorf("%s names the option %d.%d", x.Op, x.Code, x.Sub)
		}
	case OpToText:
		if x.Offset < 2 || x.Offset > 36 || x.Length != 8 && x.Length != 16 && x.Length != 32 || len(x.Data) > 8 {
			return fmt.Errorf("%s needs a base of 2 to 36, a width of 8, 16 or 32, and a short separator", x.Op)
		}
	case OpRegexp, OpRegexpI:
		if err := x.compile(); err != nil {
			return err
		}
	}
	if len(x.Data) > maxConstant {
		return fmt.Errorf("a constant has %d octets, more than %d", len(x.Data), maxConstant)
	}
	below := condition && (x.Op == OpAnd || x.Op == OpOr || x.Op == OpNot)
	for _, one := range x.Args {
		if err := one.checkNode(below, depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

// compile compiles the regular expression. Its cost at a message is linear.
func (x *Expression) compile() (err error) {
	if len(x.Data) > maxPattern {
		return fmt.Errorf("the regular expression has %d octets, more than %d", len(x.Data), maxPattern)
	}
	text := string(x.Data)
	if x.Op == OpRegexpI {
		text = "(?i)" + text
	}
	x.pattern, err = regexp.Compile(text)
	return err
}

// evaluate returns the data of the expression; ok is false if an option is missing.
func (x *Expression) evaluate(f *Facts) (data []byte, ok bool) {
	switch x.Op {
	case OpConstant:
		return x.Data, true
	case OpOption:
		return f.option(x.Code, x.Sub)
	case OpHardware:
		return append([]byte{f.HardwareType}, f.Hardware...), true
	case OpPacket:
		return part(f.Packet, x.Offset, x.Length), f.Packet != nil
	case OpConcat:
		for _, one := range x.Args {
			more, given := one.evaluate(f)
			if !given || len(data)+len(more) > maxData {
				return nil, false
			}
			data = append(data, more...)
		}
		return data, true
	case OpFirst:
		for _, one := range x.Args {
			if data, ok = one.evaluate(f); ok && len(data) > 0 {
				return data, true
			}
		}
		return nil, false
	}
	if data, ok = x.Args[0].evaluate(f); !ok {
		return nil, false
	}
	switch x.Op {
	case OpSubstring:
		return part(data, x.Offset, x.Length), true
	case OpSuffix:
		return data[max(0, len(data)-x.Length):], true
	case OpLower:
		return bytes.ToLower(data), true
	case OpUpper:
		return bytes.ToUpper(data), true
	}
	return x.toText(data)
}

// part returns up to length octets at an offset.
func part(data []byte, offset, length int) []byte {
	offset = min(offset, len(data))
	return data[offset:min(len(data), offset+length)]
}

// toText writes each number of data in the base, separated by Data.
func (x *Expression) toText(data []byte) ([]byte, bool) {
	var out []byte
	width := x.Length / 8
	for at := 0; at+width <= len(data); at += width {
		n := uint64(0)
		for _, octet := range data[at : at+width] {
			n = n<<8 | uint64(octet)
		}
		if at > 0 {
			out = append(out, x.Data...)
		}
		if out = appendNumber(out, n, x.Offset); len(out) > maxData {
			return nil, false
		}
	}
	return out, true
}

// holds reports whether the condition is true.
func (x *Expression) holds(f *Facts) bool {
	switch x.Op {
	case OpAnd:
		for _, one := range x.Args {
			if !one.holds(f) {
				return false
			}
		}
		return true
	case OpOr:
		for _, one := range x.Args {
			if one.holds(f) {
				return true
			}
		}
		return false
	case OpNot:
		return !x.Args[0].holds(f)
	case OpExists:
		_, ok := f.option(x.Code, x.Sub)
		return ok
	case OpKnown, OpStatic:
		return f.known
	case OpRegexp, OpRegexpI:
		data, ok := x.Args[0].evaluate(f)
		return ok && x.pattern.Match(data)
	}
	left, hasLeft := x.Args[0].evaluate(f)
	right, hasRight := x.Args[1].evaluate(f)
	equal := hasLeft && hasRight && bytes.Equal(left, right)
	return equal == (x.Op == OpEqual)
}
