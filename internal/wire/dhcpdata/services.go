package dhcpdata

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// ServiceOption describes a service option: its value and its effect.
type ServiceOption struct {
	Name string
	V6   bool
	// Value is the form of the value in a Service.
	Value ValueKind
	// Min and Max are the limits of a Number; Max 0 means 2³²-1. Max is also the maximum size of a Text in octets; 0 means 255.
	Min, Max uint32
	// Values are the allowed values of a Text; nil allows all.
	Values []string
	// Effect states in one sentence how the option changes the behaviour of the server. It is empty for an option without an effect, which
	// the manager refuses to deploy; Refusal is the reason.
	Effect  string
	Refusal string
	// Without are the levels at which the option has no effect, because the server reads it before it knows their objects, or for a range
	// only. The manager refuses to deploy it there.
	Without []Level
}

// The levels without an effect of options that the server reads for the network alone, before it has chosen a range, before it has chosen
// an address, for the members of a range, for clients without a reservation, and for classes.
var (
	belowNetwork   = []Level{AtRange, AtMACPool, AtClass, AtSubclass, AtMACAddress, AtAddress}
	beforeRange    = []Level{AtRange}
	beforeAddress  = []Level{AtRange, AtAddress}
	belowRange     = belowNetwork[1:]
	atAddress      = []Level{AtAddress}
	outsideClasses = slices.DeleteFunc(slices.Clone(levels), func(at Level) bool { return at == AtClass || at == AtSubclass })
)

// Where names the objects that the option has an effect at, for a message that refuses it at another level.
func (o ServiceOption) Where() string {
	switch {
	case slices.Contains(o.Without, AtNetwork):
		return "the class or subclass"
	case slices.Contains(o.Without, AtRange):
		return "the network, or an object above it"
	}
	return "the range, or an object above it"
}

// ValueKind is the form of the JSON value of a service option.
type ValueKind string

// The kinds of values. An IDList contains the ids of client classes or MAC pools.
const (
	Boolean ValueKind = "boolean"
	Number  ValueKind = "number"
	Text    ValueKind = "text"
	Address ValueKind = "address"
	IDList  ValueKind = "ids"
	Texts   ValueKind = "texts"
)

// FindService returns the description of a service option.
func FindService(name string, v6 bool) (ServiceOption, bool) {
	all := services4
	if v6 {
		all = services6
	}
	i := slices.IndexFunc(all, func(o ServiceOption) bool { return o.Name == name })
	if i < 0 {
		return ServiceOption{}, false
	}
	return all[i], true
}

// checkService returns an error if a service option does not exist, has no effect, or has a value of another form.
func checkService(name string, v6 bool, value json.RawMessage) error {
	o, ok := FindService(name, v6)
	switch {
	case !ok:
		return fmt.Errorf("unknown service option %q", name)
	case o.Effect == "":
		return fmt.Errorf("the service option %s has no effect: %s", name, o.Refusal)
	}
	if err := o.CheckValue(value); err != nil {
		return fmt.Errorf("the service option %s: %w", name, err)
	}
	return nil
}

// CheckValue returns an error if a value does not have the form of the option.
func (o ServiceOption) CheckValue(value json.RawMessage) error {
	switch o.Value {
	case Boolean:
		_, err := valueOf[bool](value)
		return err
	case Number:
		n, err := valueOf[uint32](value)
		limit := o.Max
		if limit == 0 {
			limit = math.MaxUint32
		}
		if err == nil && (n < o.Min || n > limit) {
			return fmt.Errorf("%d is not between %d and %d", n, o.Min, limit)
		}
		return err
	case Text:
		text, err := valueOf[string](value)
		if limit := cmp.Or(int(o.Max), maxIdentifier); err == nil && (text == "" || len(text) > limit) {
			return fmt.Errorf("the text has %d octets, not 1 to %d", len(text), limit)
		}
		if err == nil && o.Values != nil && !slices.Contains(o.Values, text) {
			return fmt.Errorf("must be one of %s, not %q", strings.Join(o.Values, ", "), text)
		}
		return err
	case Address:
		a, err := valueOf[netip.Addr](value)
		if err == nil && (!plain(a) || a.Is4() == o.V6) {
			return fmt.Errorf("%s is not an address of the family", value)
		}
		return err
	case IDList:
		_, err := valueOf[[]int64](value)
		return err
	case Texts:
		rule, err := valueOf[[]string](value)
		if err == nil && !checkHostNameRule(rule, o.V6) {
			return errors.New("it must be [IP or MAC (DHCPv6: DUID), PREPEND or APPEND, text], or [FIXED, text]")
		}
		return err
	}
	return fmt.Errorf("values of the kind %q do not exist", o.Value)
}

// valueOf decodes a value. A null is refused.
func valueOf[T any](value json.RawMessage) (v T, err error) {
	if string(value) == "null" || len(value) == 0 {
		return v, fmt.Errorf("the value is null")
	}
	if err = json.Unmarshal(value, &v); err != nil {
		return v, fmt.Errorf("the value %.100s: %w", value, err)
	}
	return v, nil
}
