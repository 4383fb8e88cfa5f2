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

// registerNamingPolicies declares the collections of naming policies and their parts, and what they are applied to.
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

// overrideNamingPolicy lets a name through that the naming policies refuse.
var overrideNamingPolicy = resource.Flag("x-bcn-override-naming-policy", "Do not ask the naming policies.")

// NamingPolicy says how names in views and zones are composed: of its values, one behind the other, and
// of nothing that its restrictions name.
type NamingPolicy struct {
	schema.Head `head:"required,nonblank,nullable" unique:"siblings"`
	// PolicyValues are the parts of a name, in their order.
	PolicyValues schema.RefList `api:"policyValues" ref:"NamingPolicyConnectorValue|NamingPolicyIncrementalValue|NamingPolicyIntegerValue|NamingPolicyRequiredValue|NamingPolicyTextValue"`
	// PolicyRestrictions are lists of what no name may be or hold.
	PolicyRestrictions schema.RefList `api:"policyRestrictions" ref:"NamingPolicyRestriction"`
	// InheritanceEnabled says whether the policy holds in zones below those that it is put on.
	InheritanceEnabled *bool `api:"inheritanceEnabled"`
	// AppliedTypes are the types of resources whose names it is for; all records where there are none.
	AppliedTypes []string `api:"appliedTypes"`

	// order are the values' ids in their order, as Key keeps them.
	order string
}

// BeforeWrite keeps the order of the values, and says what is wrong with the types.
func (x *NamingPolicy) BeforeWrite(c *resource.Change) error {
	for _, name := range x.AppliedTypes {
		if _, ok := c.API.Type(name); !ok {
			return problem.Invalid("appliedTypes", "%q is no type of a resource", name)
		}
	}
	if x.PolicyValues.Given {
		var ids []string
		for _, item := range x.PolicyValues.Items {
			ids = append(ids, strconv.FormatInt(item.ID, 10))
		}
		x.order = strings.Join(ids, ",")
	}
	return nil
}

// Key is the order of the policy's values: links have none.
func (x *NamingPolicy) Key() string { return x.order }

// KeepKey takes the order of a policy that is read.
func (x *NamingPolicy) KeepKey(key string) { x.order = key }

// NamingPolicyConnectorValue is text between other parts.
type NamingPolicyConnectorValue struct {
	schema.Head `head:"required,nonblank"`
	// Connector is the text.
	Connector string `api:"connector,required"`
}

// NamingPolicyIncrementalValue is a number that counts. A new name with a "#" in its place is given the next one.
type NamingPolicyIncrementalValue struct {
	schema.Head `head:"required,nonblank"`
	// IncrementalRole says whether the number makes the name unique among its siblings, or goes on with each name that is made.
	IncrementalRole string `api:"incrementalRole,required" enum:"UNIQUE_NAME|COUNTER"`
	// IncrementType is how the number is written.
	IncrementType string `api:"incrementType,required" enum:"DECIMAL|HEXADECIMAL"`
	// PaddingType says whether it is filled up with zeros to its paddingLength.
	PaddingType string `api:"paddingType,required" enum:"NONE|SIMPLE|GLOBAL"`
	// SequenceStart is the first number.
	SequenceStart *int64 `api:"sequenceStart" min:"0" max:"2147483647"`
	// SequenceIncrement is how far the next one is.
	SequenceIncrement *int64 `api:"sequenceIncrement" min:"1" max:"2147483647"`
	// PaddingLength is how many digits it has, with padding.
	PaddingLength *int64 `api:"paddingLength" min:"1" max:"63"`
	// MissingValueReuseEnabled says whether numbers that were given back are used again; a counter has none.
	MissingValueReuseEnabled *bool `api:"missingValueReuseEnabled"`
}

// NamingPolicyIntegerValue is a number within bounds.
type NamingPolicyIntegerValue struct {
	schema.Head `head:"required,nonblank"`
	// Min is the least number.
	Min *int64 `api:"min" min:"0" max:"2147483647"`
	// Max is the greatest number.
	Max *int64 `api:"max" min:"0" max:"2147483647"`
}

