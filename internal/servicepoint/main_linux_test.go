package servicepoint

import (
	"fmt"
	"os"
	"testing"
)

// TestMain makes the test program also an application, or a service point that runs updates.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == applicationArgument {
		os.Exit(applicationOf(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == updatesArgument {
		if err := updatesOf(stateHere, releasesHere, rootHere); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
