package servicepoint

import (
	"fmt"
	"os"
	"testing"
)

// The program of the tests is also what they start: an application, or a service point that is updated.
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
