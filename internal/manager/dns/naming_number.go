package dns

import (
	"database/sql"
	"embed"
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
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*_name_number.sql
var nameNumberMigrations embed.FS

// registerNameNumbers declares the table with the last numbers of the counters of naming policies.
func registerNameNumbers(r *resource.Registry) {
	r.Extension(&store.Extension{Name: "nameNumbers", Migrations: nameNumberMigrations,
		Tables: []store.Table{{Name: "name_number", Columns: []string{"value", "last"}, Key: 1}}})
}

// numberMark is the placeholder for a number in a new name.
const numberMark = "#"

// hasNumberMark reports whether a name has an unescaped numberMark.
func hasNumberMark(name string) bool {
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\':
			i++
		case numberMark[0]:
			return true
		}
	}
	return false
}

// assignNumbers replaces the number marks in a new or changed name by numbers. The marks must be in the positions of the
// NamingPolicyIncrementalValues of a naming policy. A name without marks is returned unchanged. A mark that no policy replaces is an error.
func assignNumbers(c *resource.Change, holder int64, name string) (string, error) {
	if !hasNumberMark(name) || !c.IsCreation() && !c.SetFields["name"] || overrideNamingPolicy.Value(c.Options) {
		return name, nil
	}
	made := ""
	err := eachPolicy(c, holder, func(row *store.Resource, p *NamingPolicy) error {
		if made != "" {
			return nil
		}
		values, err := readValues(c, row)
		if err != nil {
			return err
		}
		n := &numbering{c: c, holder: holder, values: values}
		if !n.hasNumbers() {
			return nil
		}
		if !n.parse(name) { // the policy rejects the name, because a mark is not a number
			return checkPolicy(c, row, p, name)
		}
		made, err = n.nextName()
		return err
	})
	if err == nil && made == "" {
		err = problem.Invalid("name", "%q: no naming policy with a counter applies here: %s is replaced by a number", name, numberMark)
	}
	return made, err
}

// numbering composes one name from the values of a policy.
type numbering struct {
	c      *resource.Change
	holder int64
	values []policyValue
	// texts are the parts of the name, one for each value. Numbers are filled in later.
	texts []string
}

// hasNumbers reports whether one of the values is a running number.
func (n *numbering) hasNumbers() bool {
	return slices.ContainsFunc(n.values, func(v policyValue) bool {
		_, ok := v.pattern.(*NamingPolicyIncrementalValue)
		return ok
	})
}

// parse splits a name into its parts. It returns false if the name does not match the values with a mark for each number.
func (n *numbering) parse(name string) bool {
	e, err := compileName(n.values, func(v pattern) string {
		if _, ok := v.(*NamingPolicyIncrementalValue); ok {
			return numberMark
		}
		return v.expression()
	})
	if err != nil {
		return false
	}
	found := e.FindStringSubmatch(name)
	if found == nil {
		return false
	}
	for i := range n.values {
		n.texts = append(n.texts, found[e.SubexpIndex(partName(i))])
	}
	return true
}

// nextName returns a name that no sibling has. The last value with the role UNIQUE_NAME makes it unique; other such values get their first
// number. Without such a value, the counters advance until the name is unused.
func (n *numbering) nextName() (string, error) {
	unique := -1
	for i, v := range n.values {
		if x, ok := v.pattern.(*NamingPolicyIncrementalValue); ok && x.IncrementalRole == roleUnique {
			n.texts[i], unique = x.format(x.start()), i
		}
	}
	for {
		if err := n.advanceCounters(); err != nil {
			return "", err
		}
		if unique >= 0 {
			return n.uniqueName(unique)
		}
		name := strings.Join(n.texts, "")
		if taken, err := n.isTaken(name); err != nil || !taken {
			return name, err
		}
	}
}

// isTaken reports whether a sibling has the name.
func (n *numbering) isTaken(name string) (bool, error) {
	holder, err := n.c.Tx.Head(n.holder)
	if err != nil {
		return false, err
	}
	_, zone, err := resolveParent(n.c.Tx, n.holder)
	if err != nil {
		return false, err
	}
	same, err := n.c.Tx.ResourcesByKey(holder.Configuration, naming.Key(naming.Join(name, zone)))
	return slices.ContainsFunc(same, func(r *store.Resource) bool {
		return r.Parent == n.holder && r.Collection == n.c.Type.Collection
	}), err
}

// advanceCounters takes the next number of each counter and stores it.
func (n *numbering) advanceCounters() error {
	for i, v := range n.values {
		x, ok := v.pattern.(*NamingPolicyIncrementalValue)
		if !ok || x.IncrementalRole == roleUnique {
			continue
		}
		number, err := nextNumber(n.c.Tx, x)
		if err != nil {
			return err
		}
		n.texts[i] = x.format(number)
	}
	return nil
}

