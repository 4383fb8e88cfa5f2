package catalog_test

import (
	"crypto/md5" //nolint:gosec // the published sum
	"encoding/hex"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestFiles checks that files are sent in parts, are fetched unchanged, and have checksums.
func TestFiles(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	group := m.ID("/api/v2/configurations/"+configuration+"/tftpGroups", `{"name":"boot"}`)
	at := "/api/v2/tftpGroups/" + group + "/files"
	content := strings.Repeat("0123456789abcdef", 200_000) // three parts and a bit
	body, kind := apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"pxe.0","description":"for old machines"}`}, content)
	made := m.Want(201, "POST", at, body, kind)
	sum := md5.Sum([]byte(content)) //nolint:gosec // as above
	if made.Text("size") != "3200000" || made.Text("md5Checksum") != strings.ToUpper(hex.EncodeToString(sum[:])) ||
		made.Text("description") != "for old machines" {
		t.Errorf("a file is %s", made.Body)
	}
	file := "/api/v2/files/" + made.Text("id")
	if r := m.Want(200, "GET", file, "", "Accept: application/octet-stream"); string(r.Body) != content ||
		!strings.Contains(r.Header.Get("Content-Disposition"), "pxe.0") {
		t.Errorf("it has %d bytes, %s", len(r.Body), r.Header)
	}
	if r := m.Want(200, "GET", file, ""); r.Text("name") != "pxe.0" {
		t.Errorf("the description of the file: %s", r.Body)
	}
	// A field for each part, as older clients have it; a PUT with other content, and one without.
	body, kind = apitest.Form(map[string]string{"type": "TFTPFile", "name": "second", "version": "2"}, "two")
	second := "/api/v2/files/" + m.Want(201, "POST", at, body, kind).Text("id")
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"second"}`}, "three")
	m.Want(200, "PUT", second, body, kind)
	if r := m.Want(200, "GET", second, "", "Accept: application/octet-stream"); string(r.Body) != "three" {
		t.Errorf("its content is %s", r.Body)
	}
	m.Undo(m.LastTransaction())
	if r := m.Want(200, "GET", second, "", "Accept: application/octet-stream"); string(r.Body) != "two" {
		t.Errorf("after the undo its content is %s", r.Body)
	}
	m.Want(200, "PUT", second, `{"type":"TFTPFile","name":"renamed"}`)
	if r := m.Want(200, "GET", second, "", "Accept: application/octet-stream"); string(r.Body) != "two" {
		t.Errorf("after another name its content is %s", r.Body)
	}
	folder := m.ID(at, `{"type":"TFTPFolder","name":"images"}`)
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"empty"}`}, "")
	m.Refused(400, "MissingRequiredField", "fileData", "POST", "/api/v2/files/"+folder+"/files", body, kind)
	m.Refused(400, "MissingRequiredField", "fileData", "POST", at, `{"type":"TFTPFile","name":"x"}`)
	m.Want(406, "GET", "/api/v2/files/"+folder, "", "Accept: application/octet-stream")
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"../x"}`}, "x")
	m.Refused(400, "InvalidResourceFieldValue", "name", "POST", at, body, kind)
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"pxe.0"}`}, "x")
	m.Refused(409, "ResourceAlreadyExists", "pxe.0", "POST", at, body, kind)
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"below"}`}, "x")
	m.Refused(409, "ResourceConflictsWithOther", "cannot contain others", "POST", file+"/files", body, kind)
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFolder","name":"f"}`}, "x")
	m.Refused(400, "UnsupportedResourceFieldValue", "fileData", "POST", at, body, kind)
	m.Refused(400, "InvalidRequestBody", "", "POST", at, "x", "Content-Type: multipart/form-data")
	body, kind = apitest.Form(map[string]string{"fileInfo": `[]`}, "x")
	m.Refused(400, "JsonDeserializationError", "", "POST", at, body, kind)
	m.Refused(415, "UnsupportedMediaType", "", "POST", "/api/v2/configurations", body, kind)
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"tried"}`}, "x")
	m.Want(200, "POST", at, body, kind, "x-portolan-dry-run: true")
	m.Want(204, "DELETE", "/api/v2/tftpGroups/"+group, "")
	m.Want(404, "GET", file, "")
	m.Verify()
}
