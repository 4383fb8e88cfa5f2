// Package agenttest runs service points with their applications for tests. The test program itself is the program of the applications:
// TestMain must call Application first.
package agenttest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"portolan/internal/servicepoint"
	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/all"
)

// argument is the first argument of the test program when it is run as an application; the second one is the name.
const argument = "application-of-test"

// socketDescriptor is the file descriptor of the socket that a service point passes to an application.
const socketDescriptor = 3

// Application runs an application and ends the process, if the test program was started as one.
func Application() {
	if len(os.Args) < 3 || os.Args[1] != argument {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := 1
	state, err := application.EnterData()
	for _, kind := range all.Kinds(state) {
		if kind.Name != os.Args[2] || err != nil {
			continue
		}
		socket, err := net.FileListener(os.NewFile(socketDescriptor, "socket"))
		if err == nil {
			err = application.Serve(ctx, kind, socket, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		}
		if err == nil {
			code = 0
		}
	}
	stop()
	os.Exit(code)
}

// Start runs a service point with its applications until the test ends. It enrols at an endpoint with a registration key.
func Start(t testing.TB, endpoint, key string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, kind := range all.Kinds("") {
		versions[kind.Name] = kind.Version
	}
	a, err := servicepoint.New(servicepoint.Options{State: filepath.Join(t.TempDir(), "state"), Endpoint: endpoint, Key: key, Diagnostics: l,
		Stateful: all.Stateful(), Version: "1.2.3", Targets: servicepoint.Targets{Gateway: "off", Ping: "off", HTTP: "off"},
		Program:  []string{program, argument},
		Versions: versions, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
