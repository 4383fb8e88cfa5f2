package dnspublish

import "testing"

// The last report of a zone is kept when the zone is followed with other settings, but not for another zone or server.
func TestRememberWhatWasSaid(t *testing.T) {
	before := &followedZone{zone: 1, serverID: 2, version: 3, left: &lastReport{text: "x"}}
	for what, c := range map[string]struct {
		now  followedZone
		said string
	}{
		"another version": {followedZone{zone: 1, serverID: 2, version: 4}, "x"},
		"another zone":    {followedZone{zone: 9, serverID: 2, version: 3}, ""},
		"another server":  {followedZone{zone: 1, serverID: 9, version: 3}, ""},
	} {
		c.now.left = &lastReport{}
		if c.now.remember(nil); c.now.left.text != "" {
			t.Errorf("%s: without one before %q was said", what, c.now.left.text)
		}
		if c.now.remember(before); c.now.left.text != c.said {
			t.Errorf("%s: %q was said", what, c.now.left.text)
		}
	}
}
