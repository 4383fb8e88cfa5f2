package catalog

import (
	"embed"
	"encoding/hex"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var fileMigrations embed.FS

// registerTFTP declares the collections of TFTP groups, and of the files and folders in them.
func registerTFTP(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "tftpGroups", Parents: []string{"configurations"}}, &TFTPGroup{})
	r.Collection(resource.Collection{Name: "files", Content: resource.Contents{Types: []string{"TFTPFile"}, Open: openFile}},
		&TFTPFile{}, &TFTPFolder{})
	r.Extension(&store.Extension{Name: "files", Migrations: fileMigrations, Tables: []store.Table{
		{Name: "file_part", Columns: []string{"hash", "number", "data"}, Key: 2}}})
}

// TFTPGroup holds the files that machines load when they start.
type TFTPGroup struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration the group lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
}

// TFTPFolder holds files and folders.
type TFTPFolder struct {
	schema.Head `head:"required,nonblank" parents:"tftpGroups|files" unique:"siblings"`
	// Configuration is the configuration it lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
}

// TFTPFile is a file, which is sent and fetched as it is (multipart/form-data, application/octet-stream).
type TFTPFile struct {
	schema.Head `head:"required,nonblank" parents:"tftpGroups|files" unique:"siblings"`
	// Configuration is the configuration it lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Version is which version of it this is.
	Version string `api:"version"`
	// Description says what it is.
	Description string `api:"description,search" length:"4000"`
	// Size is how long it is, in bytes.
	Size int64 `api:"size,readOnly"`
	// MD5Checksum is its MD5 sum, in hexadecimal.
	MD5Checksum string `api:"md5Checksum,readOnly"`
	// SHA256Checksum is its SHA-256 sum, in hexadecimal.
	SHA256Checksum string `api:"sha256Checksum,readOnly"`
}

// BeforeWrite takes the content that came along.
func (x *TFTPFile) BeforeWrite(c *resource.Change) error {
	if err := checkFile(c, x.Name, x.Parent); err != nil {
		return err
	}
	if c.Content == nil {
		if c.Creates() {
			return problem.Missing("fileData")
		}
		return nil
	}
	x.Size = c.Content.Size
	x.MD5Checksum = strings.ToUpper(hex.EncodeToString(c.Content.MD5[:]))
	x.SHA256Checksum = hex.EncodeToString(c.Content.SHA256[:])
	return nil
}

// BeforeWrite refuses a name that is no name of a folder, and content.
func (x *TFTPFolder) BeforeWrite(c *resource.Change) error {
	if c.Content != nil {
		return problem.Field("UnsupportedResourceFieldValue", "fileData", "a folder has no content")
	}
	return checkFile(c, x.Name, x.Parent)
}

// checkFile refuses a name that would lead elsewhere, and a parent that is a file.
func checkFile(c *resource.Change, name string, parent int64) error {
	if name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return problem.Invalid("name", "%q is no name of a file: it leads elsewhere", name)
	}
	above, err := c.Tx.Head(parent)
	if err == nil && above.Type == "TFTPFile" {
		err = problem.Conflict("ResourceConflictsWithOther", "%s is a file, and holds none", problem.About(above.ID, above.Name))
	}
	return err
}

// filePart is how many bytes of a file are in one row.
const filePart = 1 << 20

// AfterWrite keeps the content, once for all files that have the same. What a file had before stays for an undo.
func (x *TFTPFile) AfterWrite(c *resource.Change) error {
	if c.Content == nil {
		return nil
	}
	var there bool
	if err := c.Tx.QueryRow("SELECT EXISTS (SELECT 1 FROM file_part WHERE hash = ?)", x.SHA256Checksum).Scan(&there); err != nil || there {
		return err
	}
	number := 0
	return c.Content.Parts(filePart, func(part []byte) error {
		number++
		return c.Tx.Write("INSERT INTO file_part (hash, number, data) VALUES (?, ?, ?)", x.SHA256Checksum, number, part)
	})
}

// openFile gives the parts of a file's content, one after the other; nil behind the last.
func openFile(row *store.Resource, a *resource.API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error) {
	o, err := a.Object(row)
	if err != nil {
		return 0, nil, err
	}
	x, _ := o.(*TFTPFile)
	parts := int((x.Size + filePart - 1) / filePart)
	return x.Size, func(tx *store.Tx, number int) (data []byte, err error) {
		if number > parts {
			return nil, nil
		}
		err = tx.QueryRow("SELECT data FROM file_part WHERE hash = ? AND number = ?", x.SHA256Checksum, number).Scan(&data)
		return data, err
	}, nil
}
