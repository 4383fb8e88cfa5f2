package dhcppublish

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/dhcpdata"
)

// translate returns the options that a raw option stands for. Raw options are text of dhcpd.conf. These statements are translated:
// "option NAME VALUE", "NAME VALUE" for service options, "allow", "deny" and "ignore" of the kinds of clients in permissions, and
// "authoritative". Every other statement is an error that names the text and the object.
func (c *compiler) translate(raw option, at level) (all []option, err error) {
	name := strings.TrimSpace("raw option " + raw.name)
	statements, err := splitStatements(raw.raw)
	if err != nil {
		c.fail("%s of %s %s: %v", name, at.row.Type, c.label(at.row), err)
		return nil, nil
	}
	for _, words := range statements {
		one, err := c.translateStatement(words)
		if _, refused := problem.As(err); refused {
			return nil, err
		}
		if err != nil {
			c.fail("%s of %s %s: %q is not translated: %v", name, at.row.Type, c.label(at.row), joinWords(words), err)
			continue
		}
		one.id, one.rank = raw.id, raw.rank
		all = append(all, one)
	}
	return all, nil
}

// word is a word of a statement. quoted means that it was in quotation marks.
type word struct {
	text   string
	quoted bool
}

// joinWords returns a statement for messages.
func joinWords(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		if texts[i] = w.text; w.quoted {
			texts[i] = strconv.Quote(w.text)
		}
	}
	return strings.Join(texts, " ")
}

// splitStatements splits the text of dhcpd.conf into statements, which end with semicolons, and these into words. Commas are words.
func splitStatements(text string) (all [][]word, err error) {
	var now []word
	for i := 0; i < len(text); {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
			i++
		case '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text) - i
			}
			i += end
		case ';':
			if len(now) > 0 {
				all = append(all, now)
			}
			now = nil
			i++
		case ',':
			now = append(now, word{text: ","})
			i++
		case '{', '}':
			return nil, fmt.Errorf("blocks in braces are not translated")
		case '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(text) {
				return nil, fmt.Errorf("a text does not end")
			}
			unquoted, err := strconv.Unquote(text[i : end+1])
			if err != nil {
				return nil, fmt.Errorf("%s is not a text", text[i:end+1])
			}
			now = append(now, word{unquoted, true})
			i = end + 1
		default:
			end := i
			for end < len(text) && !strings.ContainsRune(" \t\r\n;,{}\"#", rune(text[end])) {
				end++
			}
			now = append(now, word{text: text[i:end]})
			i = end
		}
	}
	if len(now) > 0 {
		all = append(all, now)
	}
	return all, nil
}

// permissions are the kinds of clients that allow, deny and ignore name, with the service option that each sets.
var permissions = map[string]string{"unknown-clients": "boot-unknown-clients", "booting": "booting", "bootp": "bootp",
	"declines": "declines", "duplicates": "duplicates", "leasequery": "leasequery", "client-updates": "client-updates"}

// translateStatement returns the option of a statement.
func (c *compiler) translateStatement(words []word) (option, error) {
	first, rest := words[0].text, words[1:]
	switch first {
	case "option":
		if len(rest) < 2 {
			return option{}, fmt.Errorf("it has no value")
		}
		return c.translateOption(rest[0].text, rest[1:])
	case "allow", "deny", "ignore":
		if len(rest) != 1 || permissions[rest[0].text] == "" || first == "ignore" && rest[0].text == "declines" {
			return option{}, fmt.Errorf("the server has no such permission")
		}
		return c.translateService(permissions[rest[0].text], []word{{text: strconv.FormatBool(first == "allow")}})
	case "authoritative":
		if len(rest) == 0 {
			return c.translateService(first, []word{{text: "true"}})
		}
	case "not":
		if len(rest) == 1 && rest[0].text == "authoritative" {
			return c.translateService("authoritative", []word{{text: "false"}})
		}
	}
	return c.translateService(first, rest)
}

