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

// registerNameNumbers declares what is kept of how far the counters of naming policies are.
func registerNameNumbers(r *resource.Registry) {
	r.Extension(&store.Extension{Name: "nameNumbers", Migrations: nameNumberMigrations,
		Tables: []store.Table{{Name: "name_number", Columns: []string{"value", "last"}, Key: 1}}})
}

// numberMark stands in a new name where a naming policy counts.
const numberMark = "#"

// marked reports whether a name has a numberMark that is not escaped.
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

// numbered puts numbers into a new name, or one that changes, where a naming policy of its holder has NamingPolicyIncrementalValues and the
// name has numberMarks in their places. A name without marks comes back as it is; no name may keep one.
func assignNumbers(c *resource.Change, holder int64, name string) (string, error) {
	if !hasNumberMark(name) || !c.Creates() && !c.Given["name"] || overrideNamingPolicy.In(c.Options) {
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
		if !n.parse(name) { // which the policy refuses: a mark is no number
			return checkPolicy(c, row, p, name)
		}
		made, err = n.nextName()
		return err
	})
	if err == nil && made == "" {
		err = problem.Invalid("name", "%q: %s stands for a number, and no naming policy counts here", name, numberMark)
	}
	return made, err
}

// numbering makes one name of a policy's values.
type numbering struct {
	c      *resource.Change
	holder int64
	values []policyValue
	// texts are the name's parts, one for each value; those of numbers are filled in.
	texts []string
}

// counts reports whether one of the values counts.
func (n *numbering) hasNumbers() bool {
	return slices.ContainsFunc(n.values, func(v policyValue) bool {
		_, ok := v.pattern.(*NamingPolicyIncrementalValue)
		return ok
	})
}

// reads takes a name apart; false where it is not of these values with a mark for each number.
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

// name gives the name with its numbers: one that none of its siblings has. The last value that is there to make the name unique does so,
// and others like it have their first number; without one, counters go on until the name is nobody's.
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

// taken reports whether a sibling has the name.
func (n *numbering) isTaken(name string) (bool, error) {
	holder, err := n.c.Tx.Head(n.holder)
	if err != nil {
		return false, err
	}
	_, zone, err := resolveParent(n.c.Tx, n.holder)
	if err != nil {
		return false, err
	}
	same, err := n.c.Tx.ByKey(holder.Configuration, naming.Key(naming.Join(name, zone)))
	return slices.ContainsFunc(same, func(r *store.Resource) bool {
		return r.Parent == n.holder && r.Collection == n.c.Type.Collection
	}), err
}

// count lets the counters go on, and keeps how far they are.
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

// nextNumber gives the next number of a counter, and keeps it. Counters lie outside of all configurations, and other changes may be made in
// those at the same time: they wait for each other here.
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
		return 0, fmt.Errorf("reading how far the counter %d is: %w", x.ID, err)
	default:
		number = x.nextAfter(last)
	}
	if number > math.MaxInt32 {
		return 0, problem.Field("NamingPolicyViolation", "name", "the counter %s, %d, has no numbers left", x.Name, x.ID)
	}
	return number, tx.Write("INSERT INTO name_number (value, last) VALUES (?, ?) ON CONFLICT (value) DO UPDATE SET last = excluded.last",
		x.ID, number)
}

// unique gives the name with the first number that no name next to it has: the first that is free, or the one behind the greatest where
// numbers are not used again.
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
		if number, err := strconv.ParseInt(rest, x.base(), 32); err == nil && number >= 0 { // others are other names
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
		return "", problem.Field("NamingPolicyViolation", "name", "the value %s, %d, has no numbers left", x.Name, x.ID)
	}
	n.texts[at] = x.format(number)
	return strings.Join(n.texts, ""), nil
}

// Roles of numbers.
const (
	roleUnique  = "UNIQUE_NAME"
	roleCounter = "COUNTER"
)

// start is the first number.
func (x *NamingPolicyIncrementalValue) start() int64 {
	if x.SequenceStart == nil {
		return 0
	}
	return *x.SequenceStart
}

// step is how far the next number is.
func (x *NamingPolicyIncrementalValue) step() int64 {
	if x.SequenceIncrement == nil {
		return 1
	}
	return *x.SequenceIncrement
}

// after gives the first number of the sequence behind another number, which need not be one of it.
func (x *NamingPolicyIncrementalValue) nextAfter(number int64) int64 {
	if number < x.start() {
		return x.start()
	}
	return x.start() + ((number-x.start())/x.step()+1)*x.step()
}

// reuses reports whether numbers that were given back are used again.
func (x *NamingPolicyIncrementalValue) reusesNumbers() bool {
	return x.MissingValueReuseEnabled != nil && *x.MissingValueReuseEnabled
}

func (x *NamingPolicyIncrementalValue) base() int {
	if x.IncrementType == "HEXADECIMAL" {
		return 16
	}
	return 10
}

// write gives a number as it stands in a name.
func (x *NamingPolicyIncrementalValue) format(number int64) string {
	text := strconv.FormatInt(number, x.base())
	if x.PaddingType != "NONE" && x.PaddingLength != nil {
		text = strings.Repeat("0", max(0, int(*x.PaddingLength)-len(text))) + text
	}
	return text
}

// BeforeWrite refuses a counter that would use numbers again, and padding without a length.
func (x *NamingPolicyIncrementalValue) BeforeWrite(*resource.Change) error {
	switch {
	case x.IncrementalRole == roleCounter && x.reusesNumbers():
		return problem.Field("ConflictingResourceFieldValues", "missingValueReuseEnabled", "a COUNTER goes on; UNIQUE_NAME uses numbers again")
	case x.PaddingType != "NONE" && x.PaddingLength == nil:
		return problem.Missing("paddingLength")
	}
	return nil
}

// BeforeDelete forgets how far a counter is.
func (x *NamingPolicyIncrementalValue) BeforeDelete(c *resource.Change) error {
	return c.Tx.Write("DELETE FROM name_number WHERE value = ?", x.ID)
}

// partName names the group of a value in the expression of whole names.
func partName(i int) string { return partPrefix + strconv.Itoa(i) }

// partPrefix begins those names.
const partPrefix = "portolanPart"

// wholeOf gives the expression of whole names, a group for each value.
func compileName(values []policyValue, expression func(pattern) string) (*regexp.Regexp, error) {
	var whole strings.Builder
	whole.WriteString(`(?i)^`)
	for i, v := range values {
		fmt.Fprintf(&whole, "(?P<%s>%s)", partName(i), expression(v.pattern))
	}
	whole.WriteString(`$`)
	return regexp.Compile(whole.String())
}
