package imports

import (
	"embed"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// collectionName is the name of the collection, and of the topic that is touched when an import changes.
const collectionName = "imports"

// logsName is the name of the collection of the logs of imports.
const logsName = "logs"

// registerImports declares imports and their logs, and the tables with the data of imports.
func registerImports(r *resource.Registry) {
	tables := tablesBelow()
	r.Extension(&store.Extension{Name: collectionName, Migrations: migrations, Tables: []store.Table{
		{Name: "import_part", Columns: []string{"import", "number", "data"}, Key: 2},
		{Name: "import_line", Columns: []string{"import", "number", "line"}, Key: 2},
		{Name: "import_met", Columns: []string{"import", "resource", "at"}, Key: 2},
		{Name: "import_starter", Columns: []string{"import", "user_id", "token", "name"}, Key: 1}}})
	r.Collection(resource.Collection{Name: collectionName, Hidden: true, Unlogged: true, Guard: resource.Administration, NoUp: true,
		Content: resource.Contents{Types: append([]string{resourceImport, itemImport}, tables...), Tables: tables,
			TypeOfTable: typeOfTable}}, &ResourceImport{}, &ResponsePolicyItemImport{})
	r.Collection(resource.Collection{Name: logsName, Hidden: true, Unlogged: true, Guard: resource.Administration,
		Parents: []string{collectionName}, Complete: completeLogs}, &ImportLog{})
}

// The types of imports.
const (
	resourceImport = "ResourceImport"
	itemImport     = "ResponsePolicyItemImport"
)

// The states of an import.
const (
	pending    = "PENDING"
	queued     = "QUEUED"
	running    = "RUNNING"
	cancelling = "CANCELLING"
	cancelled  = "CANCELLED"
	completed  = "COMPLETED"
	warned     = "COMPLETED_WITH_WARNINGS"
	erred      = "COMPLETED_WITH_ERRORS"
	failed     = "FAILED"
)

// The values of mode.
const (
	rowByRow     = "ROW_BY_ROW"
	allOrNothing = "ALL_OR_NOTHING"
	dryRun       = "DRY_RUN"
)

// The values of action.
const (
	createOrUpdate = "CREATE_OR_UPDATE"
	createOnly     = "CREATE"
	updateOnly     = "UPDATE"
)

// ImportHead has the fields of every import.
type ImportHead struct {
	schema.Head `head:"createOnly"`
	// ContentType is the media type of the file: text/csv, application/json or application/x-ndjson; for response policies and leases
	// text/plain.
	ContentType string `api:"contentType,createOnly" example:"text/csv"`
	// Size is the size of the file, in bytes.
	Size int64 `api:"size,readOnly"`
	// CreationDateTime is the time at which the file was uploaded.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// StartDateTime is the time at which the import started.
	StartDateTime time.Time `api:"startDateTime,readOnly"`
	// CompletionDateTime is the time at which it ended.
	CompletionDateTime time.Time `api:"completionDateTime,readOnly"`
	// Rows is the number of rows processed so far.
	Rows int64 `api:"rows,readOnly"`
	// Created is the number of rows that created a resource.
	Created int64 `api:"created,readOnly"`
	// Updated is the number of rows that changed a resource.
	Updated int64 `api:"updated,readOnly"`
	// Unchanged is the number of rows that changed nothing.
	Unchanged int64 `api:"unchanged,readOnly"`
	// Refused is the number of rejected rows. The log has the reasons.
	Refused int64 `api:"refused,readOnly"`
	// Message is the reason why the import failed.
	Message string `api:"message,readOnly" length:"4000"`
	// Comment is the comment of the import's changes in the history.
	Comment string `api:"comment,createOnly" length:"2000"`
	// User is the user who started the import. Its rows are applied with the rights of that user.
	User schema.Ref `api:"user,readOnly" ref:"User"`

	// rows is the file, as JSON, if the body of the request contains it; otherwise nil.
	rows []byte
}

// tagPath is the prefix of the path of a tag.
const tagPath = "tags/"

// ResourceImport is an import of a file whose rows create and change resources.
type ResourceImport struct {
	ImportHead `parents:"imports"`
	// State is the progress of the import. Set QUEUED to start it, or CANCELLED to cancel it.
	State string `api:"state,index,notNull" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN" default:"PENDING"`
	// Into is the path of the parent of the resources: a collection, such as networks/100123/addresses, or a resource, such as
	// configurations/100007. Below a resource, each row finds its own parent. If into is empty, each row names its configuration.
	Into string `api:"into,createOnly" example:"configurations/100007"`
	// Mode is ROW_BY_ROW to import each row by itself, ALL_OR_NOTHING to import all rows in one transaction or none, or DRY_RUN to change
	// nothing.
	Mode string `api:"mode,createOnly,notNull" enum:"ROW_BY_ROW|ALL_OR_NOTHING|DRY_RUN" default:"ROW_BY_ROW"`
	// Action is the action for a row. With CREATE_OR_UPDATE, a row whose resource exists changes it, and any other row creates one.
	Action string `api:"action,createOnly,notNull" enum:"CREATE_OR_UPDATE|CREATE|UPDATE" default:"CREATE_OR_UPDATE"`
	// ResourceType is the type of rows without a type, such as IPv4Address; a row with an address of the other family has the type of that
	// family. The columns of a table are then guessed by their headers, which may be those of other programs, and usual states and addresses
	// with a prefix length are accepted. DHCPv4Lease and DHCPv6Lease import the leases of a lease file of ISC dhcpd or Kea.
	ResourceType string `api:"resourceType,createOnly" example:"IPv4Address"`
	// Columns are the fields of the columns of a table, by header. An empty field ignores the column. The other columns are guessed, if
	// resourceType is set. After the start, GET returns the fields of all columns.
	Columns map[string]string `api:"columns,createOnly"`
	// Headers are request headers that apply to every row, such as x-bcn-create-reverse-record.
	Headers map[string]string `api:"headers,createOnly"`
	// Tag is the path of a tag that is set on the resource of each row, such as tags/import. GET returns it by number. The log lists the
	// resources below into that have the tag but are not in the file: an earlier file contained them.
	Tag string `api:"tag,createOnly" example:"tags/import"`
	// Prune deletes the resources that have the tag but are not in the file, with everything in them, unless a row is rejected.
	Prune bool `api:"prune,createOnly"`
	// Deleted is the number of resources deleted by prune.
	Deleted int64 `api:"deleted,readOnly"`
}

// ResponsePolicyItemImport is an import of a file of names into a response policy, one name in each line. It starts at once.
type ResponsePolicyItemImport struct {
	ImportHead `parents:"responsePolicies"`
	// State is the progress of the import.
	State string `api:"state,index,readOnly" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
}

// ImportLog is the log of an import: messages about its rows.
type ImportLog struct {
	schema.Head `head:"readOnly"`
	// Size is the size of the log, in bytes.
	Size int64 `api:"size,readOnly,computed"`
	// ModificationDateTime is the time at which the import ended.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
	// Contents are the lines of the log.
	Contents string `api:"contents,readOnly,computed" length:"8000000"`
}

// kinds are the supported media types of files of resources.
var kinds = []string{csvType, jsonType, linesType}

// BeforeWrite checks the file of a new import, and applies a change of the state.
func (x *ResourceImport) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() { // a change by the runner
		return nil
	}
	if c.IsCreation() {
		accepted := kinds
		if x.importsLeases() {
			accepted = append(accepted[:len(accepted):len(accepted)], textType)
		}
		if err := x.setFileInfo(c, accepted...); err != nil {
			return err
		}
		if x.State != pending && x.State != queued {
			return problem.Field("InvalidEnumValue", "state", "the state of a new import must be %s, or %s to start immediately", pending, queued)
		}
		if x.Mode == allOrNothing && x.Size > maxBytesAtOnce {
			return problem.Field("InvalidFileDataValue", "mode", "an all-or-nothing import must have at most %d MiB", maxBytesAtOnce>>20)
		}
		if _, err := readHeaders(c.API, x.Headers); err != nil {
			return err
		}
		if x.importsLeases() {
			if err := x.checkLeases(); err != nil {
				return err
			}
		} else if _, err := x.newHeadings(c.API); err != nil {
			return err
		}
		if x.Prune && x.Tag == "" {
			return problem.Invalid("prune", "requires tag: tagged resources that no row contains are deleted")
		}
		tag, err := c.API.Tagged(c.Tx, c.Caller, x.Tag)
		if err != nil {
			return err
		}
		if tag != nil { // the tag may be renamed meanwhile
			x.Tag = tagPath + strconv.FormatInt(tag.ID, 10)
		}
		at, err := placeOf(c.API, x.Into)
		if err == nil && x.importsLeases() {
			err = atConfiguration(at, x.Into)
		}
		if err != nil {
			return err
		}
		return at.checkExists(c)
	}
	old, _ := c.Old.(*ResourceImport)
	return x.changeState(c, &x.State, old.State)
}

func (x *ResourceImport) progress() (*ImportHead, *string) { return &x.ImportHead, &x.State }

func (x *ResponsePolicyItemImport) progress() (*ImportHead, *string) { return &x.ImportHead, &x.State }

// changeState applies a requested change of the state.
func (x *ImportHead) changeState(c *resource.Change, state *string, from string) error {
	switch to := *state; {
	case to == from:
	case to == queued && from == pending:
		x.User = schema.Ref{ID: c.Caller.User}
	case to == queued && (from == running || from == cancelling):
		return problem.Field("ImportInProgress", "state", "the import is %s and cannot be started again", from)
	case (to == cancelled || to == cancelling) && (from == pending || from == queued):
		*state, x.CompletionDateTime = cancelled, c.Tx.Now()
	case (to == cancelled || to == cancelling) && (from == running || from == cancelling):
		*state = cancelling
	case slices.Contains([]string{pending, queued, running, cancelling}, from):
		return problem.Field("InvalidEnumValue", "state", "%s cannot be set: use %s to start the import, %s to cancel it", to, queued, cancelled)
	default:
		return problem.Conflict("ImportState", "state: the import has already ended: %s", from)
	}
	return nil
}

// BeforeWrite checks the file.
func (x *ResponsePolicyItemImport) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() || !c.IsCreation() {
		return nil
	}
	x.State = queued
	if x.ContentType == "" {
		x.ContentType = textType
	}
	return x.setFileInfo(c, textType)
}

// setFileInfo sets the fields that describe the file.
func (x *ImportHead) setFileInfo(c *resource.Change, kinds ...string) error {
	name, sentAs, size := "", jsonType, int64(len(x.rows))
	switch {
	case c.Content != nil:
		name, sentAs, size = c.Content.Name, c.Content.Type, c.Content.Size
	case x.rows == nil && slices.Contains(tablesBelow(), x.Type):
		missing := problem.Missing("resources")
		missing.Message += ", or a table as the body (text/csv)"
		return missing
	case x.rows == nil:
		return problem.Missing("fileData")
	}
	if x.Name == "" {
		x.Name = name
	}
	if strings.TrimSpace(x.Name) == "" {
		x.Name = "import"
	}
	if x.ContentType == "" {
		x.ContentType = sentAs
	}
	kind, params, err := mime.ParseMediaType(x.ContentType)
	if err != nil || !slices.Contains(kinds, kind) {
		return problem.Field("UnsupportedImportFileType", "contentType", "%q cannot be imported here; must be one of %s", x.ContentType,
			strings.Join(kinds, ", "))
	}
	if charset := strings.ToLower(params["charset"]); charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return problem.Field("InvalidFileCharacterEncoding", "contentType", "%s is not supported: send the file in UTF-8", charset)
	}
	x.ContentType = kind
	if x.Comment == "" {
		x.Comment = c.Tx.Author().Comment
	}
	x.Size, x.CreationDateTime, x.User = size, c.Tx.Now(), schema.Ref{ID: c.Caller.User}
	return nil
}

// filePart is the number of bytes of a file in one row of the database.
const filePart = 1 << 20

// AfterWrite stores the file, and the user who starts the import.
func (x *ImportHead) AfterWrite(c *resource.Change) error {
	_, state := headAndState(c.New)
	starts := c.IsRequested() && c.IsCreation()
	if c.IsRequested() && !c.IsCreation() {
		_, was := headAndState(c.Old)
		starts = *state == queued && *was != queued
	}
	if starts {
		if err := c.Tx.Write("INSERT INTO import_starter (import, user_id, token, name) VALUES (?, ?, ?, ?) ON CONFLICT (import) DO UPDATE SET"+
			" user_id = excluded.user_id, token = excluded.token, name = excluded.name", x.ID, c.Caller.User, c.Caller.Token,
			c.Caller.Name); err != nil {
			return err
		}
	}
	number := 0
	keep := func(part []byte) error {
		number++
		return c.Tx.Write("INSERT INTO import_part (import, number, data) VALUES (?, ?, ?)", x.ID, number, part)
	}
	if c.Content != nil {
		return c.Content.Parts(filePart, keep)
	}
	for part := range slices.Chunk(x.rows, filePart) {
		if err := keep(part); err != nil {
			return err
		}
	}
	return nil
}

// BeforeDelete deletes the file and the log. It returns an error if the import is running.
func (x *ResourceImport) BeforeDelete(c *resource.Change) error { return x.deleteData(c, x.State) }

// BeforeDelete deletes the file and the log. It returns an error if the import is running.
func (x *ResponsePolicyItemImport) BeforeDelete(c *resource.Change) error {
	return x.deleteData(c, x.State)
}

func (x *ImportHead) deleteData(c *resource.Change, state string) error {
	if (state == running || state == cancelling) && !c.IsCascaded() {
		return problem.BadRequest("ImportInProgress", "%s is being imported: cancel it first", x.Name)
	}
	for _, table := range []string{"import_part", "import_line", "import_starter", "import_met"} {
		if err := c.Tx.Write("DELETE FROM "+table+" WHERE import = ?", x.ID); err != nil {
			return err
		}
	}
	return nil
}

// completeLogs adds the lines and the size to logs.
func completeLogs(tx *store.Tx, rows []*store.Resource) error {
	for _, r := range rows {
		if r.Type != "ImportLog" {
			continue
		}
		var text strings.Builder
		if err := tx.Each(func(scan func(...any) error) error {
			var line string
			err := scan(&line)
			text.WriteString(line + "\n")
			return err
		}, "SELECT line FROM import_line WHERE import = ? ORDER BY number", r.Parent); err != nil {
			return err
		}
		var err error
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"size": strconv.AppendInt(nil, int64(text.Len()), 10),
			"contents": schema.AppendString(nil, text.String())}); err != nil {
			return err
		}
	}
	return nil
}

// headAndState returns the common fields of an import, and its state.
func headAndState(o schema.Object) (head *ImportHead, state *string) {
	if x, ok := o.(interface{ progress() (*ImportHead, *string) }); ok {
		return x.progress()
	}
	return &ImportHead{}, new(string)
}
