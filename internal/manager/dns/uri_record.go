package dns

import (
	"net/url"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerURIRecords declares the record type.
func registerURIRecords(r *resource.Registry) {
	declareRecord(r, "URIRecord", &URIRecord{})
}

// URIRecord is a URI for a name (RFC 7553).
type URIRecord struct {
	RecordHead
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"URI"`
	// Priority is the preference; the lowest is tried first.
	Priority int64 `api:"priority,put" min:"0" max:"65535"`
	// Weight distributes the clients among records of equal priority.
	Weight int64 `api:"weight,put" min:"0" max:"65535"`
	// Target is the URI, such as https://www.example.com/path.
	Target string `api:"target,required,nonblank" length:"1000"`
}

// BeforeWrite derives the absolute name and checks the URI.
func (x *URIRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if !IsURI(x.Target) {
		return problem.Invalid("target", "%q is not a URI with a scheme (RFC 3986)", x.Target)
	}
	return nil
}

// MaxURITarget is the maximum number of characters of a target. Zone files do not support longer ones.
const MaxURITarget = 1000

// IsURI reports whether a text is a URI with a scheme and only allowed characters (RFC 3986 section 2).
func IsURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r)
	})
}

// Validate rejects a duplicate record, and a name that is an alias.
func (x *URIRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *URIRecord) SameData(o schema.Object) bool {
	y, ok := o.(*URIRecord)
	return ok && x.Priority == y.Priority && x.Weight == y.Weight && x.Target == y.Target
}