// BeforeWrite refuses bounds that cross.
func (x *NamingPolicyIntegerValue) BeforeWrite(*resource.Change) error {
	if x.Min != nil && x.Max != nil && *x.Min > *x.Max {
		return problem.Invalid("min", "%d is above max, %d", *x.Min, *x.Max)
	}
	return nil
}

// NamingPolicyRequiredValue is one of a list of texts.
type NamingPolicyRequiredValue struct {
	schema.Head `head:"required,nonblank"`
	// Elements are the texts, each with a name.
	Elements json.RawMessage `api:"elements,list,required"`
}

// named is one of a list of texts.
type namedText struct {
	Name  *string `json:"name"`
	Value *string `json:"value"`
}

// BeforeWrite reads the texts.
func (x *NamingPolicyRequiredValue) BeforeWrite(*resource.Change) error {
	list, err := readList[namedText]("elements", x.Elements)
	for i, one := range list {
		if one.Name == nil || strings.TrimSpace(*one.Name) == "" || one.Value == nil || *one.Value == "" {
			return problem.Invalid("elements", "element %d needs a name and a value", i+1)
		}
	}
	return err
}

// readList reads a list of objects that must have one at least.
func readList[T any](field string, raw json.RawMessage) (list []T, err error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, problem.Invalid(field, "must be a list of objects, and has a %s where %s is not one", wrong.Value,
				cmp.Or(wrong.Field, "an entry"))
		}
		return nil, problem.Invalid(field, "must be a list of objects: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if len(list) == 0 {
		return nil, problem.Invalid(field, "must have at least one element")
	}
	return list, nil
}

// NamingPolicyTextValue is text of some length, or that matches an expression.
type NamingPolicyTextValue struct {
	schema.Head `head:"required,nonblank"`
	// TextType says which of the two.
	TextType string `api:"textType,required" enum:"LENGTH|REGULAR_EXPRESSION"`
	// MinLength is the least number of characters.
	MinLength *int64 `api:"minLength" min:"0" max:"2147483647"`
	// MaxLength is the greatest.
	MaxLength *int64 `api:"maxLength" min:"0" max:"2147483647"`
	// RegularExpression is what all of the text matches (RE2's syntax).
	RegularExpression string `api:"regularExpression" length:"1000"`
}

// BeforeWrite reads the expression.
func (x *NamingPolicyTextValue) BeforeWrite(*resource.Change) error {
	if x.MinLength != nil && x.MaxLength != nil && *x.MinLength > *x.MaxLength {
		return problem.Invalid("minLength", "%d is above maxLength, %d", *x.MinLength, *x.MaxLength)
	}
	if x.TextType != "REGULAR_EXPRESSION" {
		return nil
	}
	if x.RegularExpression == "" {
		return problem.Invalid("regularExpression", "is needed with REGULAR_EXPRESSION")
	}
	if strings.Contains(x.RegularExpression, partPrefix) {
		return problem.Invalid("regularExpression", "%q is a name that groups must not have", partPrefix)
	}
	if _, err := regexp.Compile(x.RegularExpression); err != nil {
		return problem.Invalid("regularExpression", "%v", err)
	}
	return nil
}

// NamingPolicyRestriction lists what no name may be or hold.
type NamingPolicyRestriction struct {
	schema.Head `head:"required,nonblank"`
	// Restrictions are the texts, each with the way it matches: Exact or Any.
	Restrictions json.RawMessage `api:"restrictions,list,required"`
}

// restriction is one text that is not wanted.
type restriction struct {
	Value     *string `json:"value"`
	MatchType string  `json:"matchType"`
}

