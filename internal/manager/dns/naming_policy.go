package dns

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerNamingPolicies declares the collections of naming policies and their parts, and the links from views and zones.
func registerNamingPolicies(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "namingPolicies", Parents: []string{"namingPolicies"}}, &NamingPolicy{})
	r.Collection(resource.Collection{Name: "namingPolicyRestrictions", Parents: []string{"namingPolicyRestrictions"}},
		&NamingPolicyRestriction{})
	r.Collection(resource.Collection{Name: "namingPolicyValues", Parents: []string{"namingPolicyValues"}},
		&NamingPolicyConnectorValue{}, &NamingPolicyIncrementalValue{}, &NamingPolicyIntegerValue{}, &NamingPolicyRequiredValue{},
		&NamingPolicyTextValue{})
	r.Links(resource.Links{Name: "namingPolicies", From: []string{"views", "zones"}, To: "namingPolicies", Back: "appliedResources",
		Joined: saveAppliedFields})
}

// overrideNamingPolicy is the request option that disables naming policies.
var overrideNamingPolicy = resource.Flag("x-bcn-override-naming-policy", "Do not ask the naming policies.")

// NamingPolicy defines the names allowed in views and zones. A name is the concatenation of the policy's values, and must not match its
// restrictions.
type NamingPolicy struct {
	schema.Head `head:"required,nonblank,nullable" unique:"siblings"`
	// PolicyValues are the parts of a name, in order.
	PolicyValues schema.RefList `api:"policyValues" ref:"NamingPolicyConnectorValue|NamingPolicyIncrementalValue|NamingPolicyIntegerValue|NamingPolicyRequiredValue|NamingPolicyTextValue"`
	// PolicyRestrictions are lists of texts that names must not be or contain.
	PolicyRestrictions schema.RefList `api:"policyRestrictions" ref:"NamingPolicyRestriction"`
	// InheritanceEnabled applies the policy to zones below the views and zones it is linked to.
	InheritanceEnabled *bool `api:"inheritanceEnabled"`
	// AppliedTypes are the resource types whose names the policy applies to. An empty list means all records.
	AppliedTypes []string `api:"appliedTypes"`

	// order contains the ids of the values in order, as stored by Key.
	order string
}

// BeforeWrite stores the order of the values and rejects unknown types.
func (x *NamingPolicy) BeforeWrite(c *resource.Change) error {
	for _, name := range x.AppliedTypes {
		if _, ok := c.API.Type(name); !ok {
			return problem.Invalid("appliedTypes", "must be resource types, not %q", name)
		}
	}
	if x.PolicyValues.IsSet {
		var ids []string
		for _, item := range x.PolicyValues.Items {
			ids = append(ids, strconv.FormatInt(item.ID, 10))
		}
		x.order = strings.Join(ids, ",")
	}
	return nil
}

// Key returns the order of the policy's values, which links do not store.
func (x *NamingPolicy) Key() string { return x.order }

// KeepKey sets the order when a policy is read from the store.
func (x *NamingPolicy) KeepKey(key string) { x.order = key }

// NamingPolicyConnectorValue is a fixed text between other parts.
type NamingPolicyConnectorValue struct {
	schema.Head `head:"required,nonblank"`
	// Connector is the text.
	Connector string `api:"connector,required"`
}

// NamingPolicyIncrementalValue is a running number. A new name with "#" in this position gets the next number.
type NamingPolicyIncrementalValue struct {
	schema.Head `head:"required,nonblank"`
	// IncrementalRole selects how the number is chosen: to make the name unique among its siblings, or as a counter that increases with
	// each new name.
	IncrementalRole string `api:"incrementalRole,required" enum:"UNIQUE_NAME|COUNTER"`
	// IncrementType is the number format.
	IncrementType string `api:"incrementType,required" enum:"DECIMAL|HEXADECIMAL"`
	// PaddingType pads the number with zeros to paddingLength.
	PaddingType string `api:"paddingType,required" enum:"NONE|SIMPLE|GLOBAL"`
	// SequenceStart is the first number.
	SequenceStart *int64 `api:"sequenceStart" min:"0" max:"2147483647"`
	// SequenceIncrement is the difference between two numbers.
	SequenceIncrement *int64 `api:"sequenceIncrement" min:"1" max:"2147483647"`
	// PaddingLength is the number of digits with padding.
	PaddingLength *int64 `api:"paddingLength" min:"1" max:"63"`
	// MissingValueReuseEnabled reuses released numbers. It is not available for a counter.
	MissingValueReuseEnabled *bool `api:"missingValueReuseEnabled"`
}

