package convert

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// kea converts the configuration of one server of Kea.
type kea struct {
	*Document
	v6    bool
	table *optionTable
	// spaces are the definitions of options inside of others, by space and name, and inner the spaces that options contain, by code.
	spaces map[string]map[string]subOption
	inner  map[int]string
	// classes are the classes with their conditions, by name. required are those that a subnet, pool or network requires.
	classes    map[string]string
	required   map[string]bool
	knowsHosts bool
	macs       []string
	// lifetimes are the lease times of the server.
	lifetimes [3]*int
	// narrow are the options of subnets, pools and shared networks, which replace those of classes in Kea.
	narrow map[string]bool
	// halves are the classes of the clients of one server of a pair.
	halves map[string]bool
}

// settings returns the settings of a level as options of Portolan. where names the level.
func (k *kea) settings(l *keaLevel) *settings {
	s := &settings{}
	put := func(name string, value any) { s.put(setting{k.rowName, true, name, value}) }
	flag := func(name string, value *bool, invert bool) {
		if value != nil {
			put(name, *value != invert)
		}
	}
	k.leaseTimes(l, put)
	for code, seconds := range map[string]*int{"dhcp-renewal-time": l.Renew, "dhcp-rebinding-time": l.Rebind} {
		switch {
		case seconds != nil && k.v6:
			k.leave("the timers renew-timer and rebind-timer: T1 and T2 are 0.5 and 0.8 of the preferred lifetime")
		case seconds != nil:
			s.put(setting{k.rowName, false, code, *seconds})
		}
	}
	slices.SortStableFunc(s.all, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	for name, text := range map[string]string{nextServer: l.NextServer, serverName: l.ServerName, fileName: l.FileName} {
		if text == "" || name == nextServer && text == "0.0.0.0" {
			continue
		}
		put(name, text)
	}
	if !k.v6 {
		flag("ignore-client-uids", l.MatchClientID, true)
		flag("authoritative", l.Authoritative, false)
	}
	flag("rapid-commit", l.RapidCommit, false)
	var share float64
	if json.Unmarshal(l.CacheThreshold, &share) == nil && share > 0 {
		put("dhcp-cache-threshold", int(math.Round(share*100)))
	}
	k.names(l, put)
	k.options(l.Options, s)
	k.guards(l, put)
	return s
}

// leaseTimes adds the lease times of a level. Without a minimum and a maximum, clients get the lease time whatever they ask for.
func (k *kea) leaseTimes(l *keaLevel, put func(string, any)) {
	own := [3]*int{l.MinValid, l.Valid, l.MaxValid}
	if own != [3]*int{} {
		all := own
		for i := range all {
			all[i] = cmp.Or(own[i], k.lifetimes[i])
		}
		standard := cmp.Or(all[1], all[0], all[2])
		put(minimumLease, *cmp.Or(all[0], standard))
		put(defaultLease, *standard)
		put(maximumLease, *cmp.Or(all[2], standard))
	}
	if l.Preferred != nil {
		put("preferred-lifetime", *l.Preferred)
	}
	if l.MinPreferred != nil || l.MaxPreferred != nil {
		k.leave("the settings min-preferred-lifetime and max-preferred-lifetime: the preferred lifetime follows the valid one")
	}
}

// names adds the settings of names of clients in DNS.
func (k *kea) names(l *keaLevel, put func(string, any)) {
	if l.SendUpdates != nil {
		put("ddns-updates", *l.SendUpdates)
	}
	if l.Suffix != "" {
		put("ddns-domainname", strings.TrimSuffix(l.Suffix, "."))
	}
	if l.OverrideUpdate != nil {
		put("client-updates", !*l.OverrideUpdate)
	}
	if l.UpdateOnRenew != nil {
		put("update-optimization", !*l.UpdateOnRenew)
	}
	if l.ResolveConflicts != nil {
		put("update-conflict-detection", *l.ResolveConflicts)
	}
	switch l.ConflictMode {
	case "":
	case "check-with-dhcid", "no-check-with-dhcid":
		put("update-conflict-detection", l.ConflictMode == "check-with-dhcid")
	default:
		k.leave("the setting ddns-conflict-resolution-mode %s: it is check-with-dhcid or no-check-with-dhcid here", l.ConflictMode)
	}
	if l.OverrideNoUpdate != nil && *l.OverrideNoUpdate {
		k.leave("the setting ddns-override-no-update: the wish of a client for no update is followed")
	}
	if l.ReplaceName != "" && l.ReplaceName != "never" {
		k.leave("the setting ddns-replace-client-name: names are not generated; see ddns-hostname")
	}
	if l.GeneratedPrefix != "" {
		k.leave("the setting ddns-generated-prefix: names are not generated; see ddns-hostname")
	}
}

// guards adds the classes that a network or range is for.
func (k *kea) guards(l *keaLevel, put func(string, any)) {
	names := l.Classes
	if l.Class != "" {
		names = append(slices.Clone(names), l.Class)
	}
	var allowed []any
	for _, name := range names {
		switch _, known := k.classes[name]; {
		case name == "ALL", k.halves[name]:
		case k.v6 && name == "KNOWN":
			put(bootUnknown, false)
		case name == "KNOWN" || name == "UNKNOWN":
			put(map[bool]string{true: allowPools, false: denyPools}[name == "KNOWN"], []any{knownPool})
		case !known:
			k.leave("the class %s of a network or range, which is not imported: the network or range serves clients of all classes", name)
		default:
			allowed = append(allowed, className(name))
		}
	}
	if len(allowed) > 0 {
		put(allowClasses, allowed)
	}
	for _, name := range slices.Concat(l.RequiredClasses, l.AdditionalClasses) {
		if _, known := k.classes[name]; known || k.required[name] {
			continue
		}
		k.required[name] = true
		k.leave("the class %s, which is evaluated for single networks: a class applies to all networks", name)
	}
}

// options adds the options that are sent to clients.
func (k *kea) options(all []keaOption, s *settings) {
	subs := map[string]map[int][]byte{}
	for _, o := range all {
		name, err := k.option(o, s, subs)
		if o.AlwaysSend != nil && *o.AlwaysSend {
			k.leave("always-send of options: clients get the options that they ask for")
		}
		if err != nil {
			k.leave("the option %s: %v", cmp.Or(name, o.called()), err)
		}
	}
	for code, space := range k.inner {
		var out []byte
		for _, sub := range sortedKeys(subs[space]) {
			out = append(append(out, byte(sub), byte(len(subs[space][sub]))), subs[space][sub]...) //nolint:gosec // checked by option
		}
		delete(subs, space)
		definition, known := k.table.byCode[code]
		if len(out) > 0 && known {
			s.put(setting{k.rowName, false, definition.Name, hexText(out)})
		}
	}
	for space := range subs {
		k.leave("options of the space %s, which no option contains", space)
	}
}

// option adds an option, or an option inside of another one to subs.
func (k *kea) option(o keaOption, s *settings, subs map[string]map[int][]byte) (name string, err error) {
	if o.NeverSend != nil && *o.NeverSend {
		return o.Name, errors.New("never-send has no equivalent")
	}
	if space := o.Space; space != "" && space != "dhcp4" && space != "dhcp6" {
		if strings.HasPrefix(space, "vendor-") && k.spaces[space] == nil {
			return o.Name, errors.New("options of the space " + space + " are not imported: create a vendor profile")
		}
		return o.Name, k.sub(o, space, subs)
	}
	definition, known := k.table.byName[o.Name]
	if o.Name == "" || !known && o.Code != 0 {
		definition, known = k.table.byCode[o.Code]
	}
	switch {
	case computedOptions[o.Name] != "":
		return o.Name, errors.New(computedOptions[o.Name])
	case !known && o.Name == "":
		if err := k.defineIn(k.table, fmt.Sprintf("option-%d", o.Code), o.Code, `"<hex>"`); err != nil || k.v6 {
			return "", cmp.Or(err, errors.New("DHCPv6 does not support custom options"))
		}
		definition = k.table.byCode[o.Code]
	case !known:
		return o.Name, errors.New("it is not defined")
	}
	words, err := o.words(definition.Format)
	if err != nil {
		return definition.Name, err
	}
	if len(words) == 0 && k.inner[definition.Code] != "" { // its content are the options of the space
		return definition.Name, nil
	}
	value, err := valueOf(definition.Format, words)
	if err == nil {
		s.put(setting{k.rowName, false, definition.Name, value})
	}
	return definition.Name, err
}

// sub adds an option inside of another one.
func (k *kea) sub(o keaOption, space string, subs map[string]map[int][]byte) error {
	definition, known := k.spaces[space][o.Name]
	for _, one := range k.spaces[space] {
		if !known && one.code == o.Code {
			definition, known = one, true
		}
	}
	if !known {
		definition = subOption{o.Code, `"<hex>"`}
	}
	if definition.code == 0 {
		return errors.New("it is not defined in the space " + space)
	}
	words, err := o.words(definition.format)
	var data []byte
	if err == nil && len(words) > 0 {
		data, err = octetsOf(definition.format, words)
	}
	if err == nil && len(data) > 255 {
		err = errors.New("it has more than 255 octets")
	}
	if err == nil {
		if subs[space] == nil {
			subs[space] = map[int][]byte{}
		}
		subs[space][definition.code] = data
	}
	return err
}

// words returns the values of an option. Octets are the values of options whose format is one of octets, texts or addresses.
func (o keaOption) words(format string) ([]valueWord, error) {
	data := strings.TrimSpace(o.Data)
	if o.CSV != nil && !*o.CSV || format == `"<hex>"` {
		return o.octets(format, data)
	}
	if data == "" {
		return nil, nil
	}
	kinds, list, _, err := formatKinds(format)
	if err != nil {
		return nil, err
	}
	if !list && len(kinds) == 1 && (kinds[0] == "text" || kinds[0] == "string" || kinds[0] == "url") {
		return []valueWord{{strings.ReplaceAll(data, `\,`, ","), true}}, nil
	}
	var words []valueWord
	for one := range strings.SplitSeq(data, ",") {
		words = append(words, valueWord{strings.TrimSpace(one), true})
	}
	return words, nil
}

// octets returns the values of an option that is written in hexadecimal.
func (o keaOption) octets(format, data string) ([]valueWord, error) {
	if text, ok := strings.CutPrefix(data, "'"); ok {
		return []valueWord{{strings.TrimSuffix(text, "'"), true}}, nil
	}
	digits := strings.NewReplacer(":", "", " ", "", "0x", "", ",", "").Replace(data)
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return nil, fmt.Errorf("%q is not hexadecimal", data)
	}
	kinds, _, _, err := formatKinds(format)
	if err != nil {
		return nil, err
	}
	var words []valueWord
	switch kind := kinds[0]; {
	case kind == "hex" || kind == "string" || format == routesFormat:
		if len(raw) > 0 {
			words = append(words, valueWord{hexText(raw), false})
		}
	case kind == "text" || kind == "url":
		words = append(words, valueWord{string(raw), true})
	case strings.HasSuffix(kind, "_address"):
		size := map[bool]int{true: 4, false: 16}[kind == "ipv4_address"]
		for len(raw) >= size {
			a, _ := netip.AddrFromSlice(raw[:size])
			words, raw = append(words, valueWord{a.String(), false}), raw[size:]
		}
	default:
		return nil, errors.New("octets of numbers and names are not converted: give it with csv-format")
	}
	return words, nil
}

