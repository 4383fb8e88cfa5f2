package naming

import (
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// adapted converts data to the form that the DNS library reads, by record type. BIND also reads other forms of these types.
var adapted = map[string]func(data string) string{
	"X25":  func(data string) string { return strings.Trim(data, `"`) },
	"GPOS": plainTexts,
	"CERT": certificateNumbers,
	"SVCB": serviceAsText, "HTTPS": serviceAsText,
	"NID": groupsPadded, "L64": groupsPadded,
	"EUI48": octetsPadded, "EUI64": octetsPadded,
	"KEY": keyNumbers, "DNSKEY": keyNumbers, "CDNSKEY": keyNumbers, "RKEY": keyNumbers,
	"DS": digestNumbers, "CDS": digestNumbers, "DLV": digestNumbers, "TA": digestNumbers,
	"NSEC": typesInOrder(1), "NSEC3": typesInOrder(5), "CSYNC": typesInOrder(2),
	"RRSIG": signatureTimes, "SIG": signatureTimes,
	"NAPTR": ruleQuoted,
	"LOC":   locationWhole,
	"TXT":   textsAsText, "SPF": textsAsText, "AVC": textsAsText, "NINFO": textsAsText,
}

// dataFields splits data into its fields, with quotes and escapes unchanged.
func dataFields(data string) (fields []string) {
	for data = strings.TrimLeft(data, " \t\n"); data != ""; data = strings.TrimLeft(data, " \t\n") {
		quoted, at := false, 0
		for ; at < len(data) && (quoted || !strings.ContainsRune(" \t\n", rune(data[at]))); at++ {
			switch data[at] {
			case '\\':
				at++
			case '"':
				quoted = !quoted
			}
		}
		at = min(at, len(data))
		fields, data = append(fields, data[:at]), data[at:]
	}
	return fields
}

// groupsPadded writes all groups of a locator or identifier with four digits (RFC 6742 section 2.1.2 allows omitting leading zeros).
func groupsPadded(data string) string {
	preference, locator, _ := strings.Cut(strings.TrimSpace(data), " ")
	return preference + " " + padGroups(locator, ":", 4)
}

// octetsPadded writes all octets of an EUI-48 or EUI-64 address with two digits.
func octetsPadded(data string) string { return padGroups(data, "-", 2) }

// padGroups adds leading zeros to groups that have fewer digits.
func padGroups(text, separator string, digits int) string {
	groups := strings.Split(strings.TrimSpace(text), separator)
	for i, group := range groups {
		groups[i] = strings.Repeat("0", max(0, digits-len(group))) + group
	}
	return strings.Join(groups, separator)
}

// keyNumbers writes the flags of a key as a decimal number, and its algorithm as its number (RFC 4034 section 2.2).
func keyNumbers(data string) string {
	fields := dataFields(data)
	if len(fields) > 2 {
		digits, base := fields[0], 10
		if rest, is := strings.CutPrefix(strings.ToLower(digits), "0x"); is {
			digits, base = rest, 16
		}
		if flags, err := strconv.ParseUint(digits, base, 16); err == nil {
			fields[0] = strconv.FormatUint(flags, 10)
		} else if flags, ok := keyFlagsOf(fields[0]); ok {
			fields[0] = strconv.FormatUint(uint64(flags), 10)
		}
		if protocol, known := keyProtocols[strings.ToUpper(fields[1])]; known {
			fields[1] = protocol
		}
		fields[2] = algorithmNumber(fields[2])
	}
	return strings.Join(fields, " ")
}

// keyFlags are the mnemonics of key flags, and keyProtocols those of protocols, as BIND reads them (RFC 2535 section 7.1).
var (
	keyFlags = map[string]uint16{"NOCONF": 0x4000, "NOAUTH": 0x8000, "NOKEY": 0xc000, "FLAG2": 0x2000, "EXTEND": 0x1000, "FLAG4": 0x0800,
		"FLAG5": 0x0400, "USER": 0, "ZONE": 0x0100, "HOST": 0x0200, "NTYP3": 0x0300, "FLAG8": 0x0080, "FLAG9": 0x0040, "FLAG10": 0x0020,
		"FLAG11": 0x0010, "KSK": 1}
	keyProtocols = map[string]string{"NONE": "0", "TLS": "1", "EMAIL": "2", "DNSSEC": "3", "IPSEC": "4", "ALL": "255"}
)

// keyFlagsOf parses flags that are written as mnemonics separated by |.
func keyFlagsOf(text string) (flags uint16, ok bool) {
	for _, one := range strings.Split(strings.ToUpper(text), "|") {
		flag, known := keyFlags[one]
		if n, err := strconv.ParseUint(strings.TrimPrefix(one, "SIG"), 10, 4); !known && strings.HasPrefix(one, "SIG") && err == nil {
			flag, known = uint16(n), true
		}
		if !known {
			return 0, false
		}
		flags |= flag
	}
	return flags, true
}

// certificateTypes are the mnemonics of certificate types (RFC 4398 section 2.1).
var certificateTypes = map[string]string{"PKIX": "1", "SPKI": "2", "PGP": "3", "IPKIX": "4", "ISPKI": "5", "IPGP": "6", "ACPKIX": "7",
	"IACPKIX": "8", "URI": "253", "OID": "254"}

// certificateNumbers writes the type and the algorithm of a certificate as numbers.
func certificateNumbers(data string) string {
	fields := dataFields(data)
	if len(fields) > 2 {
		if number := certificateTypes[strings.ToUpper(fields[0])]; number != "" {
			fields[0] = number
		}
		fields[2] = algorithmNumber(fields[2])
	}
	return strings.Join(fields, " ")
}

// plainTexts writes texts without quotes and escapes. In GPOS records they are numbers (RFC 1712 section 3).
func plainTexts(data string) string {
	fields := dataFields(data)
	for i, field := range fields {
		octets, err := rawOctets(field)
		if err != nil || len(octets) == 0 || strings.ContainsFunc(string(octets), func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			return data
		}
		fields[i] = string(octets)
	}
	return strings.Join(fields, " ")
}

// serviceAsText removes the quotes of a target, and writes parameters with numeric keys in the form of the named key, if the key has a name
// (RFC 9460 section 2.1).
func serviceAsText(data string) string {
	fields := dataFields(data)
	for i, field := range fields {
		switch {
		case i == 1 && len(field) > 2 && field[0] == '"' && !strings.Contains(field, `\`):
			fields[i] = strings.Trim(field, `"`)
		case i > 1 && strings.HasPrefix(strings.ToLower(field), "key"):
			fields[i] = namedKey(field)
		}
	}
	return strings.Join(fields, " ")
}

// namedKey converts a parameter with a numeric key to the key's name. It returns other parameters unchanged.
func namedKey(field string) string {
	digits, value, _ := strings.Cut(field[len("key"):], "=")
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return field
	}
	key := dns.SVCBKey(number) //nolint:gosec // of 16 bits
	raw, err := rawOctets(value)
	if err != nil || strings.HasPrefix(key.String(), "key") {
		return field
	}
	record := append([]byte{0, 0, 64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, byte(number>>8), byte(number), byte(len(raw)>>8), byte(len(raw)))
	record = append(record, raw...)
	binary.BigEndian.PutUint16(record[9:], uint16(len(record)-11)) //nolint:gosec // a line is shorter
	rr, _, err := dns.UnpackRR(record, 0)
	service, is := rr.(*dns.SVCB)
	if err != nil || !is || len(service.Value) != 1 {
		return field
	}
	return key.String() + `="` + service.Value[0].String() + `"`
}

// digestNumbers writes the algorithm and the digest type of a delegation signer as numbers (RFC 4034 section 5.3).
func digestNumbers(data string) string {
	fields := dataFields(data)
	if len(fields) > 2 {
		fields[1] = algorithmNumber(fields[1])
		if hash, known := dns.StringToHash[strings.ReplaceAll(strings.ToUpper(fields[2]), "-", "")]; known {
			fields[2] = strconv.Itoa(int(hash))
		} else if strings.EqualFold(fields[2], "GOST") {
			fields[2] = "3"
		}
	}
	return strings.Join(fields, " ")
}

// oldAlgorithms are mnemonics of algorithms and digests that the library does not know (RFC 5155 section 2, RFC 5933 section 2).
var oldAlgorithms = map[string]string{"NSEC3DSA": "6", "NSEC3RSASHA1": "7", "ECCGOST": "12"}

// algorithmNumber returns the number of an algorithm's mnemonic, and other texts unchanged.
func algorithmNumber(text string) string {
	if number := oldAlgorithms[strings.ToUpper(text)]; number != "" {
		return number
	}
	if number, known := dns.StringToAlgorithm[strings.ToUpper(text)]; known {
		return strconv.Itoa(int(number))
	}
	return text
}

// typesInOrder sorts the types of a bit map that starts at a field by their numbers. Types may also be written as numbers, as in NXT
// records (RFC 2535 section 5.2).
func typesInOrder(from int) func(data string) string {
	return func(data string) string {
		fields := dataFields(data)
		if len(fields) <= from {
			return data
		}
		number := func(mnemonic string) int { return int(typeNumber(strings.ToUpper(mnemonic))) }
		types := fields[from:]
		for i, one := range types {
			if _, err := strconv.ParseUint(one, 10, 16); err == nil {
				types[i] = "TYPE" + one
			}
		}
		slices.SortStableFunc(types, func(a, b string) int { return number(a) - number(b) })
		types = slices.CompactFunc(types, func(a, b string) bool { return number(a) == number(b) })
		return strings.Join(append(fields[:from:from], types...), " ")
	}
}

// signatureTimes writes the times of a signature as numbers. They count seconds modulo 2^32 (RFC 4034 section 3.1.5), and the library does
// not read times after 2106.
func signatureTimes(data string) string {
	fields := dataFields(data)
	for i := 4; i < min(6, len(fields)); i++ {
		if at, err := time.Parse("20060102150405", fields[i]); err == nil {
			fields[i] = strconv.FormatUint(uint64(uint32(at.Unix())), 10) //nolint:gosec // modulo 2^32
		}
	}
	return strings.Join(fields, " ")
}

// ruleQuoted quotes the flags, the service and the expression of a rule (RFC 3403 section 4.1).
func ruleQuoted(data string) string {
	fields := dataFields(data)
	for i := 2; i < min(5, len(fields)); i++ {
		if !strings.HasPrefix(fields[i], `"`) {
			fields[i] = `"` + fields[i] + `"`
		}
	}
	return strings.Join(fields, " ")
}

// locationWhole adds the omitted minutes and seconds of a location (RFC 1876 section 3).
func locationWhole(data string) string {
	var whole []string
	degrees := 0
	for _, field := range dataFields(data) {
		if slices.Contains([]string{"N", "S", "E", "W"}, strings.ToUpper(field)) {
			for ; degrees > 0 && degrees < 3; degrees++ {
				whole = append(whole, "0")
			}
			degrees = -1
		}
		whole = append(whole, field)
		degrees++
	}
	return strings.Join(whole, " ")
}

// textsAsText escapes "#" in a text that starts with "\#". Otherwise the library would parse it as generic data (RFC 3597).
func textsAsText(data string) string {
	if rest, is := strings.CutPrefix(strings.TrimSpace(data), `\#`); is {
		return `\035` + rest
	}
	return data
}

// portOf returns the port of a service name from the system's services database.
func portOf(protocol, service string) (uint16, bool) {
	port, err := net.LookupPort(protocol, service)
	return uint16(port), err == nil && port > 0 //nolint:gosec // ports are below 65536
}