// NamingPolicyIntegerValue is a number in a range.
type NamingPolicyIntegerValue struct {
	schema.Head `head:"required,nonblank"`
	// Min is the minimum.
	Min *int64 `api:"min" min:"0" max:"2147483647"`
	// Max is the maximum.
	Max *int64 `api:"max" min:"0" max:"2147483647"`
}

// BeforeWrite rejects a min above max.
func (x *NamingPolicyIntegerValue) BeforeWrite(*resource.Change) error {
	if x.Min != nil && x.Max != nil && *x.Min > *x.Max {
		return problem.Invalid("min", "%d is above max (%d)", *x.Min, *x.Max)
	}
	return nil
}

// NamingPolicyRequiredValue is one of several texts.
type NamingPolicyRequiredValue struct {
	schema.Head `head:"required,nonblank"`
	// Elements are the allowed texts, each with a name.
	Elements json.RawMessage `api:"elements,list,required"`
}

// namedText is one of the texts of a required value.
type namedText struct {
	Name  *string `json:"name"`
	Value *string `json:"value"`
}

// BeforeWrite checks the texts.
func (x *NamingPolicyRequiredValue) BeforeWrite(*resource.Change) error {
	list, err := readList[namedText]("elements", x.Elements)
	for i, one := range list {
		if one.Name == nil || strings.TrimSpace(*one.Name) == "" || one.Value == nil || *one.Value == "" {
			return problem.Invalid("elements", "element %d needs a name and a value", i+1)
		}
	}
	return err
}

// readList parses a JSON list with at least one object.
func readList[T any](field string, raw json.RawMessage) (list []T, err error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, problem.Invalid(field, "must be a list of objects: %s must not be a JSON %s", cmp.Or(wrong.Field, "an entry"),
				wrong.Value)
		}
		return nil, problem.Invalid(field, "must be a list of objects: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if len(list) == 0 {
		return nil, problem.Invalid(field, "must have at least one element")
	}
	return list, nil
}

// NamingPolicyTextValue is a text with a limited length, or a text that matches a regular expression.
type NamingPolicyTextValue struct {
	schema.Head `head:"required,nonblank"`
	// TextType selects the kind of check.
	TextType string `api:"textType,required" enum:"LENGTH|REGULAR_EXPRESSION"`
	// MinLength is the minimum number of characters.
	MinLength *int64 `api:"minLength" min:"0" max:"2147483647"`
	// MaxLength is the maximum number of characters.
	MaxLength *int64 `api:"maxLength" min:"0" max:"2147483647"`
	// RegularExpression must match the entire text (RE2 syntax).
	RegularExpression string `api:"regularExpression" length:"1000"`
}

// BeforeWrite checks the bounds and compiles the expression.
func (x *NamingPolicyTextValue) BeforeWrite(*resource.Change) error {
	if x.MinLength != nil && x.MaxLength != nil && *x.MinLength > *x.MaxLength {
		return problem.Invalid("minLength", "%d is above maxLength (%d)", *x.MinLength, *x.MaxLength)
	}
	if x.TextType != "REGULAR_EXPRESSION" {
		return nil
	}
	if x.RegularExpression == "" {
		return problem.Invalid("regularExpression", "is required with REGULAR_EXPRESSION")
	}
	if strings.Contains(x.RegularExpression, partPrefix) {
		return problem.Invalid("regularExpression", "%q must not be the name of a group", partPrefix)
	}
	if _, err := regexp.Compile(x.RegularExpression); err != nil {
		return problem.Invalid("regularExpression", "%v", err)
	}
	return nil
}

// NamingPolicyRestriction lists texts that names must not be or contain.
type NamingPolicyRestriction struct {
	schema.Head `head:"required,nonblank"`
	// Restrictions are the texts, each with a match type: Exact or Any.
	Restrictions json.RawMessage `api:"restrictions,list,required"`
}

// restriction is one disallowed text.
type restriction struct {
	Value     *string `json:"value"`
	MatchType string  `json:"matchType"`
}