// nextNumber returns the next number of a counter and stores it. It locks the counter, because counters are outside of all configurations
// and changes in different configurations run concurrently.
func nextNumber(tx *store.Tx, x *NamingPolicyIncrementalValue) (int64, error) {
	if _, err := tx.LockResource(x.ID); err != nil {
		return 0, err
	}
	var last int64
	err := tx.QueryRow("SELECT last FROM name_number WHERE value = ?", x.ID).Scan(&last)
	number := x.start()
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return 0, fmt.Errorf("read counter %d: %w", x.ID, err)
	default:
		number = x.nextAfter(last)
	}
	if number > math.MaxInt32 {
		return 0, problem.Field("NamingPolicyViolation", "name", "the counter %s (%d) has no numbers left", x.Name, x.ID)
	}
	return number, tx.Write("INSERT INTO name_number (value, last) VALUES (?, ?) ON CONFLICT (value) DO UPDATE SET last = excluded.last",
		x.ID, number)
}

// uniqueName returns the name with the first number that no sibling uses. If numbers are not reused, it is the first number after the
// highest used one.
func (n *numbering) uniqueName(at int) (string, error) {
	x := n.values[at].pattern.(*NamingPolicyIncrementalValue)
	before, behind := naming.Key(strings.Join(n.texts[:at], "")), naming.Key(strings.Join(n.texts[at+1:], ""))
	taken := map[int64]bool{}
	greatest := int64(-1)
	where := store.All{store.InCollection(n.c.Type.Collection), store.HasParent(n.holder)}
	if before != "" {
		where = append(where, store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"key"}}, Op: "startsWith", Value: before})
	}
	if err := n.c.Tx.List(store.Query{From: store.Resources, Where: where}, func(r *store.Resource) error {
		rest, ok := strings.CutPrefix(naming.Key(r.Name), before)
		if !ok {
			return nil
		}
		if rest, ok = strings.CutSuffix(rest, behind); !ok {
			return nil
		}
		if number, err := strconv.ParseInt(rest, x.base(), 32); err == nil && number >= 0 { // other texts are different names
			taken[number] = true
			greatest = max(greatest, number)
		}
		return nil
	}); err != nil {
		return "", err
	}
	number := x.start()
	if !x.reusesNumbers() && greatest >= number {
		number = x.nextAfter(greatest)
	}
	for taken[number] {
		number = x.nextAfter(number)
	}
	if number > math.MaxInt32 {
		return "", problem.Field("NamingPolicyViolation", "name", "the value %s (%d) has no numbers left", x.Name, x.ID)
	}
	n.texts[at] = x.format(number)
	return strings.Join(n.texts, ""), nil
}

// Roles of running numbers.
const (
	roleUnique  = "UNIQUE_NAME"
	roleCounter = "COUNTER"
)

// start returns the first number.
func (x *NamingPolicyIncrementalValue) start() int64 {
	if x.SequenceStart == nil {
		return 0
	}
	return *x.SequenceStart
}

// step returns the difference between two numbers.
func (x *NamingPolicyIncrementalValue) step() int64 {
	if x.SequenceIncrement == nil {
		return 1
	}
	return *x.SequenceIncrement
}

// nextAfter returns the first number of the sequence that is greater than number. number need not be part of the sequence.
func (x *NamingPolicyIncrementalValue) nextAfter(number int64) int64 {
	if number < x.start() {
		return x.start()
	}
	return x.start() + ((number-x.start())/x.step()+1)*x.step()
}

// reusesNumbers reports whether released numbers are used again.
func (x *NamingPolicyIncrementalValue) reusesNumbers() bool {
	return x.MissingValueReuseEnabled != nil && *x.MissingValueReuseEnabled
}

func (x *NamingPolicyIncrementalValue) base() int {
	if x.IncrementType == "HEXADECIMAL" {
		return 16
	}
	return 10
}

// format returns a number in the format of the value.
func (x *NamingPolicyIncrementalValue) format(number int64) string {
	text := strconv.FormatInt(number, x.base())
	if x.PaddingType != "NONE" && x.PaddingLength != nil {
		text = strings.Repeat("0", max(0, int(*x.PaddingLength)-len(text))) + text
	}
	return text
}

// BeforeWrite rejects a counter that reuses numbers, and padding without a length.
func (x *NamingPolicyIncrementalValue) BeforeWrite(*resource.Change) error {
	switch {
	case x.IncrementalRole == roleCounter && x.reusesNumbers():
		return problem.Field("ConflictingResourceFieldValues", "missingValueReuseEnabled", "a COUNTER cannot reuse numbers; use UNIQUE_NAME")
	case x.PaddingType != "NONE" && x.PaddingLength == nil:
		return problem.Missing("paddingLength")
	}
	return nil
}

// BeforeDelete deletes the stored number of a counter.
func (x *NamingPolicyIncrementalValue) BeforeDelete(c *resource.Change) error {
	return c.Tx.Write("DELETE FROM name_number WHERE value = ?", x.ID)
}

// partName returns the name of the group for a value in the expression for entire names.
func partName(i int) string { return partPrefix + strconv.Itoa(i) }

// partPrefix is the prefix of these group names.
const partPrefix = "portolanPart"

// compileName returns the regular expression for entire names, with a group for each value.
func compileName(values []policyValue, expression func(pattern) string) (*regexp.Regexp, error) {
	var whole strings.Builder
	whole.WriteString(`(?i)^`)
	for i, v := range values {
		fmt.Fprintf(&whole, "(?P<%s>%s)", partName(i), expression(v.pattern))
	}
	whole.WriteString(`$`)
	return regexp.Compile(whole.String())
}
