package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"portolan/internal/base/problem"
)

// The filter grammar (reference/address-manager-behaviour.md):
//
//	expression = term { "or" term }
//	term       = factor { "and" factor }
//	factor     = "(" expression ")" | path ":" ( value | operator "(" value { "," value } ")" )
//	path       = word { "." word }
//	value      = 'text' | "text" | number | true | false | null

// Node is a parsed filter.
type Node struct {
	Or, And []*Node // exactly one of or, and, path is set
	Path    []string
	At      int // byte position of the path, from 0
	Op      string
	Values  []Literal
}

// Literal is a value as written.
type Literal struct {
	Text     string
	Quoted   bool
	position int
}

// Integer parses a number without quotes.
func (l Literal) Integer() (n int64, ok bool) {
	n, err := strconv.ParseInt(l.Text, 10, 64)
	return n, err == nil && !l.Quoted
}

// maxFilterDepth is the maximum depth of parentheses, maxFilterTerms the maximum number of comparisons of one filter.
const (
	maxFilterDepth = 32
	maxFilterTerms = 200
	// MaxPath is the maximum number of names in a path. maxFilterWeight is the maximum cost of a filter: each value counts 1, plus 4 for
	// each reference on its path.
	MaxPath         = 8
	maxFilterWeight = 400
	referenceWeight = 4
)

// Weight returns the cost of a filter.
func (n *Node) Weight() (w int) {
	for _, part := range append(n.And, n.Or...) {
		w += part.Weight()
	}
	if n.Path != nil {
		w += len(n.Values) * (1 + referenceWeight*(len(n.Path)-1))
	}
	return w
}

// Null reports whether the literal is null, which is written without quotes.
func (l Literal) Null() bool { return !l.Quoted && l.Text == "null" }

// operators are the published operators, and our addition within. The kind of a field determines its operators.
var operators = []string{"eq", "in", "ne", "ge", "gt", "le", "lt", "contains", "within", "startsWith", "endsWith"}

type filterParser struct {
	text     string
	position int
	depth    int
	terms    int
}

// ParseFilter parses a filter. Its error contains the position, counted in bytes from 1.
func ParseFilter(text string) (*Node, error) {
	p := &filterParser{text: text}
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.skipSpace(); p.position < len(text) {
		return nil, p.errorAt(p.position, "expected \"and\", \"or\" or the end")
	}
	if w := n.Weight(); w > maxFilterWeight {
		e := problem.BadRequest("FilterNeedsRefinement",
			"filter: the weight is %d; the maximum is %d. A value has the weight 1, plus %d for each reference on its path", w, maxFilterWeight,
			referenceWeight)
		e.Fields = []string{"filter"}
		return nil, e
	}
	return n, nil
}

func (p *filterParser) errorAt(at int, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	found := "the end"
	if at < len(p.text) {
		r, _ := utf8.DecodeRuneInString(p.text[at:])
		found = fmt.Sprintf("%q", r)
	}
	e := problem.BadRequest("FilterParseError", "filter: at position %d: %s, found %s", at+1, message, found)
	e.Fields = []string{"filter"}
	return e
}

// setCode sets the code of a problem.
func setCode(code string, err error) error {
	if p, ok := problem.As(err); ok {
		p.Code = code
	}
	return err
}

func (p *filterParser) skipSpace() {
	for p.position < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.position]) >= 0 {
		p.position++
	}
}

// acceptWord consumes a word of the grammar, if it is the next word.
func (p *filterParser) acceptWord(word string) bool {
	p.skipSpace()
	end := p.position + len(word)
	if end > len(p.text) || !strings.EqualFold(p.text[p.position:end], word) || end < len(p.text) && wordByte(p.text[end]) {
		return false
	}
	p.position = end
	return true
}

func (p *filterParser) accept(c byte) bool {
	p.skipSpace()
	if p.position < len(p.text) && p.text[p.position] == c {
		p.position++
		return true
	}
	return false
}

func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func (p *filterParser) expression() (*Node, error) {
	first, err := p.term()
	if err != nil {
		return nil, err
	}
	n := &Node{Or: []*Node{first}}
	for p.acceptWord("or") {
		next, err := p.term()
		if err != nil {
			return nil, err
		}
		n.Or = append(n.Or, next)
	}
	if len(n.Or) == 1 {
		return first, nil
	}
	return n, nil
}

