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

// collectionName is the name of the collection, and of the topic that is touched when something of an import changes.
const collectionName = "imports"

// logsName is the name of the collection of their logs.
const logsName = "logs"

// registerImports declares imports and their logs, and what is kept of each beside its row.
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

// The ways to import rows.
const (
	rowByRow     = "ROW_BY_ROW"
	allOrNothing = "ALL_OR_NOTHING"
	dryRun       = "DRY_RUN"
)

// What is done with a row.
const (
	createOrUpdate = "CREATE_OR_UPDATE"
	createOnly     = "CREATE"
	updateOnly     = "UPDATE"
)

// ImportHead is what every import has.
type ImportHead struct {
	schema.Head `head:"createOnly"`
	// ContentType is what the file is: text/csv, application/json or application/x-ndjson; of response policies text/plain.
	ContentType string `api:"contentType,createOnly" example:"text/csv"`
	// Size is how long the file is, in bytes.
	Size int64 `api:"size,readOnly"`
	// CreationDateTime is when the file was sent.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// StartDateTime is when the import began.
	StartDateTime time.Time `api:"startDateTime,readOnly"`
	// CompletionDateTime is when it ended.
	CompletionDateTime time.Time `api:"completionDateTime,readOnly"`
	// Rows is how many rows were worked off so far.
	Rows int64 `api:"rows,readOnly"`
	// Created is how many rows made something.
	Created int64 `api:"created,readOnly"`
	// Updated is how many rows changed something.
	Updated int64 `api:"updated,readOnly"`
	// Unchanged is how many rows said what is there already.
	Unchanged int64 `api:"unchanged,readOnly"`
	// Refused is how many rows were refused: the log says why.
	Refused int64 `api:"refused,readOnly"`
	// Message says why the import failed.
	Message string `api:"message,readOnly" length:"4000"`
	// Comment is what the history says of what the rows do.
	Comment string `api:"comment,createOnly" length:"2000"`
	// User is who started it: what the rows say is done within that user's rights.
	User schema.Ref `api:"user,readOnly" ref:"User"`

	// rows are the file, as JSON, where the body of the request has it; nil elsewhere.
	rows []byte
}

// tagPath begins the path of a tag.
const tagPath = "tags/"

// ResourceImport is a file of resources, which are made and changed as its rows say.
type ResourceImport struct {
	ImportHead `parents:"imports"`
	// State is how far it is. QUEUED starts it, CANCELLED ends it.
	State string `api:"state,index,notNull" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN" default:"PENDING"`
	// Into is the path of what the rows belong below: a collection, such as networks/100123/addresses, or a resource in which each finds its
	// own place, such as configurations/100007. Without it each row says its configuration.
	Into string `api:"into,createOnly" example:"configurations/100007"`
	// Mode is how rows are imported: each by itself, all in one transaction or none, or none, to see what would come of them.
	Mode string `api:"mode,createOnly,notNull" enum:"ROW_BY_ROW|ALL_OR_NOTHING|DRY_RUN" default:"ROW_BY_ROW"`
	// Action is what is done with a row: a row whose id is there changes that resource, any other makes one; or one of the two alone.
	Action string `api:"action,createOnly,notNull" enum:"CREATE_OR_UPDATE|CREATE|UPDATE" default:"CREATE_OR_UPDATE"`
	// Headers are those that hold for every row, as for a request of its own, such as x-bcn-create-reverse-record.
	Headers map[string]string `api:"headers,createOnly"`
	// Tag is the path of a tag that the resource of each row gets, such as tags/import. GET shows it by number. The log lists
	// resources below into that have the tag and are in no row: an earlier file had them.
	Tag string `api:"tag,createOnly" example:"tags/import"`
	// Prune deletes these resources, with what lies in them, unless a row is refused.
	Prune bool `api:"prune,createOnly"`
	// Deleted is how many of them were deleted.
	Deleted int64 `api:"deleted,readOnly"`
}

