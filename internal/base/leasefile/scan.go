package leasefile

import (
	"bytes"
	"errors"
	"strings"
)

// statement is a statement of a file of ISC dhcpd: words up to a semicolon or a block.
type statement struct {
	line     int
	words    []string
	quoted   []bool
	block    []statement
	hasBlock bool
}

// word returns a word; empty if there is none.
func (s statement) word(i int) string {
	if i >= len(s.words) {
		return ""
	}
	return s.words[i]
}

// scanner splits a file of ISC dhcpd into statements.
type scanner struct {
	text   []byte
	offset int
	line   int
}

var (
	errEnd       = errors.New("the file ends")
	errTruncated = errors.New("the entry does not end: the file is truncated or damaged here")
	errBrace     = errors.New("the entry has one closing brace too many")
	errDeep      = errors.New("blocks are nested too deeply")
	errOctets    = errors.New("the entry contains octets that are not text: the file is damaged here")
	errQuote     = errors.New("a text does not end in its line")
)

// maxDepth is the maximum number of nested blocks.
const maxDepth = 20

// statement returns the next statement outside of blocks. With an error, it returns the words before it.
func (s *scanner) statement() (statement, error) { return s.readNested(0) }

func (s *scanner) readNested(depth int) (one statement, err error) {
	if depth > maxDepth {
		return one, errDeep
	}
	for {
		word, kind, err := s.token()
		if len(one.words) == 0 {
			one.line = s.line
		}
		switch {
		case errors.Is(err, errEnd) && len(one.words) > 0:
			return one, errTruncated
		case err != nil:
			return one, err
		}
		switch kind {
		case 'w', 'q':
			if depth > 0 && len(one.words) == 0 && isEntry(word) { // the entry before it was not written to its end
				return one, errTruncated
			}
			one.words, one.quoted = append(one.words, word), append(one.quoted, kind == 'q')
		case ';':
			if len(one.words) > 0 {
				return one, nil
			}
		case '}':
			if depth == 0 || len(one.words) > 0 {
				return one, errBrace
			}
			return one, errBlockEnd
		case '{':
			one.hasBlock = true
			for {
				inner, err := s.readNested(depth + 1)
				switch {
				case errors.Is(err, errBlockEnd):
					return one, nil
				case errors.Is(err, errEnd):
					return one, errTruncated
				case err != nil:
					return one, err
				}
				one.block = append(one.block, inner)
			}
		}
	}
}

// isEntry reports whether a word begins an entry of a lease.
func isEntry(word string) bool {
	switch word {
	case "lease", "ia-na", "ia-ta", "ia-pd", "ia_na", "ia_ta", "ia_pd":
		return true
	}
	return false
}

// errBlockEnd reports the end of the enclosing block.
var errBlockEnd = errors.New("the block ends")

// token returns the next word ('w'), quoted text ('q'), or one of ; { }.
func (s *scanner) token() (word string, kind byte, err error) {
	for s.offset < len(s.text) {
		switch c := s.text[s.offset]; {
		case c == '\n':
			s.line++
			s.offset++
		case c == ' ' || c == '\t' || c == '\r':
			s.offset++
		case c == '#':
			if end := bytes.IndexByte(s.text[s.offset:], '\n'); end >= 0 {
				s.offset += end
			} else {
				s.offset = len(s.text)
			}
		case c == ';' || c == '{' || c == '}':
			s.offset++
			return "", c, nil
		case c == '"':
			return s.readQuoted()
		case c < ' ' || c > '~':
			return "", 0, errOctets
		default:
			from := s.offset
			for s.offset < len(s.text) && s.text[s.offset] > ' ' && s.text[s.offset] <= '~' &&
				!strings.ContainsRune(`;{}"#`, rune(s.text[s.offset])) {
				s.offset++
			}
			return string(s.text[from:s.offset]), 'w', nil
		}
	}
	return "", 0, errEnd
}

// readQuoted returns a text in quotes. It has escapes with octal digits (\001), hexadecimal ones (\x01), and those of C.
func (s *scanner) readQuoted() (string, byte, error) {
	var out []byte
	for s.offset++; s.offset < len(s.text); s.offset++ {
		switch c := s.text[s.offset]; c {
		case '"':
			s.offset++
			return string(out), 'q', nil
		case '\n':
			return "", 0, errQuote
		case '\\':
			out = append(out, s.readEscape())
		default:
			out = append(out, c)
		}
	}
	s.offset = len(s.text)
	return "", 0, errEnd
}

// readEscape returns the octet of an escape. s.offset is the position of the backslash before the call, and of the last character of the
// escape after it. At the end of the text it returns the backslash.
func (s *scanner) readEscape() byte {
	s.offset++
	if s.offset >= len(s.text) {
		return '\\'
	}
	digits := func(base byte, most int) (n byte) {
		for ; most > 0 && s.offset+1 < len(s.text); most-- {
			c := s.text[s.offset+1] | 0x20
			switch {
			case c >= '0' && c <= '9' && c-'0' < base:
				n = n*base + c - '0'
			case base == 16 && c >= 'a' && c <= 'f':
				n = n*base + c - 'a' + 10
			default:
				return n
			}
			s.offset++
		}
		return n
	}
	switch c := s.text[s.offset]; {
	case c >= '0' && c <= '7':
		s.offset--
		return digits(8, 3)
	case c == 'x':
		return digits(16, 2)
	case c == 'n':
		return '\n'
	case c == 't':
		return '\t'
	case c == 'r':
		return '\r'
	case c == 'b':
		return '\b'
	default:
		return c
	}
}

// skipToEntry moves to the next line that begins an entry, after a line. It returns false if there is none.
func (s *scanner) skipToEntry(after int) bool {
	for s.line > after && s.offset > 0 { // back to the beginning of the entry: the next one may be in what was read as a part of it
		s.offset = bytes.LastIndexByte(s.text[:s.offset], '\n')
		if s.offset < 0 {
			s.offset = 0
			break
		}
		s.line--
	}
	for {
		end := bytes.IndexByte(s.text[s.offset:], '\n')
		if end < 0 {
			return false
		}
		s.offset += end + 1
		s.line++
		for _, word := range []string{"lease ", "ia-na ", "ia-ta ", "ia-pd ", "server-duid ", "failover "} {
			if bytes.HasPrefix(s.text[s.offset:], []byte(word)) {
				return true
			}
		}
	}
}