// called returns the name of an option, or its code.
func (o keaOption) called() string { return cmp.Or(o.Name, fmt.Sprint(o.Code)) }

// define reads definitions of options.
func (k *kea) define(all []keaDefinition) {
	for _, one := range all {
		name, space := one.Name, one.Space
		types := one.Type
		if one.Type == "record" {
			types = one.RecordTypes
		}
		format, err := keaFormat(types, one.Array)
		switch space {
		case "", "dhcp4", "dhcp6":
			if one.Encapsulate != "" {
				k.inner[one.Code] = one.Encapsulate
			}
			_, known := k.table.byCode[one.Code]
			switch {
			case known:
				k.table.byName[name], err = k.table.byCode[one.Code], nil
			case k.v6:
				err = errors.New("DHCPv6 does not support custom options")
			case one.Type == "empty" && one.Encapsulate != "":
				err = k.defineIn(k.table, name, one.Code, `"<hex>"`)
			case err == nil:
				err = k.defineIn(k.table, name, one.Code, format)
			}
		default:
			if k.spaces[space] == nil {
				k.spaces[space] = map[string]subOption{}
			}
			k.spaces[space][name] = subOption{one.Code, format}
		}
		if err != nil {
			k.leave("the definition of the option %s: %v", name, err)
		}
	}
}

// keaFormat returns the format of types of Kea.
func keaFormat(types string, array bool) (string, error) {
	var tokens []string
	for one := range strings.SplitSeq(types, ",") {
		token := map[string]string{"boolean": "boolean", "int8": "integer_8", "int16": "integer_16", "int32": "integer_32",
			"uint8": "unsigned_integer_8", "uint16": "unsigned_integer_16", "uint32": "unsigned_integer_32", "ipv4-address": "ipv4_address",
			"ipv6-address": "ipv6_address", "string": "text", "fqdn": "domain_name", "binary": "hex", "empty": "hex"}[strings.TrimSpace(one)]
		if token == "" {
			return "", fmt.Errorf("the type %s has no equivalent", strings.TrimSpace(one))
		}
		tokens = append(tokens, `"<`+token+`>"`)
	}
	switch text := strings.Join(tokens, ","); {
	case len(tokens) > 1:
		return "[[" + text + "]]", nil
	case array:
		return "[" + text + "]", nil
	default:
		return text, nil
	}
}