func (p *filterParser) term() (*Node, error) {
	first, err := p.factor()
	if err != nil {
		return nil, err
	}
	n := &Node{And: []*Node{first}}
	for p.acceptWord("and") {
		next, err := p.factor()
		if err != nil {
			return nil, err
		}
		n.And = append(n.And, next)
	}
	if len(n.And) == 1 {
		return first, nil
	}
	return n, nil
}

func (p *filterParser) factor() (*Node, error) {
	if p.accept('(') {
		if p.depth++; p.depth > maxFilterDepth {
			return nil, p.errorAt(p.position, "parentheses must nest at most %d deep", maxFilterDepth)
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		if !p.accept(')') {
			return nil, p.errorAt(p.position, "expected \")\"")
		}
		p.depth--
		return n, nil
	}
	return p.comparison()
}

func (p *filterParser) word() string {
	from := p.position
	for p.position < len(p.text) && wordByte(p.text[p.position]) {
		p.position++
	}
	return p.text[from:p.position]
}

func (p *filterParser) comparison() (*Node, error) {
	if p.terms++; p.terms > maxFilterTerms {
		return nil, p.errorAt(p.position, "the filter must have at most %d comparisons", maxFilterTerms)
	}
	p.skipSpace()
	n := &Node{At: p.position, Op: "eq"}
	for {
		word := p.word()
		if word == "" {
			return nil, p.errorAt(p.position, "expected the name of a field")
		}
		if n.Path = append(n.Path, word); len(n.Path) > MaxPath {
			return nil, p.errorAt(n.At, "the path must have at most %d names", MaxPath)
		}
		if p.position < len(p.text) && p.text[p.position] == '.' {
			p.position++
			continue
		}
		break
	}
	if !p.accept(':') {
		return nil, p.errorAt(p.position, "expected \":\" after the field %s", strings.Join(n.Path, "."))
	}
	p.skipSpace()
	from := p.position
	if word := p.word(); word != "" && p.accept('(') {
		if !slices.Contains(operators, word) {
			return nil, setCode("UnsupportedFilterOperator", p.errorAt(from,
				"unknown operator %s; must be one of %s", word, strings.Join(operators, ", ")))
		}
		n.Op = word
		return n, p.arguments(n)
	}
	p.position = from
	v, err := p.value()
	n.Values = []Literal{v}
	return n, err
}

func (p *filterParser) arguments(n *Node) error {
	for {
		v, err := p.value()
		if err != nil {
			return err
		}
		if n.Values = append(n.Values, v); len(n.Values) > maxFilterTerms {
			return p.errorAt(p.position, "the list must have at most %d values", maxFilterTerms)
		}
		if p.accept(')') {
			break
		}
		if !p.accept(',') {
			return p.errorAt(p.position, "expected \",\" or \")\"")
		}
	}
	if n.Op != "in" && len(n.Values) != 1 {
		return p.errorAt(n.Values[1].position, "%s accepts only one value", n.Op)
	}
	return nil
}

func (p *filterParser) value() (Literal, error) {
	p.skipSpace()
	v := Literal{position: p.position}
	if p.position >= len(p.text) {
		return v, p.errorAt(p.position, "expected a value")
	}
	quote := p.text[p.position]
	if quote != '\'' && quote != '"' {
		for p.position < len(p.text) && (wordByte(p.text[p.position]) || p.text[p.position] == '.' || p.text[p.position] == '+') {
			p.position++
		}
		v.Text = p.text[v.position:p.position]
		switch {
		case v.Text == "":
			return v, p.errorAt(p.position, "expected a value")
		case v.Text == "true", v.Text == "false", v.Text == "null", numeral(v.Text):
			return v, nil
		}
		return v, setCode("FilterTokenError", p.errorAt(v.position, "text must be in quotes"))
	}
	v.Quoted = true
	var b strings.Builder
	for p.position++; p.position < len(p.text); p.position++ {
		switch c := p.text[p.position]; {
		case c == quote:
			p.position++
			v.Text = b.String()
			return v, nil
		case c == '\\' && p.position+1 < len(p.text):
			p.position++
			b.WriteByte(p.text[p.position])
		default:
			b.WriteByte(c)
		}
	}
	return v, setCode("FilterTokenError", p.errorAt(p.position, "the text at position %d has no closing quote", v.position+1))
}

// numeral reports whether text is a number as in JSON.
func numeral(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9' && strings.Trim(digits, "0123456789.eE+-") == ""
}
