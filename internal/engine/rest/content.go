package rest

import (
	"crypto/md5" //nolint:gosec // the API publishes MD5 sums of files; nothing relies on them
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// The parts of a multipart body: the members of the resource as JSON, and the file. Members may also be sent as one part for each field.
const (
	infoPart = "fileInfo"
	dataPart = "fileData"
)

// maxContent is the maximum length of a file, maxInfo that of another part, both in bytes.
const (
	maxContent = 100 << 20
	maxInfo    = 64 << 10
	maxParts   = 32
)

const multipartForm = "multipart/form-data"

// multiPart reports whether a request has a multipart body, and its target accepts one.
func (rq *request) multiPart(a *Server) bool {
	if rq.Method != http.MethodPost && rq.Method != http.MethodPut {
		return false
	}
	kind, _, err := mime.ParseMediaType(rq.Header.Get("Content-Type"))
	return err == nil && kind == multipartForm && a.acceptsContent(rq.Target)
}

// tables returns the types that the request's table may create; nil if the request is not a plain table.
func (rq *request) tables(a *Server) (types []string) {
	kind, _, err := mime.ParseMediaType(rq.Header.Get("Content-Type"))
	if err != nil || kind != asCSV.String() || rq.Method != http.MethodPost {
		return nil
	}
	return a.tablesOf(rq.Target)
}

// tablesOf returns the types that a plain table creates below a resource.
func (a *Server) tablesOf(t resource.Target) (types []string) {
	if t.Sub == nil {
		return nil
	}
	for _, made := range a.PostTypes(t.Sub) {
		if slices.Contains(a.CollectionOf(made).Content.Tables, made.Name) {
			types = append(types, made.Name)
		}
	}
	return types
}

// readTable reads a body that is a table into a temporary file. write deletes the file after the request. The option headers apply to
// each row.
func (rq *request) readTable(w http.ResponseWriter, a *Server, types []string) error {
	if encoding := rq.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return compressedBody()
	}
	if err := rq.rowsNotTried(); err != nil {
		return err
	}
	if err := rq.readContent(http.MaxBytesReader(w, rq.Body, maxContent+1), "", rq.Header.Get("Content-Type")); err != nil {
		return err
	}
	t := a.TypeNamed(types[0])
	if _, err := rq.content.File.Seek(0, io.SeekStart); err != nil {
		return err
	}
	name, err := a.CollectionOf(t).Content.TypeOfTable(rq.content.File, types)
	if err != nil {
		return err
	}
	rq.members = map[string]json.RawMessage{"type": schema.AppendString(nil, name)}
	if err := rq.keepHeaders(a); err != nil {
		return err
	}
	rq.raw = append(rq.raw, rq.content.SHA256[:]...)
	return nil
}

// rowsNotTried refuses the dry run of an import, because it would not check the rows.
func (rq *request) rowsNotTried() error {
	if !dryRun(rq.Request) {
		return nil
	}
	return problem.BadRequest("InvalidHeaderValue",
		"%s: is not accepted here; to preview the rows, create an import with the mode DRY_RUN (POST /imports)", dryRunHeader)
}

// keepHeaders stores the option headers as a member of the body, because they apply to rows that are imported later.
func (rq *request) keepHeaders(a *Server) (err error) {
	headers := map[string]string{}
	for _, h := range a.Headers {
		if text := rq.Header.Get(h.Name); text != "" {
			headers[h.Name] = text
		}
	}
	if len(headers) == 0 {
		return nil
	}
	rq.members["headers"], err = json.Marshal(headers)
	rq.raw = append(rq.raw, rq.members["headers"]...)
	return err
}

// acceptsContent reports whether resources that the target creates or changes may have content.
func (a *Server) acceptsContent(t resource.Target) bool {
	return slices.ContainsFunc(a.TargetTypes(t), func(x *schema.Type) bool {
		return slices.Contains(a.CollectionOf(x).Content.Types, x.Name)
	})
}

