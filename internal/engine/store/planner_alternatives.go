package store

import "slices"

// isRange reports whether each of the alternatives is a range in an index. key is true if all are ranges of keys.
func (e Any) isRange() (key, ok bool) {
	key = true
	for _, one := range e {
		c, is := one.(Compare)
		if !is || !c.isRange() {
			return false, false
		}
		key = key && c.Field.isKey()
	}
	return key, len(e) > 0
}

// equalityFields returns the indexed fields that the alternatives compare with a value. ok is false if an alternative has no such field.
func (e Any) equalityFields() (fields []Field, ok bool) {
	for _, one := range e {
		all, ok := one.(All) // an address with its family, or the two ends of a range
		if !ok {
			all = All{one}
		}
		at := slices.IndexFunc(all, func(part Expr) bool {
			c, ok := part.(Compare)
			return ok && c.Field.isIndexed() && c.Op == "eq" && c.Value != nil
		})
		if at < 0 {
			return nil, false
		}
		fields = append(fields, all[at].(Compare).Field)
	}
	return fields, len(fields) > 0
}