// BeforeWrite checks and normalizes the texts.
func (x *NamingPolicyRestriction) BeforeWrite(*resource.Change) error {
	list, err := readList[restriction]("restrictions", x.Restrictions)
	if err != nil {
		return err
	}
	for i := range list {
		one := &list[i]
		switch {
		case strings.EqualFold(one.MatchType, "Exact"):
			one.MatchType = "Exact"
		case strings.EqualFold(one.MatchType, "Any"):
			one.MatchType = "Any"
		default:
			return problem.Invalid("restrictions", "restriction %d: matchType must be Exact or Any", i+1)
		}
		if one.Value == nil || strings.TrimSpace(*one.Value) == "" {
			return problem.Invalid("restrictions", "restriction %d requires a value", i+1)
		}
	}
	x.Restrictions, err = json.Marshal(list)
	return err
}

// pattern is a policy value as part of a regular expression for entire names.
type pattern interface {
	expression() string
	// mismatch describes the fault of a text that the expression matched; empty if the text is valid.
	mismatch(text string) string
}

func (x *NamingPolicyConnectorValue) expression() string     { return regexp.QuoteMeta(x.Connector) }
func (x *NamingPolicyConnectorValue) mismatch(string) string { return "" }

func (x *NamingPolicyRequiredValue) expression() string {
	list, err := readList[namedText]("elements", x.Elements)
	if err != nil { // BeforeWrite rejects an invalid list
		return `[^\s\S]`
	}
	var all []string
	for _, one := range list {
		all = append(all, regexp.QuoteMeta(*one.Value))
	}
	return strings.Join(all, "|")
}
func (x *NamingPolicyRequiredValue) mismatch(string) string { return "" }

func (x *NamingPolicyIntegerValue) expression() string { return `\d{1,10}` }
func (x *NamingPolicyIntegerValue) mismatch(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return "is not a number"
	case x.Min != nil && n < *x.Min:
		return fmt.Sprintf("is less than %d", *x.Min)
	case x.Max != nil && n > *x.Max:
		return fmt.Sprintf("is more than %d", *x.Max)
	}
	return ""
}

func (x *NamingPolicyIncrementalValue) expression() string {
	digits := `\d`
	if x.IncrementType == "HEXADECIMAL" {
		digits = `[\da-f]`
	}
	if x.PaddingType != "NONE" && x.PaddingLength != nil {
		return fmt.Sprintf("%s{%d,}", digits, *x.PaddingLength)
	}
	return digits + "+"
}

func (x *NamingPolicyIncrementalValue) mismatch(text string) string {
	n, err := strconv.ParseInt(text, x.base(), 64)
	switch {
	case err != nil:
		return "is not a number"
	case n > math.MaxInt32:
		return fmt.Sprintf("is more than %d", math.MaxInt32)
	case n < x.start() || (n-x.start())%x.step() != 0:
		return fmt.Sprintf("is not in the sequence that starts at %d in steps of %d", x.start(), x.step())
	case x.PaddingType == "NONE" && len(text) > 1 && text[0] == '0':
		return "begins with a zero"
	}
	return ""
}

func (x *NamingPolicyTextValue) expression() string {
	if x.TextType == "REGULAR_EXPRESSION" {
		return x.RegularExpression
	}
	minLength, maxLength := int64(0), ""
	if x.MinLength != nil {
		minLength = *x.MinLength
	}
	if x.MaxLength != nil {
		maxLength = strconv.FormatInt(min(*x.MaxLength, naming.MaxName), 10)
	}
	return fmt.Sprintf(".{%d,%s}", min(minLength, naming.MaxName), maxLength)
}
func (x *NamingPolicyTextValue) mismatch(string) string { return "" }

// checkNamingPolicies rejects a name in a zone or view that a naming policy does not allow. An empty name, which is the name of the zone
// itself, is always allowed.
func checkNamingPolicies(c *resource.Change, holder int64, name string) error {
	if name == "" || !c.IsCreation() && !c.SetFields["name"] || overrideNamingPolicy.Value(c.Options) {
		return nil
	}
	if c.Old != nil && schema.HeadOf(c.Old).Name == name && schema.HeadOf(c.Old).Parent == holder {
		return nil
	}
	return eachPolicy(c, holder, func(row *store.Resource, p *NamingPolicy) error { return checkPolicy(c, row, p, name) })
}

