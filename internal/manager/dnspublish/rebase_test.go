package dnspublish_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
)

// TestPublicationOverLaterOnes checks that a deployment that commits after later ones keeps their names. It queues these names only if
// they may come from an older snapshot, and many of them do not delay single changes.
func TestPublicationOverLaterOnes(t *testing.T) {
	v := start(t).liveView("a.test")
	made := 0
	for _, test := range []struct {
		what    string
		name    string // the name that the earlier deployment changes
		changes int    // the number of names that the later ones change
		known   bool
		want    map[int]int
		kept    bool
	}{
		{"another name from a snapshot of unknown age", "early", 1, false, map[int]int{0: 1}, true},
		{"another name from a later snapshot", "early", 1, true, map[int]int{}, true},
		{"many names from snapshots of unknown age", "early", 300, false, map[int]int{1: 300}, true},
		{"the same name from a later snapshot", "n303", 1, true, map[int]int{}, false},
	} {
		later := func() {
			var changes []string
			for range test.changes {
				changes = append(changes, fmt.Sprintf(`{"method":"POST","path":"%s","body":{"type":"TXTRecord","name":"n%d","text":"later"}}`,
					"zones/"+v.first+"/resourceRecords", made+1))
				made++
			}
			v.Want(200, "POST", "/api/v2/batch", `{"changes":[`+strings.Join(changes, ",")+`]}`)
			v.deployed()
		}
		lanes, kept, err := dnspublish.PublishOver(t.Context(), v.Address, apitest.Number(t, v.configuration), test.name, test.known, later)
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		if !maps.Equal(lanes, test.want) {
			t.Errorf("%s: the queue has %v entries by lane, want %v", test.what, lanes, test.want)
		}
		if kept != test.kept {
			t.Errorf("%s: the record of the earlier deployment is deployed: %v", test.what, kept)
		}
		v.deployed()
	}
}
