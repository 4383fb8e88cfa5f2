package convert

import (
	"fmt"
	"strings"
)

// statement is a statement of an ISC configuration file: words, and optionally a block of statements.
type statement struct {
	line  int
	words []string
	block []statement
	// hasBlock reports that the statement has a block, which may be empty.
	hasBlock bool
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
	text string
	at   int
	line int
}

// statements parses a configuration file.
func statements(text string) ([]statement, error) {
	p := &parser{text: text, line: 1}
	all, closed, err := p.block(0)
	if err == nil && closed {
		err = fmt.Errorf("line %d: } closes nothing", p.line)
	}
	return all, err
}

// block reads statements until the closing brace or the end of the text.
func (p *parser) block(depth int) (all []statement, closed bool, err error) {
	if depth > maxNested {
		return nil, false, fmt.Errorf("line %d: blocks are nested more than %d deep", p.line, maxNested)
	}
	var now statement
	open := 0 // open braces inside the statement, not of a block
	for {
		word, quoted, err := p.next()
		if err != nil {
			return nil, false, err
		}
		if now.words == nil && !now.hasBlock {
			now.line = p.line
		}
		switch {
		case word == "" && !quoted: // the end of the text
			if len(now.words) > 0 {
				return nil, false, fmt.Errorf("line %d: %s: the file ends before the statement does", now.line, now.words[0])
			}
			if depth > 0 {
				return nil, false, fmt.Errorf("line %d: the file ends, and %d blocks are open", p.line, depth)
			}
			return all, false, nil
		case word == ";" && !quoted:
			if len(now.words) > 0 || now.hasBlock {
				all = append(all, now)
			}
			now = statement{}
		case word == "{" && !quoted && now.startsWith("option"): // an option definition: option NAME code 100 = { boolean, text };
			now.words, open = append(now.words, word), open+1
		case word == "}" && !quoted && open > 0:
			now.words, open = append(now.words, word), open-1
		case word == "{" && !quoted:
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
				return nil, false, fmt.Errorf("line %d: %s: no semicolon behind it", now.line, now.words[0])
			}
			return all, true, nil
		default:
			now.words = append(now.words, word)
		}
	}
}

// skip advances past blanks, commas and comments.
func (p *parser) skip() error {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case rest[0] == '\n':
			p.line++
			p.at++
		case strings.ContainsRune(" \t\r,", rune(rest[0])):
			p.at++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return fmt.Errorf("line %d: a comment does not end", p.line)
			}
			p.line += strings.Count(rest[:end], "\n")
			p.at += end + 2
		default:
			return nil
		}
	}
	return nil
}

// peek returns the next character after blanks and comments, or 0 at the end.
func (p *parser) peek() byte {
	if p.skip() != nil || p.at >= len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// next returns the next word. An empty word that is not quoted marks the end of the text.
func (p *parser) next() (word string, quoted bool, err error) {
	if err := p.skip(); err != nil || p.at >= len(p.text) {
		return "", false, err
	}
	c := p.text[p.at]
	if strings.IndexByte(";{}", c) >= 0 {
		p.at++
		return string(c), false, nil
	}
	if c == '"' {
		var b strings.Builder
		for p.at++; p.at < len(p.text); p.at++ {
			switch c := p.text[p.at]; c {
			case '"':
				p.at++
				return b.String(), true, nil
			case '\\':
				if p.at+1 < len(p.text) {
					p.at++
					b.WriteByte(p.text[p.at])
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
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,;{}\"", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[start:p.at], false, nil
}
