// Package application is what a service point runs: programs of their own, each in a process that the service point supervises. A
// folder below this one is an application; all/ lists them. It knows nothing of managers, nor of the service point that runs it.
package application

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"

	"portolan/internal/problem"
)

// Application is a running application. Its methods may be called by many at a time.
type Application interface {
	// Configure puts a configuration in force, at first and whenever it changes; where it fails, what was in force stays.
	Configure(configuration json.RawMessage) error
	// Health gives what is wrong, in sentences; nothing where all is well.
	Health() []string
	// Diagnostics gives what an engineer on site wants to know, as a JSON object.
	Diagnostics() any
	// Close ends it.
	Close() error
}

// Kind is an application that there is.
type Kind struct {
	// Name is what it is deployed by, Version the one of this binary.
	Name, Version string
	// Check refuses a configuration with a problem that names the field.
	Check func(configuration json.RawMessage) error
	// Claims, which may be nil, gives the addresses and ports of a configuration that no other application may have.
	Claims func(configuration json.RawMessage) []string
	// New makes one, which does nothing before it is configured.
	New func(log *slog.Logger) Application
}

// ErrBroken is an application that is of no use any more after it failed to take a configuration: its process ends, and begins anew.
var ErrBroken = errors.New("the application has to begin anew")

// Decode reads a configuration into a struct. A member that there is not is refused: what is stored acts.
func Decode(configuration json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(configuration))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && !errors.Is(d.Decode(&struct{}{}), io.EOF) {
		err = errors.New("something stands behind the object")
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return problem.Invalid("configuration."+wrong.Field, "must not be a JSON %s", wrong.Value)
	case err != nil:
		return problem.Invalid("configuration", "%v", err)
	}
	return nil
}

// Status is what a process says of itself at its socket.
type Status struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Configured is the SHA-256 of the configuration that is in force; empty before there is one.
	Configured string `json:"configured"`
	// Conditions are what is wrong.
	Conditions  []string        `json:"conditions"`
	Diagnostics json.RawMessage `json:"diagnostics"`
}

// Paths of a process's socket: GET of its status, PUT of a configuration, POST to end it.
const (
	StatusPath        = "/status"
	ConfigurationPath = "/configuration"
	StopPath          = "/stop"
)
