package dnspublish

import (
	"maps"
	"testing"
)

// TestFramesAreStored checks that a stored frame is read as it was, and that a damaged one is not known.
func TestFramesAreStored(t *testing.T) {
	f := frame{whole: 7, names: map[string]uint64{"example.": 1, `a\.b.example.`: 1 << 63}}
	data := f.encode()
	got := decodeFrame(data)
	if got.whole != f.whole || !maps.Equal(got.names, f.names) {
		t.Errorf("%v is read as %v", f, got)
	}
	if names, whole := f.changedNames(got); len(names) > 0 || whole {
		t.Errorf("an equal frame differs at %v, %v", names, whole)
	}
	for end := range data {
		if names, whole := f.changedNames(decodeFrame(data[:end])); !whole && len(names) == 0 {
			t.Errorf("the first %d of %d octets are read as the whole frame", end, len(data))
		}
	}
}
