package convert

import (
	"fmt"
	"strconv"
	"strings"
)

// statement is a statement of an ISC configuration file: words, and optionally a block of statements.
type statement struct {
	line  int
	words []string
	block []statement
	// hasBlock reports that the statement has a block, which may be empty.
	hasBlock bool
	// quoted reports for each word whether it was in quotation marks. source is the text of the statement without its block.
	quoted []bool
	source string
}

// word returns the word at an index, or an empty text.
func (s statement) word(i int) string {
	if i < len(s.words) {
		return s.words[i]
	}
	return ""
}

// startsWith reports whether a statement begins with these words, in any case.
func (s statement) startsWith(words ...string) bool {
	for i, w := range words {
		if !strings.EqualFold(s.word(i), w) {
			return false
		}
	}
	return true
}

// maxNested is the maximum nesting depth of blocks.
const maxNested = 50

// parser reads statements: words, quoted texts, braces, semicolons, and comments in the styles #, // and /* */.
type parser struct {
	text   string
	offset int
	line   int
	// quotedAt is the position of the last text in quotation marks.
	quotedAt int
}

// statements parses a configuration file.
func statements(text string) ([]statement, error) {
	p := &parser{text: text, line: 1}
	all, closed, err := p.block(0)
	if err == nil && closed {
		err = fmt.Errorf("line %d: } without a matching {", p.line)
	}
	return all, err
}

// block reads statements until the closing brace or the end of the text.
func (p *parser) block(depth int) (all []statement, closed bool, err error) {
	if depth > maxNested {
		return nil, false, fmt.Errorf("line %d: blocks are nested more than %d deep", p.line, maxNested)
	}
	var now statement
	start := 0
	open := 0 // open braces inside the statement, not of a block
	for {
		word, quoted, err := p.next()
		if err != nil {
			return nil, false, err
		}
		if now.words == nil && !now.hasBlock {
			now.line, start = p.line, p.offset-len(word)
			if quoted {
				start = p.quotedAt
			}
		}
		switch {
		case word == "" && !quoted: // the end of the text
			if len(now.words) > 0 {
				return nil, false, fmt.Errorf("line %d: %s: the file ends before the statement does", now.line, now.words[0])
			}
			if depth > 0 {
				return nil, false, fmt.Errorf("line %d: the file ends, but %d blocks are not closed", p.line, depth)
			}
			return all, false, nil
		case word == ";" && !quoted:
			if now.source == "" {
				now.source = p.text[min(start, p.offset-1) : p.offset-1]
			}
			if len(now.words) > 0 || now.hasBlock {
				all = append(all, now)
			}
			now = statement{}
		case word == "{" && !quoted && now.startsWith("option"): // an option definition: option NAME code 100 = { boolean, text };
			now.words, now.quoted, open = append(now.words, word), append(now.quoted, false), open+1
		case word == "}" && !quoted && open > 0:
			now.words, now.quoted, open = append(now.words, word), append(now.quoted, false), open-1
		case word == "{" && !quoted:
			now.source = p.text[min(start, p.offset-1) : p.offset-1]
			if now.block, closed, err = p.block(depth + 1); err != nil {
				return nil, false, err
			}
			now.hasBlock = true
			if !closed {
				return nil, false, fmt.Errorf("line %d: the block that begins here does not end", now.line)
			}
			if p.peek() != ';' { // in dhcpd.conf no semicolon follows a block
				all = append(all, now)
				now = statement{}
			}
		case word == "}" && !quoted:
			if len(now.words) > 0 {
				return nil, false, fmt.Errorf("line %d: %s: a semicolon is missing", now.line, now.words[0])
			}
			return all, true, nil
		default:
			now.words, now.quoted = append(now.words, word), append(now.quoted, quoted)
		}
	}
}

// skip advances past blanks, commas and comments.
func (p *parser) skip() error {
	for p.offset < len(p.text) {
		rest := p.text[p.offset:]
		switch {
		case rest[0] == '\n':
			p.line++
			p.offset++
		case strings.ContainsRune(" \t\r,", rune(rest[0])):
			p.offset++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.offset += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return fmt.Errorf("line %d: a comment does not end", p.line)
			}
			p.line += strings.Count(rest[:end], "\n")
			p.offset += end + 2
		default:
			return nil
		}
	}
	return nil
}

// peek returns the next character after blanks and comments, or 0 at the end.
func (p *parser) peek() byte {
	if p.skip() != nil || p.offset >= len(p.text) {
		return 0
	}
	return p.text[p.offset]
}

// next returns the next word. An empty word that is not quoted marks the end of the text.
func (p *parser) next() (word string, quoted bool, err error) {
	if err := p.skip(); err != nil || p.offset >= len(p.text) {
		return "", false, err
	}
	c := p.text[p.offset]
	if strings.IndexByte(";{}", c) >= 0 {
		p.offset++
		return string(c), false, nil
	}
	if c == '"' {
		var b strings.Builder
		p.quotedAt = p.offset
		for p.offset++; p.offset < len(p.text); p.offset++ {
			switch c := p.text[p.offset]; c {
			case '"':
				p.offset++
				return b.String(), true, nil
			case '\\':
				if octet, n := octal(p.text[p.offset+1:]); n > 0 {
					b.WriteByte(octet)
					p.offset += n
				} else if p.offset+1 < len(p.text) {
					p.offset++
					b.WriteByte(p.text[p.offset])
				}
			case '\n':
				p.line++
				b.WriteByte(c)
			default:
				b.WriteByte(c)
			}
		}
		return "", false, fmt.Errorf("line %d: a text in quotes does not end", p.line)
	}
	start := p.offset
	for p.offset < len(p.text) && strings.IndexByte(" \t\r\n,;{}\"", p.text[p.offset]) < 0 {
		p.offset++
	}
	return p.text[start:p.offset], false, nil
}

// octal returns the octet of an escape sequence of three octal digits, such as 001, and its length. The length is 0 for another text.
func octal(text string) (octet byte, n int) {
	if len(text) < 3 {
		return 0, 0
	}
	value, err := strconv.ParseUint(text[:3], 8, 8)
	if err != nil {
		return 0, 0
	}
	return byte(value), 3
}

// oneLine returns the source of an expression on one line, without comments.
func oneLine(source string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case quoted && c == '\\' && i+1 < len(source):
			b.WriteByte(c)
			i++
			c = source[i]
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || strings.HasPrefix(source[i:], "//")):
			for i < len(source) && source[i] != '\n' {
				i++
			}
			c = ' '
		case !quoted && strings.HasPrefix(source[i:], "/*"):
			if end := strings.Index(source[i:], "*/"); end > 0 {
				i += end + 1
			}
			c = ' '
		case !quoted && (c == '\n' || c == '\t' || c == '\r'):
			c = ' '
		}
		b.WriteByte(c)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