// ResponsePolicyItemImport is a file of names for a response policy, one in each line. It starts at once.
type ResponsePolicyItemImport struct {
	ImportHead `parents:"responsePolicies"`
	// State is how far it is.
	State string `api:"state,index,readOnly" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
}

// ImportLog is what is to be said of an import: what was wrong with which row.
type ImportLog struct {
	schema.Head `head:"readOnly"`
	// Size is how long it is, in bytes.
	Size int64 `api:"size,readOnly,computed"`
	// ModificationDateTime is when the import ended.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
	// Contents are its lines.
	Contents string `api:"contents,readOnly,computed" length:"8000000"`
}

// kinds are the media types of files that are read, by how the rows are written.
var kinds = []string{csvType, jsonType, linesType}

// BeforeWrite takes the file, and does what the new state asks for.
func (x *ResourceImport) BeforeWrite(c *resource.Change) error {
	if !c.Requested() { // what works it off
		return nil
	}
	if c.Creates() {
		if err := x.take(c, kinds...); err != nil {
			return err
		}
		if x.State != pending && x.State != queued {
			return problem.Field("InvalidEnumValue", "state", "a new import is %s, or %s to start at once", pending, queued)
		}
		if x.Mode == allOrNothing && x.Size > maxBytesAtOnce {
			return problem.Field("InvalidFileDataValue", "mode", "a file that is imported all or not at all has at most %d MiB", maxBytesAtOnce>>20)
		}
		if _, err := readHeaders(c.API, x.Headers); err != nil {
			return err
		}
		if x.Prune && x.Tag == "" {
			return problem.Invalid("prune", "goes with tag: what has the tag and is in no row is deleted")
		}
		tag, err := c.API.Tagged(c.Tx, c.Caller, x.Tag)
		if err != nil {
			return err
		}
		if tag != nil { // which may get another name meanwhile
			x.Tag = tagPath + strconv.FormatInt(tag.ID, 10)
		}
		at, err := placeOf(c.API, x.Into)
		if err != nil {
			return err
		}
		return at.there(c)
	}
	old, _ := c.Old.(*ResourceImport)
	return x.move(c, &x.State, old.State)
}

func (x *ResourceImport) progress() (*ImportHead, *string) { return &x.ImportHead, &x.State }

func (x *ResponsePolicyItemImport) progress() (*ImportHead, *string) { return &x.ImportHead, &x.State }

// move does what a new state asks for.
func (x *ImportHead) move(c *resource.Change, state *string, from string) error {
	switch to := *state; {
	case to == from:
	case to == queued && from == pending:
		x.User = schema.Ref{ID: c.Caller.User}
	case to == queued && (from == running || from == cancelling):
		return problem.Field("ImportInProgress", "state", "it is %s: what was started is not started again", from)
	case (to == cancelled || to == cancelling) && (from == pending || from == queued):
		*state, x.CompletionDateTime = cancelled, c.Tx.Now()
	case (to == cancelled || to == cancelling) && (from == running || from == cancelling):
		*state = cancelling
	case slices.Contains([]string{pending, queued, running, cancelling}, from):
		return problem.Field("InvalidEnumValue", "state", "%s is not set: %s starts it, %s ends it", to, queued, cancelled)
	default:
		return problem.Conflict("ImportState", "state: the import has ended: it is %s", from)
	}
	return nil
}

// BeforeWrite takes the file.
func (x *ResponsePolicyItemImport) BeforeWrite(c *resource.Change) error {
	if !c.Requested() || !c.Creates() {
		return nil
	}
	x.State = queued
	if x.ContentType == "" {
		x.ContentType = textType
	}
	return x.take(c, textType)
}

// take notes what the file is.
func (x *ImportHead) take(c *resource.Change, kinds ...string) error {
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
		return problem.Field("UnsupportedImportFileType", "contentType", "%q is not imported here; these are: %s", x.ContentType,
			strings.Join(kinds, ", "))
	}
	if charset := strings.ToLower(params["charset"]); charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return problem.Field("InvalidFileCharacterEncoding", "contentType", "%s is not read: send the file in UTF-8", charset)
	}
	x.ContentType = kind
	if x.Comment == "" {
		x.Comment = c.Tx.Author().Comment
	}
	x.Size, x.CreationDateTime, x.User = size, c.Tx.Now(), schema.Ref{ID: c.Caller.User}
	return nil
}

// filePart is how many bytes of a file are in one row.
const filePart = 1 << 20

// AfterWrite keeps the file, and who starts the import.
func (x *ImportHead) AfterWrite(c *resource.Change) error {
	_, state := parts(c.New)
	starts := c.Requested() && c.Creates()
	if c.Requested() && !c.Creates() {
		_, was := parts(c.Old)
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

// BeforeDelete takes the file and the log away, unless they are being used.
func (x *ResourceImport) BeforeDelete(c *resource.Change) error { return x.drop(c, x.State) }

// BeforeDelete takes the file and the log away, unless they are being used.
func (x *ResponsePolicyItemImport) BeforeDelete(c *resource.Change) error { return x.drop(c, x.State) }

func (x *ImportHead) drop(c *resource.Change, state string) error {
	if (state == running || state == cancelling) && !c.GoesAlong() {
		return problem.BadRequest("ImportInProgress", "%s is being imported: cancel it first", x.Name)
	}
	for _, table := range []string{"import_part", "import_line", "import_starter", "import_met"} {
		if err := c.Tx.Write("DELETE FROM "+table+" WHERE import = ?", x.ID); err != nil {
			return err
		}
	}
	return nil
}

// completeLogs puts the lines into logs.
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