// eachPolicy calls fn for the naming policies of a zone or view that apply to the type of a change. It includes inherited policies from
// above.
func eachPolicy(c *resource.Change, holder int64, fn func(row *store.Resource, p *NamingPolicy) error) error {
	if there, err := hasPolicies(c.Tx); err != nil || !there {
		return err
	}
	kind := schema.HeadOf(c.New).Type
	for id, own := holder, true; id > resource.RootID; own = false {
		ids, err := c.Tx.Links(id, "namingPolicies")
		if err != nil {
			return err
		}
		for _, policy := range ids {
			row, err := c.Tx.Get(policy)
			if err != nil {
				return err
			}
			o, err := c.API.Object(row)
			if err != nil {
				return err
			}
			if p, ok := o.(*NamingPolicy); ok && p.isFor(kind, own) {
				if err := fn(row, p); err != nil {
					return err
				}
			}
		}
		head, err := c.Tx.Head(id)
		if err != nil {
			return err
		}
		if head.Collection == "views" {
			return nil
		}
		id = head.Parent
	}
	return nil
}

// isFor reports whether the policy applies to names of a type. own is true if the policy is linked to the direct parent of the name.
func (x *NamingPolicy) isFor(kind string, own bool) bool {
	if !own && (x.InheritanceEnabled == nil || !*x.InheritanceEnabled) {
		return false
	}
	return len(x.AppliedTypes) == 0 && strings.HasSuffix(kind, "Record") || slices.Contains(x.AppliedTypes, kind)
}

// checkPolicy rejects a name that one policy does not allow.
func checkPolicy(c *resource.Change, row *store.Resource, p *NamingPolicy, name string) error {
	id := row.ID
	refuse := func(format string, args ...any) error {
		return problem.Field("NamingPolicyViolation", "name", "%q does not match the naming policy %s (%d): %s", name, p.Name, id,
			fmt.Sprintf(format, args...))
	}
	restrictions, err := c.Tx.Links(id, "policyRestrictions")
	if err != nil {
		return err
	}
	for _, restricted := range restrictions {
		if err := checkRestriction(c, restricted, name, refuse); err != nil {
			return err
		}
	}
	return checkComposition(c, row, name, refuse)
}

// checkRestriction rejects a name that a restriction lists.
func checkRestriction(c *resource.Change, id int64, name string, refuse func(string, ...any) error) error {
	row, err := c.Tx.Get(id)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	r, ok := o.(*NamingPolicyRestriction)
	if !ok {
		return nil
	}
	list, err := readList[restriction]("restrictions", r.Restrictions)
	if err != nil {
		return err
	}
	for _, one := range list {
		value := strings.ToLower(*one.Value)
		if lower := strings.ToLower(name); lower == value || one.MatchType == "Any" && strings.Contains(lower, value) {
			return refuse("%q is not allowed (%s)", *one.Value, r.Name)
		}
	}
	return nil
}

// policyValue is one value of a policy.
type policyValue struct {
	row     *store.Resource
	pattern pattern
}

// readValues returns the values of a policy in order.
func readValues(c *resource.Change, policy *store.Resource) (values []policyValue, err error) {
	for text := range strings.SplitSeq(policy.Key, ",") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil { // the policy has no values
			continue
		}
		row, err := c.Tx.Get(id)
		if store.IsNotFound(err) { // the value was deleted
			continue
		}
		if err != nil {
			return nil, err
		}
		o, err := c.API.Object(row)
		if err != nil {
			return nil, err
		}
		if v, ok := o.(pattern); ok {
			values = append(values, policyValue{row, v})
		}
	}
	return values, nil
}

// checkComposition rejects a name that is not a concatenation of the policy's values.
func checkComposition(c *resource.Change, policy *store.Resource, name string, refuse func(string, ...any) error) error {
	values, err := readValues(c, policy)
	if err != nil || len(values) == 0 {
		return err
	}
	e, err := compileName(values, pattern.expression)
	if err != nil {
		return refuse("the values cannot be combined: %v", err)
	}
	found := e.FindStringSubmatch(name)
	if found == nil {
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = v.row.Name
		}
		return refuse("the name must be composed of %s", strings.Join(names, ", "))
	}
	for i, v := range values {
		text := found[e.SubexpIndex(partName(i))]
		if wrong := v.pattern.mismatch(text); wrong != "" {
			return refuse("%s: %q %s", problem.Describe(v.row.ID, v.row.Name), text, wrong)
		}
	}
	return nil
}

// saveAppliedFields stores the policy fields of a request that links a policy to a view or zone.
func saveAppliedFields(c *resource.Change, _, policy *store.Resource) error {
	members := map[string]json.RawMessage{}
	for _, name := range []string{"appliedTypes", "inheritanceEnabled"} {
		if raw, ok := c.Sent[name]; ok {
			members[name] = raw
		}
	}
	if len(members) == 0 {
		return nil
	}
	_, err := c.Patch(policy, members)
	return err
}
