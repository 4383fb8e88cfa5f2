package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerNAPTRRecords declares the type.
func registerNAPTRRecords(r *resource.Registry) {
	declareRecord(r, "NAPTRRecord", &NAPTRRecord{})
}

// NAPTRRecord is a rule that makes one name of another (RFC 3403).
type NAPTRRecord struct {
	RecordHead
	// RecordType is its type on the wire.
	RecordType string `api:"recordType,computed" always:"NAPTR"`
	// Order is the order in which rules are used.
	Order int64 `api:"order,put" min:"0" max:"65535"`
	// Preference is the order among rules of the same order.
	Preference int64 `api:"preference,put" min:"0" max:"65535"`
	// Service is the service and how it is resolved.
	Service string `api:"service" length:"255"`
	// RegularExpression is the substitution.
	RegularExpression string `api:"regularExpression,nonblank" length:"255"`
	// Replacement is the next name, where there is no substitution.
	Replacement string `api:"replacement" length:"1020"`
	// Flags say how the rule ends.
	Flags string `api:"flags" length:"255"`
}

// BeforeWrite derives the name and reads the data.
func (x *NAPTRRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if x.Replacement != "" && x.Replacement != "." {
		if err := naming.Check(naming.Clean(x.Replacement), naming.AnyName); err != nil {
			return problem.Invalid("replacement", "%v", err)
		}
	}
	if x.Replacement != "" && x.Replacement != "." && x.RegularExpression != "" {
		return problem.Invalid("replacement", "a rule has either a replacement or a regularExpression (RFC 3403 section 4.1)")
	}
	return nil
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *NAPTRRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *NAPTRRecord) SameData(o schema.Object) bool {
	y, ok := o.(*NAPTRRecord)
	return ok && x.Order == y.Order && x.Preference == y.Preference && x.Service == y.Service && x.Flags == y.Flags &&
		x.RegularExpression == y.RegularExpression && x.Replacement == y.Replacement
}