// BeforeWrite reads the texts.
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
			return problem.Invalid("restrictions", "restriction %d needs Exact or Any as its matchType", i+1)
		}
		if one.Value == nil || strings.TrimSpace(*one.Value) == "" {
			return problem.Invalid("restrictions", "restriction %d needs a value", i+1)
		}
	}
	x.Restrictions, err = json.Marshal(list)
	return err
}

// The parts of a name as expressions, with the checks of their groups.
type pattern interface {
	expression() string
	// fits tells what is wrong with the text that the expression matched; empty where nothing is.
	mismatch(text string) string
}

func (x *NamingPolicyConnectorValue) expression() string     { return regexp.QuoteMeta(x.Connector) }
func (x *NamingPolicyConnectorValue) mismatch(string) string { return "" }

func (x *NamingPolicyRequiredValue) expression() string {
	list, err := readList[namedText]("elements", x.Elements)
	if err != nil { // BeforeWrite saw to it
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
		return "is no number"
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
		return "is no number"
	case n > math.MaxInt32:
		return fmt.Sprintf("is more than %d", math.MaxInt32)
	case n < x.start() || (n-x.start())%x.step() != 0:
		return fmt.Sprintf("is not in the sequence from %d on in steps of %d", x.start(), x.step())
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

// checkNaming refuses a name in a zone or view that a naming policy there does not allow. Without a name
// it is the zone's own.
func checkNamingPolicies(c *resource.Change, holder int64, name string) error {
	if name == "" || !c.Creates() && !c.Given["name"] || overrideNamingPolicy.In(c.Options) {
		return nil
	}
	if c.Old != nil && schema.HeadOf(c.Old).Name == name && schema.HeadOf(c.Old).Parent == holder {
		return nil
	}
	return eachPolicy(c, holder, func(row *store.Resource, p *NamingPolicy) error { return checkPolicy(c, row, p, name) })
}

// eachPolicy calls fn for the naming policies that are for a change's type in a zone or view: those on it, and those above it that hold
// below, too.
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

// isFor reports whether the policy is for names of a type; own says that it is put on what holds the name, not on something above.
func (x *NamingPolicy) isFor(kind string, own bool) bool {
	if !own && (x.InheritanceEnabled == nil || !*x.InheritanceEnabled) {
		return false
	}
	return len(x.AppliedTypes) == 0 && strings.HasSuffix(kind, "Record") || slices.Contains(x.AppliedTypes, kind)
}

// allows asks one policy.
func checkPolicy(c *resource.Change, row *store.Resource, p *NamingPolicy, name string) error {
	id := row.ID
	refuse := func(format string, args ...any) error {
		return problem.Field("NamingPolicyViolation", "name", "%q is not as the naming policy %s, %d, wants it: %s", name, p.Name, id,
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

// avoids refuses a name that a restriction lists.
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

// valuesOf gives the values of a policy, in their order.
func readValues(c *resource.Change, policy *store.Resource) (values []policyValue, err error) {
	for text := range strings.SplitSeq(policy.Key, ",") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil { // no values
			continue
		}
		row, err := c.Tx.Get(id)
		if store.IsNotFound(err) { // deleted since
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

// composed refuses a name that is not made up of the policy's values.
func checkComposition(c *resource.Change, policy *store.Resource, name string, refuse func(string, ...any) error) error {
	values, err := readValues(c, policy)
	if err != nil || len(values) == 0 {
		return err
	}
	e, err := compileName(values, pattern.expression)
	if err != nil {
		return refuse("its values cannot be put together: %v", err)
	}
	found := e.FindStringSubmatch(name)
	if found == nil {
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = v.row.Name
		}
		return refuse("it has to be composed of %s", strings.Join(names, ", "))
	}
	for i, v := range values {
		text := found[e.SubexpIndex(partName(i))]
		if wrong := v.pattern.mismatch(text); wrong != "" {
			return refuse("%s: %q %s", problem.About(v.row.ID, v.row.Name), text, wrong)
		}
	}
	return nil
}

// applied keeps what a request that puts a policy on a view or zone says of it.
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
