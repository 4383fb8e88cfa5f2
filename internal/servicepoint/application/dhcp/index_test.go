package dhcp

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestIndex compares an index with a map while slots are added and removed. Few hashes, which are close to each other, make entries
// compete for places, also at the end of a shard.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		want := map[uint32][]slotID{}
		next := slotID(1)
		hashes := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(0x01fffff0, 0x01ffffff), rapid.Uint32()), 1, 12).Draw(t, "hashes")
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			hash := rapid.SampledFrom(hashes).Draw(t, "hash")
			if all := want[hash]; len(all) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				x.remove(hash, all[i])
				want[hash] = slices.Delete(all, i, i+1)
			} else {
				x.add(hash, next)
				want[hash] = append(all, next)
				next++
			}
			for hash, all := range want {
				var got []slotID
				x.each(hash, func(id slotID) bool { got = append(got, id); return true })
				slices.Sort(got)
				if !slices.Equal(got, all) {
					t.Fatalf("%08x: %d, want %d", hash, got, all)
				}
			}
		}
	})
}
