// Package tftppublish publishes the files of TFTP groups to service points: it is the pipeline of the service TFTP for the deployments of
// package dnspublish. A deployment stores the tree of a server as a manifest; the contents of the files are those of package catalog, which
// never deletes one.
package tftppublish

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/catalog"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/wire/content"
	"portolan/internal/wire/filetree"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// keptTrees is the number of revisions of a server that are kept. A service point with an older revision gets the whole content.
const keptTrees = 8

// Register declares the tables, and the rules for servers.
func Register(r *resource.Registry) {
	r.Extension(&store.Extension{Name: "tftp", Migrations: migrations, Tables: []store.Table{
		{Name: "tftp_tree", Columns: []string{"server", "number", "hash", "manifest"}, Key: 2}}})
	r.Rule(resource.Rule{Types: []string{"Server", "HAServer"},
		AfterWrite: func(c *resource.Change) error { // the new service point fetches the content
			before, now := dnspublish.ServicePointOf(c)
			if before == now || c.IsCreation() {
				return nil
			}
			server := schema.HeadOf(c.New).ID
			t, there, err := lastTree(c.Tx, server)
			if err != nil || !there {
				return err
			}
			_, err = t.store(c.Tx, server)
			return err
		},
		BeforeDelete: func(c *resource.Change) error {
			return c.Tx.Write("DELETE FROM tftp_tree WHERE server = ?", schema.HeadOf(c.Old).ID)
		}})
}

// tree is a deployed tree of a server. manifest is the result of filetree.Manifest.Encode.
type tree struct {
	revision content.Revision
	manifest []byte
}

// lastTree returns the tree that a server should serve; there is false if none was deployed.
func lastTree(tx *store.Tx, server int64) (t tree, there bool, err error) {
	return readTree(tx, "server = ? ORDER BY number DESC LIMIT 1", server)
}

func readTree(tx *store.Tx, where string, args ...any) (t tree, there bool, err error) {
	err = tx.QueryRow("SELECT number, hash, manifest FROM tftp_tree WHERE "+where, args...).
		Scan(&t.revision.Number, &t.revision.Hash, &t.manifest)
	if errors.Is(err, sql.ErrNoRows) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("read a deployed tree: %w", err)
	}
	return t, true, nil
}

// store stores the tree as the next revision of a server, and returns its number. The number is higher than any earlier one, even after an
// older backup was restored.
func (t tree) store(tx *store.Tx, server int64) (number int64, err error) {
	if err := tx.QueryRow("SELECT coalesce(max(number), 0) FROM tftp_tree WHERE server = ?", server).Scan(&number); err != nil {
		return 0, err
	}
	number = max(number+1, tx.Now().UnixMilli())
	if err := tx.Write("INSERT INTO tftp_tree (server, number, hash, manifest) VALUES (?, ?, ?, ?)", server, number, t.revision.Hash,
		t.manifest); err != nil {
		return 0, err
	}
	return number, tx.Write("DELETE FROM tftp_tree WHERE server = ? AND number NOT IN (SELECT number FROM tftp_tree WHERE server = ?"+
		" ORDER BY number DESC LIMIT ?)", server, server, keptTrees)
}

// Service deploys TFTP for the deployer of dnspublish.
type Service struct{ API *resource.API }

// Types returns the supported types of deployments: TFTP only has full deployments.
func (Service) Types() []string { return []string{"FullDeployment"} }

// Check accepts every server.
func (Service) Check(*resource.Change, string, *store.Resource) error { return nil }

// prepared is the tree of a server, before it is published.
type prepared struct {
	server int64
	tree
	files filetree.Manifest
	// groups is the number of groups with a role for the server. added counts files that are new or have other contents, and removed those
	// that the server must delete. sent is the number of octets that the server does not have.
	groups, added, removed int
	sent                   int64
}

// Prepare collects the files of the groups that have a role for the server.
func (s Service) Prepare(tx *store.Tx, server int64) (p dnspublish.Prepared, err error) {
	o := &prepared{server: server}
	c := collector{tx: tx, api: s.API, positions: map[string]int64{}}
	var groups []int64
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentRoles"),
		store.LinksTo{Targets: []int64{server}, Field: "server"}}}, func(r *store.Resource) error {
		groups = append(groups, r.Parent)
		return nil
	}); err != nil {
		return p, err
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	o.groups = len(groups)
	for _, group := range groups {
		if err := c.collect(group, ""); err != nil {
			return p, err
		}
	}
	slices.SortFunc(c.files, func(a, b filetree.File) int { return strings.Compare(a.Path, b.Path) })
	o.files = filetree.Manifest{Files: c.files}
	if err := o.files.Check(); err != nil {
		return p, problem.BadRequest("InvalidDeploymentData", "the files cannot be deployed: %v", err)
	}
	if o.manifest, o.revision.Hash, err = o.files.Encode(); err != nil {
		return p, err
	}
	if err := o.compare(tx); err != nil {
		return p, err
	}
	p.Summary, p.Warnings = o.describe()
	p.Commit = o.publish
	return p, nil
}

// compare counts the differences to the tree that was deployed before.
func (o *prepared) compare(tx *store.Tx) error {
	before := filetree.Manifest{}
	t, there, err := lastTree(tx, o.server)
	if err == nil && there {
		before, err = filetree.Decode(t.manifest)
	}
	if err != nil {
		return err
	}
	had, known := map[string]string{}, before.Hashes()
	for _, f := range before.Files {
		had[f.Path] = f.Hash
	}
	for _, f := range o.files.Files {
		if had[f.Path] != f.Hash {
			o.added++
		}
		delete(had, f.Path)
		if !known[f.Hash] {
			known[f.Hash] = true
			o.sent += f.Size
		}
	}
	o.removed = len(had)
	return nil
}

