// Command conform tests a running manager against its OpenAPI document. It starts a manager with the sample data on loopback, and
// schemathesis sends valid and invalid requests with a fixed seed. No response may be a server error, have an undocumented status, or
// violate its schema. `make conform` runs it for both databases.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/pgtest"
)

func main() {
	tool := flag.String("schemathesis", "schemathesis", "the program")
	examples := flag.Int("examples", 6, "requests made up for each operation and phase")
	seed := flag.Int("seed", 1, "what they are made up from")
	phases := flag.String("phases", "examples,coverage,fuzzing", "how requests are made up")
	postgres := flag.Bool("postgres", false, "keep the data in PostgreSQL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *tool, *phases, *examples, *seed, *postgres); err != nil {
		fmt.Fprintln(os.Stderr, "conform:", err)
		os.Exit(1)
	}
}

// checks are the checks of schemathesis that must pass. Other checks concern behaviour that spec.md leaves open.
const checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"

// elsewhere matches excluded paths: those that a service point serves, and the change feed, whose response does not end.
const elsewhere = "^/api/v1/(diagnostics|status)$|/changes$"

// similarPaths matches the paths of subcollections that share one implementation for all resources. They are tested for some collections
// only. lists matches the operations that delete from collections. They share one implementation as well, so only some are tested.
const (
	lists        = `^delete-(?!networks$|networks-addresses$|zones$)(?!.*(One|-current)$).+$`
	similarPaths = `^/api/v2/(?!networks|zones|configurations|servers)[a-zA-Z0-9]+/\{collectionId\}/(accessRights|transactions|tags|deploymentOptions|effectiveDeploymentOptions|leases|userDefinedLinks)(/|$)`
)

func run(ctx context.Context, tool, phases string, examples, seed int, postgres bool) (err error) {
	dir, err := os.MkdirTemp("", "portolan-conform-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := server.Options{Programs: all.Programs(),
		Data: dir, Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0", AdminPassword: secrets.New(),
		Version: "conform", MaxLimit: 20, LogLevel: "error",
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Probe: func(context.Context, netip.Addr) (bool, error) { return false, nil }} // no generated address is probed
	if postgres {
		p, err := pgtest.Start()
		if err != nil {
			return err
		}
		defer p.Stop()
		o.Database = p.URL("postgres")
	}
	m, err := server.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := server.Sample(ctx, m.Address); err != nil {
		return err
	}
	if _, err := m.Fleet.Create(ctx, fleet.Wanted{Name: "quay", Endpoint: m.RegistrationEndpoint()}); err != nil {
		return err
	}
	token, err := m.Identity.CreateToken(ctx, identity.Grant{Name: "conform", Role: authz.Administrator})
	if err != nil {
		return err
	}
	if err := writeConfig(filepath.Join(dir, "schemathesis.toml"), m, token); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, tool, "--config-file", filepath.Join(dir, "schemathesis.toml"), "run", m.URL()+"/api/openapi.json", "-H",
		"Authorization: Bearer "+token,
		"--checks", checks, "--phases", phases, "--mode", "all", "--max-examples", strconv.Itoa(examples), "--seed", strconv.Itoa(seed),
		"--generation-deterministic", "--exclude-path-regex",
		strings.Join([]string{elsewhere, similarPaths}, "|"), "--continue-on-failure", "--request-timeout", "30", "--no-color")
	c.Dir, c.Stdout, c.Stderr = dir, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("schemathesis: %w", err)
	}
	var page any
	if err := get(m.URL()+server.Base+"/configurations?limit=1", token, &page); err != nil {
		return fmt.Errorf("read configurations after the run: %w (after 401 or 403, a generated request has revoked the token, and the "+
			"run is not valid)", err)
	}
	return nil
}

// writeConfig writes the IDs of existing resources into the configuration, so that requests get further than 404. It names one resource of
// each collection, for all operations except deletion.
func writeConfig(path string, m *server.Manager, token string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "[[operations]]\ninclude-operation-id-regex = '%s'\nenabled = false\n\n", lists)
	// The token of the run has a small id, which is also among the generated ones.
	b.WriteString("[[operations]]\ninclude-path-regex = '^/api/v2/tokens/'\ninclude-method = [\"DELETE\"]\nenabled = false\n\n")
	for _, c := range m.Address.Collections() {
		var page struct {
			Data []struct {
				ID int64 `json:"id"`
			} `json:"data"`
		}
		if c.Inner {
			continue
		}
		if err := get(m.URL()+server.Base+"/"+c.Path()+"?limit=1&fields=id", token, &page); err != nil {
			return err
		}
		if len(page.Data) == 0 {
			continue
		}
		id := page.Data[0].ID
		fmt.Fprintf(&b, "[[operations]]\ninclude-path-regex = \"^%s/%s/\"\ninclude-method = [\"GET\", \"POST\", \"PUT\", "+
			"\"PATCH\"]\n[operations.parameters]\n\"path.id\" = %d\n\"path.collectionId\" = %d\n\n",
			server.Base, c.Path(), id, id)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// get requests a JSON document.
func get(url, token string, into any) error {
	rq, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	rq.Header.Set("Authorization", "Bearer "+token)
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return err
	}
	defer func() { _ = rs.Body.Close() }() // read completely
	if rs.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, rs.Status)
	}
	return json.NewDecoder(rs.Body).Decode(into)
}
