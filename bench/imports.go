package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
	"portolan/internal/manager/server"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// imports measures (n): imports by /imports, with a request per row. The comparison loads the same rows into the same schema with one
// statement per table.
func (b *bench) imports() error {
	n := 100_000
	if b.big {
		n = 1_000_000
	}
	for _, c := range []struct{ what, into, head, row string }{
		{"addresses", "networks/NETWORK/addresses", "type,address,name,state", "IPv4Address,10.%d.%d.%d,host-%d,STATIC"},
		{"records", "zones/ZONE/resourceRecords", "type,name,text", "TXTRecord,n%d-%d-%d,text %d"},
	} {
		var file strings.Builder
		file.WriteString(c.head + "\n")
		for i := range n {
			fmt.Fprintf(&file, c.row+"\n", 1+i>>16, i>>8&255, i&255, i)
		}
		dir := filepath.Join(b.dir, "import-"+c.what)
		ours, used, err := b.importOver(dir, c.into, file.String(), n)
		if err != nil {
			return err
		}
		before := usedCPU()
		theirs, err := b.loadBare(dir)
		if err != nil {
			return err
		}
		bare := usedCPU() - before
		ratio := float64(theirs) / float64(ours)
		b.add(fmt.Sprintf("(n) import of %d %s", n, c.what), ours.Round(10*time.Millisecond).String(),
			theirs.Round(10*time.Millisecond).String()+" loaded", ratio, "at least 0.3", ratio >= 0.3)
		b.addResult("(n) CPU of a row of "+c.what, fmt.Sprintf("%.1f us, %.1f loaded, ratio %.2f", float64(used.Microseconds())/float64(n),
			float64(bare.Microseconds())/float64(n), float64(bare)/float64(used)))
	}
	return b.importAtOnce()
}

// importAtOnce measures the import of 100,000 addresses in one transaction, as portolan import addresses --at-once runs it, in CPU time.
func (b *bench) importAtOnce() error {
	const n, goal = 100_000, 2 * time.Second
	dir := filepath.Join(b.dir, "import-at-once")
	if _, _, err := b.createNetwork(server.Options{Data: dir}); err != nil {
		return err
	}
	var file strings.Builder
	file.WriteString("address,name,state\n")
	for i := range n {
		fmt.Fprintf(&file, "10.%d.%d.%d,host-%d,STATIC\n", 1+i>>16, i>>8&255, i&255, i)
	}
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	before, start := usedCPU(), time.Now()
	lines, _, err := ipam.ReadAddresses(strings.NewReader(file.String()))
	if err != nil {
		return err
	}
	done, err := ipam.ImportAddresses(context.Background(), model.NewAPI(s), "", lines, ipam.Import{})
	if err == nil && done.Created != n {
		err = fmt.Errorf("the import made %d addresses", done.Created)
	}
	took := usedCPU() - before
	b.add(fmt.Sprintf("(n) import of %d addresses at once, CPU", n), took.Round(10*time.Millisecond).String(), goal.String(),
		took.Seconds()/goal.Seconds(), "at most 1", took <= goal)
	b.addResult("(n) its duration", time.Since(start).Round(10*time.Millisecond).String())
	return err
}

// usedCPU returns the CPU time of this process.
func usedCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// importOver imports a file into a new database. It returns the duration and the CPU time of the manager.
func (b *bench) importOver(dir, into, file string, rows int) (took, used time.Duration, err error) {
	network, _, err := b.createNetwork(server.Options{Data: dir})
	if err != nil {
		return 0, 0, err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return 0, 0, err
	}
	defer m.stop()
	zone := ""
	if strings.Contains(into, "ZONE") {
		configuration, err := firstOf(m, "configurations")
		if err != nil {
			return 0, 0, err
		}
		view, err := post(m.addr, "/api/v2/configurations/"+configuration+"/views", m.token, `{"name":"internal"}`)
		if err != nil {
			return 0, 0, err
		}
		if zone, err = post(m.addr, "/api/v2/views/"+view+"/zones", m.token, `{"type":"Zone","absoluteName":"bench.test"}`); err != nil {
			return 0, 0, err
		}
	}
	before, err := cpuOf(m.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	if took, err = runImport(m, strings.NewReplacer("NETWORK", network, "ZONE", zone).Replace(into), file, rows); err != nil {
		return 0, 0, err
	}
	after, err := cpuOf(m.cmd.Process.Pid)
	return took, after - before, err
}

// runImport imports a file, waits for the end of the import, and returns how long that took.
func runImport(m *child, into, file string, rows int) (time.Duration, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	_ = w.WriteField("fileInfo", `{"contentType":"text/csv","state":"QUEUED","into":"`+into+`"}`)
	part, err := w.CreateFormFile("fileData", "rows.csv")
	if err == nil {
		_, err = io.WriteString(part, file)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return 0, err
	}
	start := time.Now()
	one, err := askImport(m, http.MethodPost, "", w.FormDataContentType(), &body)
	for err == nil && (one.State == "QUEUED" || one.State == "RUNNING") {
		time.Sleep(20 * time.Millisecond)
		one, err = askImport(m, http.MethodGet, fmt.Sprintf("/%d", one.ID), "", nil)
	}
	if err == nil && (one.State != "COMPLETED" || one.Created != rows) {
		err = fmt.Errorf("the import is %+v", one)
	}
	return time.Since(start), err
}

// imported is the status of an import.
type imported struct {
	ID      int64  `json:"id"`
	State   string `json:"state"`
	Created int    `json:"created"`
}

func askImport(m *child, method, path, kind string, body io.Reader) (one imported, err error) {
	rq, err := http.NewRequest(method, "http://"+m.addr+"/api/v2/imports"+path, body)
	if err != nil {
		return one, err
	}
	rq.Header.Set("Authorization", "Bearer "+m.token)
	if kind != "" {
		rq.Header.Set("Content-Type", kind)
	}
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return one, err
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode >= 300 {
		return one, fmt.Errorf("%s %s answers %s", method, path, rs.Status)
	}
	return one, json.NewDecoder(rs.Body).Decode(&one)
}

// loadBare copies the rows of a database into an empty one with the same schema: resources and their history.
func (b *bench) loadBare(dir string) (time.Duration, error) {
	empty := dir + "-bare"
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: empty})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return 0, err
	}
	conn, err := sqlite.OpenConn(filepath.Join(empty, "portolan.db"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := sqlitex.ExecuteTransient(conn, "ATTACH '"+filepath.Join(dir, "portolan.db")+"' AS old", nil); err != nil {
		return 0, err
	}
	start := time.Now()
	for _, statement := range []string{"PRAGMA synchronous = FULL", "BEGIN", "DELETE FROM resource",
		"INSERT INTO resource SELECT * FROM old.resource",
		"INSERT INTO change SELECT * FROM old.change", "COMMIT"} {
		if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
			return 0, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return time.Since(start), nil
}