// describe returns the size of the tree and of the change.
func (o *prepared) describe() (message string, warnings []string) {
	if o.groups == 0 {
		warnings = append(warnings, "the server has no TFTP role: it serves no files")
	}
	return fmt.Sprintf("%s, %d of them changed: %d bytes to send, %d removed", plural.Count(len(o.files.Files), "file"),
		o.added, o.sent, o.removed), warnings
}

// publish stores the tree. A tree that is stored already gets a new revision only if the service point serves a revision that this database
// does not know, as after the restore of an older backup.
func (o *prepared) publish(tx *store.Tx, serves string) (number int64, err error) {
	now, there, err := lastTree(tx, o.server)
	if err != nil {
		return 0, err
	}
	if there && now.revision.Hash == o.revision.Hash {
		from, wrong := content.ParseRevision(serves)
		if wrong != nil || from.Number < now.revision.Number || from == now.revision {
			return now.revision.Number, nil //nolint:nilerr // a service point without a readable revision gets the whole content
		}
	}
	return o.store(tx, o.server)
}

// collector collects the files of groups. positions are the ids of the files by path.
type collector struct {
	tx        *store.Tx
	api       *resource.API
	files     []filetree.File
	positions map[string]int64
}

// maxDepth is the maximum depth of folders.
const maxDepth = 64

// collect adds the files of a group or folder. Groups of one server share folders of the same name; a file of the same path is an error.
func (c *collector) collect(parent int64, prefix string) error {
	if strings.Count(prefix, "/") > maxDepth {
		return problem.BadRequest("InvalidDeploymentData", "the folder %.100q is more than %d levels deep", prefix, maxDepth)
	}
	var rows []*store.Resource
	if err := c.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("files"), store.HasParent(parent)}},
		func(r *store.Resource) error {
			rows = append(rows, r.Clone())
			return nil
		}); err != nil {
		return err
	}
	for _, row := range rows {
		path := prefix + row.Name
		o, err := c.api.Object(row)
		if err != nil {
			return err
		}
		x, isFile := o.(*catalog.TFTPFile)
		if !isFile {
			if err := c.collect(row.ID, path+"/"); err != nil {
				return err
			}
			continue
		}
		if err := filetree.CheckPath(path); err != nil {
			return problem.BadRequest("InvalidDeploymentData", "file %s cannot be deployed: %v", problem.Describe(row.ID, row.Name), err)
		}
		if other := c.positions[path]; other != 0 {
			return problem.BadRequest("InvalidDeploymentData", "the files %d and %d of two TFTP groups have the same path %q: rename one of them, "+
				"or remove the role of one group", other, row.ID, path)
		}
		if len(c.files) == filetree.MaxFiles {
			return problem.BadRequest("InvalidDeploymentData", "the server has more than %d files", filetree.MaxFiles)
		}
		c.positions[path] = row.ID
		c.files = append(c.files, filetree.File{Path: path, Size: x.Size, Hash: x.SHA256Checksum})
	}
	return nil
}

// Planner provides the content of the application tftp-service.
type Planner struct{}

// IsBehind reports whether a service point serves an older revision than it should.
func (Planner) IsBehind(tx *store.Tx, servicePoint, serves string) (bool, error) {
	t, there, err := treeOfPoint(tx, servicePoint)
	if err != nil {
		return false, err
	}
	if !there {
		return serves != "" && serves != filetree.EmptyRevision(), nil
	}
	from, err := content.ParseRevision(serves)
	return err != nil || from.Number < t.revision.Number, nil //nolint:nilerr // it serves nothing
}

// treeOfPoint returns the tree that a service point should serve.
func treeOfPoint(tx *store.Tx, servicePoint string) (t tree, there bool, err error) {
	server, err := dnspublish.ServerOfPoint(tx, servicePoint)
	if err != nil || server == nil {
		return t, false, err
	}
	return lastTree(tx, server.ID)
}

// knownHashes returns the hashes of the contents of a revision of a server; nil if the revision is not stored.
func knownHashes(tx *store.Tx, server int64, revision string) (map[string]bool, error) {
	r, wrong := content.ParseRevision(revision)
	if wrong != nil { // such as that of a service point without content
		return nil, nil //nolint:nilerr,nilnil // see above
	}
	t, known, err := readTree(tx, "server = ? AND number = ? AND hash = ?", server, r.Number, r.Hash)
	if err != nil || !known {
		return nil, err
	}
	had, err := filetree.Decode(t.manifest)
	return had.Hashes(), err
}

// Write writes the tree that a service point should serve, with the contents that its revision from does not have. It writes all contents
// if from is empty, or is not stored any more.
func (Planner) Write(tx *store.Tx, servicePoint, from string, out io.Writer) error {
	server, err := dnspublish.ServerOfPoint(tx, servicePoint)
	if err != nil {
		return err
	}
	var to tree
	there := false
	if server != nil {
		if to, there, err = lastTree(tx, server.ID); err != nil {
			return err
		}
	}
	if !there {
		return filetree.WriteEmpty(out)
	}
	files, err := filetree.Decode(to.manifest)
	if err != nil {
		return err
	}
	sent, err := knownHashes(tx, server.ID, from)
	if err != nil {
		return err
	}
	if sent == nil {
		from, sent = "", map[string]bool{}
	}
	w := filetree.NewWriter(out, content.Envelope{From: from, To: to.revision.String()}, to.manifest)
	for _, f := range files.Files {
		if sent[f.Hash] {
			continue
		}
		sent[f.Hash] = true
		w.Blob(f.Hash)
		if err := catalog.FileParts(tx, f.Hash, func(part []byte) error {
			w.Data(part)
			return nil
		}); err != nil {
			return err
		}
	}
	return w.Close()
}
