package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerNAPTRRecords declares the record type.
func registerNAPTRRecords(r *resource.Registry) {
	declareRecord(r, "NAPTRRecord", &NAPTRRecord{})
}

// NAPTRRecord is a rule that rewrites a name (RFC 3403).
type NAPTRRecord struct {
	RecordHead
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"NAPTR"`
	// Order is the position of the rule; the lowest is applied first.
	Order int64 `api:"order,put" min:"0" max:"65535"`
	// Preference is the position among rules of equal order.
	Preference int64 `api:"preference,put" min:"0" max:"65535"`
	// Service is the service and its resolution protocol.
	Service string `api:"service" length:"255"`
	// RegularExpression is the substitution expression.
	RegularExpression string `api:"regularExpression,nonblank" length:"255"`
	// Replacement is the next name. A rule has either a replacement or a regularExpression.
	Replacement string `api:"replacement" length:"1020"`
	// Flags control the interpretation of the rule.
	Flags string `api:"flags" length:"255"`
}

// BeforeWrite derives the absolute name and checks the data.
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
		return problem.Invalid("replacement", "a rule must have either a replacement or a regularExpression (RFC 3403 section 4.1)")
	}
	return nil
}

// Validate rejects a duplicate record, and a name that is an alias.
func (x *NAPTRRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *NAPTRRecord) SameData(o schema.Object) bool {
	y, ok := o.(*NAPTRRecord)
	return ok && x.Order == y.Order && x.Preference == y.Preference && x.Service == y.Service && x.Flags == y.Flags &&
		x.RegularExpression == y.RegularExpression && x.Replacement == y.Replacement
}
