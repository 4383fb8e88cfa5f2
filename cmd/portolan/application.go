package main

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"portolan/internal/application"
	"portolan/internal/application/all"
)

// socketDescriptor is where a service point puts the socket of an application that it starts.
const socketDescriptor = 3

type applicationCommand struct {
	Name string `arg:"" help:"The application."`
}

// Run runs an application until the service point ends it.
func (c *applicationCommand) Run(s *session) error {
	if err := noNewPrivileges(); err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	for _, kind := range all.Kinds() {
		if kind.Name != c.Name {
			continue
		}
		file := os.NewFile(socketDescriptor, "socket")
		socket, err := net.FileListener(file)
		if err != nil {
			return usageError{fmt.Errorf("an application is started by portolan agent, which gives it a socket: %w", err)}
		}
		if err := file.Close(); err != nil {
			return err
		}
		return application.Serve(s.ctx, kind, socket, s.log)
	}
	return usageError{fmt.Errorf("there is no application %q", c.Name)}
}

// applicationProgram is the command that runs an application, and versionsOf are those that this binary has.
func applicationProgram() (program []string, err error) {
	if runtime.GOOS == "linux" { // also where the file has been replaced, or may not be reached by another user
		return []string{"/proc/self/exe", "application"}, nil
	}
	path, err := os.Executable()
	return []string{path, "application"}, err
}

func applicationVersions() map[string]string {
	versions := map[string]string{}
	for _, kind := range all.Kinds() {
		versions[kind.Name] = kind.Version
	}
	return versions
}
