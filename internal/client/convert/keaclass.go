package convert

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// classList adds the classes of a server.
func (k *kea) classList(all []keaClass) {
	for i, one := range all {
		if k.rowName = fmt.Sprintf("class %s", one.Name); one.Name == "" {
			k.rowName = fmt.Sprintf("class number %d", i+1)
		}
		if err := k.class(one); err != nil {
			k.leave("the class: %v", err)
		}
	}
}

// class adds a class whose condition Portolan has.
func (k *kea) class(one keaClass) error {
	switch {
	case k.v6:
		return errors.New("DHCPv6 has no classes")
	case one.Template != "":
		return errors.New("template-test: classes are not created at run time")
	case one.OnlyIf != nil && *one.OnlyIf, one.OnlyIn != nil && *one.OnlyIn:
		return errors.New("it is evaluated for single networks: a class applies to all networks")
	case one.Test == "":
		return errors.New("it has no test, so reservations or programs select its clients")
	}
	p := &keaParser{kea: k}
	if err := p.split(one.Test); err != nil {
		return err
	}
	condition, err := p.disjunction()
	if err == nil && p.position < len(p.tokens) {
		err = fmt.Errorf("%s is not expected in the test", p.peek())
	}
	if err != nil {
		return err
	}
	inner := k.inner
	k.inner = map[int]string{}
	for code, space := range inner {
		k.inner[code] = space
	}
	k.define(slices.DeleteFunc(slices.Clone(one.Definitions), func(d keaDefinition) bool { return d.Code != vendorCode }))
	lifetimes := k.lifetimes
	k.lifetimes = [3]*int{} // a class without a minimum or maximum does not inherit those of the server
	own := k.settings(&one.keaLevel)
	k.inner, k.lifetimes = inner, lifetimes
	if one.Name == "DROP" {
		own.put(setting{k.rowName, true, "booting", false})
	}
	k.classes[one.Name] = condition
	k.addClass(className(one.Name), "if "+condition)
	k.emit("clientClasses/"+className(one.Name), own, false)
	return nil
}

// overridden notes the options of classes that subnets, pools and shared networks also have: in Kea those of the subnet win.
func (k *kea) overridden() {
	names := map[string]string{}
	for _, r := range k.Resources {
		if in, _ := r["in"].(string); strings.HasPrefix(in, "clientClasses/") {
			one := setting{service: strings.HasSuffix(fmt.Sprint(r["type"]), "ServiceOption"), name: fmt.Sprint(r["name"])}
			if k.narrow[one.key()] {
				names[fmt.Sprint(in[len("clientClasses/"):], " ", one.name)] = rowOf(r)
			}
		}
	}
	for _, key := range sortedKeys(names) {
		class, option, _ := strings.Cut(key, " ")
		k.rowName = names[key]
		k.leave("the precedence of the option %s of the class %s, which subnets or pools also have: here the class wins", option, class)
	}
	k.rowName = ""
}

// keaParser translates a test of Kea to a condition of dhcpd, by recursive descent.
type keaParser struct {
	*kea
	tokens   []string // a text begins with an apostrophe
	position int
}

// split splits a test into tokens.
func (p *keaParser) split(text string) error {
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
			continue
		case c == '\'':
			for end < len(text) && text[end] != '\'' {
				end++
			}
			if end == len(text) {
				return errors.New("a text in the test does not end")
			}
			p.tokens = append(p.tokens, text[i:end])
			i = end + 1
			continue
		case strings.HasPrefix(text[i:], "=="):
			end = i + 2
		case isExpressionWord(c):
			for end < len(text) && isExpressionWord(text[end]) {
				end++
			}
		}
		p.tokens = append(p.tokens, text[i:end])
		i = end
	}
	return nil
}

func (p *keaParser) peek() string {
	if p.position < len(p.tokens) {
		return p.tokens[p.position]
	}
	return ""
}

func (p *keaParser) next() string {
	token := p.peek()
	p.position++
	return token
}

// want reads a token that must follow.
func (p *keaParser) want(token string) error {
	if got := p.next(); got != token {
		return fmt.Errorf("%q is expected instead of %q in the test", token, got)
	}
	return nil
}

// disjunction translates conditions that are joined by or.
func (p *keaParser) disjunction() (string, error) {
	return p.joined("or", func() (string, error) { return p.joined("and", p.condition) })
}

func (p *keaParser) joined(word string, part func() (string, error)) (string, error) {
	text, err := part()
	for err == nil && strings.EqualFold(p.peek(), word) {
		p.position++
		var more string
		more, err = part()
		text += " " + word + " " + more
	}
	return text, err
}

// condition translates one condition.
func (p *keaParser) condition() (string, error) {
	switch p.peek() {
	case "(":
		p.position++
		text, err := p.disjunction()
		if err == nil {
			err = p.want(")")
		}
		return "(" + text + ")", err
	case "not":
		p.position++
		text, err := p.condition()
		return "not (" + text + ")", err
	case "member":
		p.position++
		return p.member()
	}
	left, exists, err := p.operand()
	if err != nil || exists {
		return left, err
	}
	if err := p.want("=="); err != nil {
		return "", err
	}
	right, _, err := p.operand()
	if err == nil && left == "option dhcp-message-type" {
		right, err = octetOf(right)
	} else if err == nil && (strings.HasPrefix(left, "#") || strings.HasPrefix(right, "#")) {
		err = errors.New("comparisons with numbers are not imported")
	}
	return left + " = " + right, err
}

// octetOf returns a number as one octet in hexadecimal.
func octetOf(text string) (string, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 10, 8)
	return fmt.Sprintf("0x%02x", n), err
}

