package dnspublish

import "testing"

// TestRememberReport checks that the last report of a zone is kept when the zone is followed with other settings, but not for another zone
// or server.
func TestRememberReport(t *testing.T) {
	before := &followedZone{zone: 1, serverID: 2, version: 3, lastRejected: &lastReport{text: "x"}}
	for what, c := range map[string]struct {
		now  followedZone
		want string
	}{
		"another version": {followedZone{zone: 1, serverID: 2, version: 4}, "x"},
		"another zone":    {followedZone{zone: 9, serverID: 2, version: 3}, ""},
		"another server":  {followedZone{zone: 1, serverID: 9, version: 3}, ""},
	} {
		c.now.lastRejected = &lastReport{}
		if c.now.remember(nil); c.now.lastRejected.text != "" {
			t.Errorf("%s: without a previous rejection the message is %q", what, c.now.lastRejected.text)
		}
		if c.now.remember(before); c.now.lastRejected.text != c.want {
			t.Errorf("%s: %q was said", what, c.now.lastRejected.text)
		}
	}
}