// readParts reads a multipart body: the members, and the content into a temporary file. write deletes the file after the request.
func (rq *request) readParts(w http.ResponseWriter, a *Server) (err error) {
	rq.Body = http.MaxBytesReader(w, rq.Body, maxContent+(1<<20))
	parts, err := rq.MultipartReader()
	if err != nil {
		return problem.BadRequest("InvalidRequestBody", "the body must be multipart: %v", err)
	}
	rq.members = map[string]json.RawMessage{}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n == maxParts {
			return partProblem(err, "the body cannot be read, or has more than %d parts", maxParts)
		}
		if err := rq.readPart(part); err != nil {
			return err
		}
	}
	if rq.raw, err = json.Marshal(rq.members); err != nil || rq.content == nil {
		return err
	}
	rq.raw = append(rq.raw, rq.content.SHA256[:]...)
	for _, x := range a.TargetTypes(rq.Target) {
		if check := a.CollectionOf(x).Content.Check; check != nil {
			rq.content.Checked, err = check(rq.Context(), rq.content, a.API)
			return err
		}
	}
	return nil
}

func (rq *request) readPart(part *multipart.Part) error {
	name := part.FormName()
	if name == dataPart {
		if rq.content != nil {
			return problem.Field("DuplicateFieldValue", dataPart, "is given twice")
		}
		return rq.readContent(part, part.FileName(), part.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(part, maxInfo+1))
	if err != nil || len(text) > maxInfo {
		return partProblem(err, "%s: must have at most %d bytes", name, maxInfo)
	}
	if name == infoPart {
		members, err := schema.ParseObject(text, StandardBody.Members)
		if err != nil {
			return err
		}
		for name, raw := range members {
			rq.members[name] = raw
		}
		return nil
	}
	rq.members[name] = schema.AppendString(nil, string(text))
	return nil
}

// partProblem returns the problem for a part that cannot be read.
func partProblem(err error, format string, args ...any) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "the file is larger than %s", size(maxContent))
	}
	return problem.BadRequest("InvalidRequestBody", format, args...)
}

// readContent copies a sent file into a temporary file, and computes its checksums.
func (rq *request) readContent(part io.Reader, name, kind string) (err error) {
	file, err := os.CreateTemp("", "portolan-content-*")
	if err != nil {
		return err
	}
	rq.content = &resource.Content{File: file, Name: name, Type: kind}
	// The file disappears if the manager is killed. On systems that cannot delete an open file, Drop deletes it.
	_ = os.Remove(file.Name())
	one, other := md5.New(), sha256.New() //nolint:gosec // as above
	n, err := io.Copy(io.MultiWriter(file, one, other), io.LimitReader(part, maxContent+1))
	if err != nil {
		return partProblem(err, "%s could not be read completely; send it again", dataPart)
	}
	if n > maxContent {
		return problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "the file is larger than %s", size(maxContent))
	}
	rq.content.Size = n
	rq.content.MD5, rq.content.SHA256 = [16]byte(one.Sum(nil)), [32]byte(other.Sum(nil))
	return nil
}

// sendContent answers with the content of a resource. It reads each part in a transaction of its own, so that a slow client blocks
// nothing. This is safe because contents are immutable.
func (a *Server) sendContent(w http.ResponseWriter, r *http.Request, row *store.Resource) error {
	c := a.Collection(row.Collection)
	if c.Content.Open == nil || !slices.Contains(c.Content.Types, row.Type) {
		return problem.New(http.StatusNotAcceptable, "NotAcceptable", "Accept: resources of type %s have no content", row.Type)
	}
	long, part, err := c.Content.Open(row, a.API)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", asBytes.String())
	w.Header().Add("Vary", "Accept")
	w.Header().Set("Content-Length", strconv.FormatInt(long, 10))
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": row.Name}))
	if r.Method == http.MethodHead {
		return nil
	}
	for number := 1; ; number++ {
		var data []byte
		if err := a.Store.View(r.Context(), func(tx *store.Tx) (err error) {
			data, err = part(tx, number)
			return err
		}); err != nil {
			return err
		}
		if data == nil {
			return nil
		}
		if _, err := w.Write(data); err != nil {
			return nil //nolint:nilerr // the client disconnected
		}
	}
}
