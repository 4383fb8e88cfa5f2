package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"portolan/client"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
)

const password = "a password for tests"

func start(t *testing.T) (*server.Manager, *client.Client) {
	t.Helper()
	m, err := server.Start(t.Context(), server.Options{Programs: all.Programs(),
		Data: t.TempDir(), Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0",
		AdminPassword: password,
		Version:       "test", LogLevel: "error", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, &client.Client{Base: m.URL(), User: "admin", Password: password}
}

func TestAddressAPI(t *testing.T) {
	_, c := start(t)
	ctx := context.Background()
	var configuration struct{ ID int64 }
	if err := c.Create(ctx, "configurations", map[string]any{"name": "lab"}, &configuration); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("configurations/%d", configuration.ID)
	for i := range 7 {
		if err := c.Create(ctx, at+"/views", map[string]any{"name": fmt.Sprint("v", i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	page, err := c.List(ctx, at+"/views", client.Query{Limit: 2, Offset: 1, Total: true, OrderBy: "desc(name)", Filter: "name:ne('v3')",
		Fields: "name"})
	if err != nil || page.Count != 2 || *page.TotalCount != 6 || string(page.Data[0]) != `{"name":"v5"}` {
		t.Errorf("the page is %+v, %v", page, err)
	}
	n := 0
	if err := c.All(ctx, at+"/views", client.Query{Limit: 3}, func(json.RawMessage) error { n++; return nil }); err != nil || n != 7 {
		t.Errorf("all are %d, %v", n, err)
	}
	var changed struct{ Description string }
	if err := c.Change(ctx, at, map[string]any{"description": "d"}, &changed); err != nil || changed.Description != "d" {
		t.Errorf("changed to %+v, %v", changed, err)
	}
	if err := c.Delete(ctx, at); err != nil {
		t.Error(err)
	}
	err = c.Get(ctx, at, nil)
	var e *client.Error
	if !errors.As(err, &e) || e.Status != 404 || e.Code != "ResourceNotFound" || e.Message == "" {
		t.Errorf("what is gone gives %v", err)
	}
}

func TestFleetAPI(t *testing.T) {
	m, c := start(t)
	ctx := context.Background()
	if _, err := c.Instances(ctx, ""); err == nil {
		t.Error("the fleet API takes Basic credentials")
	}
	id, secret, err := m.Identity.CreateKeySet(ctx, identity.Grant{Name: "t", Role: authz.Administrator})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exchange(ctx, id, secret); err != nil {
		t.Fatal(err)
	}
	created, err := c.CreateInstance(ctx, "quay & dock", "d", 1)
	if err != nil || created.RegistrationKey == "" {
		t.Fatalf("%+v, %v", created, err)
	}
	all, err := c.Instances(ctx, "quay & dock")
	if err != nil || len(all) != 1 || all[0].ID != created.FleetInstanceID || all[0].Description != "d" {
		t.Errorf("%+v, %v", all, err)
	}
	if one, err := c.Instance(ctx, created.FleetInstanceID); err != nil || one.Status != "WAITING_FOR_PROVISIONING" {
		t.Errorf("%+v, %v", one, err)
	}
	if err := c.DeleteInstance(ctx, created.FleetInstanceID); err != nil {
		t.Error(err)
	}
}
