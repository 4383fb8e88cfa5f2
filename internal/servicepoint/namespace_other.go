//go:build !linux

package servicepoint

import (
	"errors"
	"os/exec"
)

// startWithin starts a command. This system has no network namespaces.
func startWithin(namespace string, c *exec.Cmd) error {
	if namespace != "" {
		return errors.New("network namespace " + namespace + ": this system has none")
	}
	return c.Start()
}
