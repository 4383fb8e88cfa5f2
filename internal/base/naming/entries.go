package naming

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// entryText is an entry of a zone file: its tokens, with quotes and escapes unchanged. blank is true if it starts with white space, so that
// the owner is omitted.
type entryText struct {
	tokens []string
	blank  bool
	line   int
}

// unclosed is a fault of an entry. atEnd is true if the file ends with it; otherwise the next line is the next entry.
type unclosed struct {
	problem string
	atEnd   bool
}

func (e unclosed) Error() string { return e.problem }

// strayParenthesis is the fault of an entry with too many closing parentheses.
const strayParenthesis = "a closing parenthesis has no opening parenthesis"

// entryScanner splits a zone file into entries: lines, joined by parentheses, without comments.
type entryScanner struct {
	reader *bufio.Reader
	line   int
}

// next returns the next entry that has tokens. The error is io.EOF at the end.
func (s *entryScanner) next() (e entryText, err error) {
	var token strings.Builder
	depth := 0
	stray := false // more parentheses were closed than opened
	begun, quoted, comment, start := false, false, false, true
	end := func() {
		if begun {
			e.tokens = append(e.tokens, token.String())
			token.Reset()
			begun = false
		}
	}
	e.line = s.line
	for {
		c, err := s.reader.ReadByte()
		if errors.Is(err, io.EOF) {
			switch end(); {
			case quoted:
				return e, unclosed{"no closing quotation mark", true}
			case stray:
				return e, unclosed{strayParenthesis, true}
			case depth > 0:
				return e, unclosed{"no closing parenthesis: the rest of the file was not read", true}
			case len(e.tokens) > 0:
				return e, nil
			}
			return e, io.EOF
		}
		if err != nil {
			return e, err
		}
		if start && depth == 0 {
			e.blank = c == ' ' || c == '\t'
		}
		start = false
		if c == '\n' {
			s.line++
		}
		switch {
		case c == '\n' && quoted:
			return e, unclosed{"no closing quotation mark in the line", false}
		case c == '\n' && stray: // even if parentheses are open
			return e, unclosed{strayParenthesis, false}
		case c == '\n' && depth > 0:
			comment = false
			end()
		case c == '\n':
			if end(); len(e.tokens) > 0 {
				return e, nil
			}
			comment, start, e.line = false, true, s.line
		case comment:
		case c == '\\':
			begun = true
			token.WriteByte(c)
			if next, err := s.reader.ReadByte(); err == nil && next != '\n' {
				token.WriteByte(next)
			} else if err == nil {
				_ = s.reader.UnreadByte() // it was just read
			}
		case c == '"':
			if !quoted && !strings.HasSuffix(token.String(), "=") { // key="value" is one token (RFC 9460 section 2.1)
				end()
			}
			begun = true
			token.WriteByte(c)
			if quoted = !quoted; !quoted {
				end()
			}
		case quoted:
			token.WriteByte(c)
		case c == ';':
			end()
			comment = true
		case c == '(' || c == ')':
			end()
			if depth++; c == ')' {
				depth -= 2
			}
			if depth < 0 {
				depth, stray = 0, true
			}
		case c == ' ' || c == '\t' || c == '\r':
			end()
		default:
			begun = true
			token.WriteByte(c)
		}
	}
}