// member translates the membership in another class.
func (p *keaParser) member() (string, error) {
	if err := p.want("("); err != nil {
		return "", err
	}
	name := strings.TrimPrefix(p.next(), "'")
	if err := p.want(")"); err != nil {
		return "", err
	}
	vendor, isVendor := strings.CutPrefix(name, "VENDOR_CLASS_")
	condition, known := p.classes[name]
	switch {
	case name == "KNOWN":
		return "known", nil
	case name == "UNKNOWN":
		return "not (known)", nil
	case p.halves[name]:
		return alwaysTrue, nil
	case isVendor:
		return "option vendor-class-identifier = " + strconv.Quote(vendor), nil
	case !known:
		return "", fmt.Errorf("the class %s is not imported", name)
	}
	return "(" + condition + ")", nil
}

// operand translates a value. exists reports that it is a whole condition.
func (p *keaParser) operand() (text string, exists bool, err error) {
	token := p.next()
	if constant, ok := strings.CutPrefix(token, "'"); ok {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(constant) + `"`, false, nil
	}
	if strings.HasPrefix(token, "0x") {
		digits := token[2:]
		if len(digits)%2 == 1 {
			digits = "0" + digits
		}
		return "0x" + digits, false, nil
	}
	if a, err := netip.ParseAddr(token); err == nil && a.Is4() {
		return "0x" + hex.EncodeToString(a.AsSlice()), false, nil
	}
	if strings.Trim(token, "0123456789") == "" && token != "" {
		return "#" + token, false, nil
	}
	switch token {
	case "option", "relay4":
		return p.option(token)
	case "substring":
		text, err := p.substring()
		return text, false, err
	case "concat", "lcase", "ucase":
		text, err := p.call(token)
		return text, false, err
	}
	if text, known := packetFields[token]; known {
		return text, false, nil
	}
	return "", false, fmt.Errorf("the test contains %s, which is not supported", token)
}

// packetFields are the fields of a message as expressions.
var packetFields = map[string]string{"pkt4.mac": "substring(hardware, 1, 6)", "pkt4.msgtype": "option dhcp-message-type",
	"pkt4.giaddr": "packet(24, 4)", "pkt4.ciaddr": "packet(12, 4)", "pkt4.siaddr": "packet(20, 4)"}

// relayOptions are the sub-options of option 82.
var relayOptions = map[string]string{"1": "agent.circuit-id", "2": "agent.remote-id", "5": "agent.link-selection",
	"6": "agent.subscriber-id", "12": "agent.relay-id"}

// option translates option[N].hex, option[N].exists, option[82].option[N].hex and relay4[N].hex.
func (p *keaParser) option(kind string) (text string, exists bool, err error) {
	number, err := p.index()
	if err != nil {
		return "", false, err
	}
	name := relayOptions[number]
	if kind == "option" {
		if name, err = p.optionName(number); err != nil {
			return "", false, err
		}
	} else if name == "" {
		return "", false, fmt.Errorf("the relay option %s is not supported in conditions", number)
	}
	switch suffix := p.next(); suffix {
	case ".hex", ".text":
		return "option " + name, false, nil
	case ".exists":
		if kind == "relay4" || strings.HasPrefix(name, "agent.") {
			return `suffix(option ` + name + `, 1) != ""`, true, nil
		}
		return "exists " + name, true, nil
	case ".option":
		if number == "82" || name == "relay-agent-information" {
			return p.option("relay4")
		}
		return "", false, errors.New("tests about options inside of others are not imported")
	default:
		return "", false, fmt.Errorf("the test contains %s, which is not supported", suffix)
	}
}

// index reads a number or a name in brackets.
func (p *keaParser) index() (string, error) {
	if err := p.want("["); err != nil {
		return "", err
	}
	number := p.next()
	return number, p.want("]")
}

// optionName returns the name of an option in expressions, from its code or its name in Kea.
func (p *keaParser) optionName(number string) (string, error) {
	code, err := strconv.Atoi(number)
	if err != nil {
		if definition, known := p.table.byName[number]; known {
			return definition.Name, nil
		}
		for _, name := range sentNames {
			if name == number {
				return name, nil
			}
		}
		return "", fmt.Errorf("the option %s is not known", number)
	}
	if name, there := sentNames[code]; there {
		return name, nil
	}
	if definition, there := p.table.byCode[code]; there {
		return definition.Name, nil
	}
	return "", fmt.Errorf("the option %d is not defined", code)
}

// substring translates substring(data, start, length).
func (p *keaParser) substring() (string, error) {
	if err := p.want("("); err != nil {
		return "", err
	}
	data, _, err := p.operand()
	if err != nil {
		return "", err
	}
	var numbers []string
	for range 2 {
		if err := p.want(","); err != nil {
			return "", err
		}
		token := p.next()
		if token == "all" {
			token = "65535"
		}
		if strings.Trim(token, "0123456789") != "" {
			return "", errors.New("a substring from the end is not imported")
		}
		numbers = append(numbers, token)
	}
	return fmt.Sprintf("substring(%s, %s, %s)", data, numbers[0], numbers[1]), p.want(")")
}

// call translates a function whose arguments are data.
func (p *keaParser) call(name string) (string, error) {
	if err := p.want("("); err != nil {
		return "", err
	}
	var all []string
	for {
		one, _, err := p.operand()
		if err != nil {
			return "", err
		}
		all = append(all, one)
		if p.peek() != "," {
			break
		}
		p.position++
	}
	return name + "(" + strings.Join(all, ", ") + ")", p.want(")")
}
