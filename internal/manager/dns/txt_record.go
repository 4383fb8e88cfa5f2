package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerTXTRecords declares the record type.
func registerTXTRecords(r *resource.Registry) {
	declareRecord(r, "TXTRecord", &TXTRecord{})
}

// TXTRecord is a text (RFC 1035 section 3.3.14).
type TXTRecord struct {
	RecordHead
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"TXT"`
	// Text is the text. It is served in strings of at most 255 bytes.
	Text string `api:"text,nonblank" length:"65000"`
}

// BeforeWrite derives the absolute name and rejects a record without text.
func (x *TXTRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if x.Text == "" && (c.IsCreation() || c.SetFields["text"]) {
		p := problem.BadRequest("MissingRequiredField", "required and missing: text")
		p.Fields = []string{"text"}
		return p
	}
	return nil
}

// Validate rejects a duplicate record, and a name that is an alias.
func (x *TXTRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *TXTRecord) SameData(o schema.Object) bool {
	y, ok := o.(*TXTRecord)
	return ok && x.Text == y.Text
}