// translateService returns a service option.
func (c *compiler) translateService(name string, words []word) (option, error) {
	described, known := dhcpdata.FindService(name, c.v6)
	if !known || described.Value == dhcpdata.IDList || described.Value == dhcpdata.Texts {
		return option{}, fmt.Errorf("the statement %q is not supported", name)
	}
	if c.isOfObject(name) {
		return option{}, fmt.Errorf("set the service option %s: it is a part of the object, which the manager reads as well", name)
	}
	if len(words) != 1 {
		return option{}, fmt.Errorf("%s needs one value", name)
	}
	text := words[0].text
	kind := "DHCPv4ServiceOption"
	if c.v6 {
		kind = "DHCPv6ServiceOption"
	}
	o := option{kind: kind, name: name}
	switch described.Value {
	case dhcpdata.Boolean:
		on, err := boolOf(text)
		if err != nil {
			return o, err
		}
		o.value = strconv.AppendBool(nil, on)
	case dhcpdata.Number:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return o, fmt.Errorf("%q is not a number", text)
		}
		o.value = strconv.AppendUint(nil, n, 10)
	case dhcpdata.Address, dhcpdata.Text, dhcpdata.IDList, dhcpdata.Texts:
		var err error
		if o.value, err = json.Marshal(text); err != nil {
			return o, err
		}
	}
	// The explicit option of the same name has a definition, and must replace this one.
	id, err := c.definitionNamed(kind+"Definition", name)
	o.definition = id
	return o, err
}

// boolOf parses a boolean of dhcpd.conf.
func boolOf(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "on":
		return true, nil
	case "false", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is not true or false", text)
}

// translateOption returns a client option.
func (c *compiler) translateOption(name string, words []word) (option, error) {
	kind := "DHCPv4ClientOption"
	if c.v6 {
		kind, name = "DHCPv6ClientOption", strings.TrimPrefix(name, "dhcp6.")
	}
	id, err := c.definitionNamed(kind+"Definition", name)
	if err != nil {
		return option{}, err
	}
	if id == 0 {
		return option{}, fmt.Errorf("the option %q does not exist", name)
	}
	d, err := c.definition(id)
	if err != nil {
		return option{}, err
	}
	row, _, err := c.get(id)
	if err != nil {
		return option{}, err
	}
	format, err := serverconfig.ParseFormat(d.ValueFormat)
	if err != nil {
		return option{}, err
	}
	value, err := rawValue(d.ValueFormat, words)
	if err == nil {
		value, err = format.Check(value, func(string, []string) error { return fmt.Errorf("names are not translated") })
	}
	return option{kind: kind, name: row.Name, definition: id, value: value}, err
}

// rawValue returns the words of a value as JSON in a format.
func rawValue(format json.RawMessage, words []word) (json.RawMessage, error) {
	var entries [][]any
	var entry []any
	for _, w := range words {
		if w.text == "," && !w.quoted {
			entries, entry = append(entries, entry), nil
			continue
		}
		entry = append(entry, scalar(w))
	}
	entries = append(entries, entry)
	var one string
	if json.Unmarshal(format, &one) == nil {
		if len(words) != 1 || len(entries) != 1 || len(entries[0]) != 1 {
			return nil, fmt.Errorf("must be exactly one value, not %d words", len(words))
		}
		return json.Marshal(entries[0][0])
	}
	var list []json.RawMessage
	if err := json.Unmarshal(format, &list); err != nil || len(list) != 1 {
		return nil, fmt.Errorf("the format %s is not known", format)
	}
	if json.Unmarshal(list[0], &one) != nil { // rows
		return json.Marshal(entries)
	}
	var flat []any
	for _, e := range entries {
		if len(e) != 1 {
			return nil, fmt.Errorf("separate the values by commas: found %d words in one value", len(e))
		}
		flat = append(flat, e[0])
	}
	return json.Marshal(flat)
}

// scalar returns a word as a number, a boolean or a text.
func scalar(w word) any {
	if w.quoted {
		return w.text
	}
	if n, err := strconv.ParseInt(w.text, 10, 64); err == nil {
		return n
	}
	if on, err := boolOf(w.text); err == nil {
		return on
	}
	if a, err := netip.ParseAddr(w.text); err == nil {
		return a.String()
	}
	return w.text
}

// definitionNamed returns the id of a built-in definition by its name, or by one of its other names; 0 if there is none.
func (c *compiler) definitionNamed(kind, name string) (int64, error) {
	if c.named == nil {
		c.named = map[string]int64{}
		if err := c.tx.List(store.Query{From: store.Resources, Where: store.InCollection("deploymentOptionDefinitions")},
			func(r *store.Resource) error {
				o, err := c.api.Object(r)
				if err != nil {
					return err
				}
				for _, other := range append(serverconfig.DefinitionOf(o).OtherNames, r.Name) {
					c.named[r.Type+"/"+other] = r.ID
				}
				return nil
			}); err != nil {
			return 0, err
		}
	}
	return c.named[kind+"/"+name], nil
}
