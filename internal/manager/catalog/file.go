package catalog

import (
	"embed"
	"encoding/hex"
	"fmt"
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

// TFTPGroup is a group of files that machines download when they start.
type TFTPGroup struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration of the group.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
}

// TFTPFolder is a folder of files and folders.
type TFTPFolder struct {
	schema.Head `head:"required,nonblank" parents:"tftpGroups|files" unique:"siblings"`
	// Configuration is the configuration of the folder.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
}

// TFTPFile is a file. It is uploaded as multipart/form-data and downloaded as application/octet-stream.
type TFTPFile struct {
	schema.Head `head:"required,nonblank" parents:"tftpGroups|files" unique:"siblings"`
	// Configuration is the configuration of the file.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Version is the version of the file, as the user states it.
	Version string `api:"version"`
	// Description is a free text about the file.
	Description string `api:"description,search" length:"4000"`
	// Size is the size of the file, in bytes.
	Size int64 `api:"size,readOnly"`
	// MD5Checksum is the MD5 checksum, in hexadecimal.
	MD5Checksum string `api:"md5Checksum,readOnly"`
	// SHA256Checksum is the SHA-256 checksum, in hexadecimal.
	SHA256Checksum string `api:"sha256Checksum,readOnly"`
}

// BeforeWrite sets the size and the checksums from the uploaded content. A new file without content is rejected.
func (x *TFTPFile) BeforeWrite(c *resource.Change) error {
	if err := checkFile(c, x.Name, x.Parent); err != nil {
		return err
	}
	if c.Content == nil {
		if c.IsCreation() {
			return problem.Missing("fileData")
		}
		return nil
	}
	x.Size = c.Content.Size
	x.MD5Checksum = strings.ToUpper(hex.EncodeToString(c.Content.MD5[:]))
	x.SHA256Checksum = hex.EncodeToString(c.Content.SHA256[:])
	return nil
}

// BeforeWrite rejects a name that is not valid for a folder, and content.
func (x *TFTPFolder) BeforeWrite(c *resource.Change) error {
	if c.Content != nil {
		return problem.Field("UnsupportedResourceFieldValue", "fileData", "a folder cannot have content")
	}
	return checkFile(c, x.Name, x.Parent)
}

// checkFile rejects a name that contains a path, and a parent that is a file.
func checkFile(c *resource.Change, name string, parent int64) error {
	if name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return problem.Invalid("name", "%q is not a valid file name: it points outside the folder", name)
	}
	above, err := c.Tx.Head(parent)
	if err == nil && above.Type == "TFTPFile" {
		err = problem.Conflict("ResourceConflictsWithOther", "%s is a file and cannot contain others", problem.Describe(above.ID, above.Name))
	}
	return err
}

// filePartSize is the number of bytes of a file in one row.
const filePartSize = 1 << 20

// AfterWrite stores the content. Files with the same content share it. The previous content stays in the database, so that an undo finds
// it.
func (x *TFTPFile) AfterWrite(c *resource.Change) error {
	if c.Content == nil {
		return nil
	}
	var there bool
	if err := c.Tx.QueryRow("SELECT EXISTS (SELECT 1 FROM file_part WHERE hash = ?)", x.SHA256Checksum).Scan(&there); err != nil || there {
		return err
	}
	number := 0
	return c.Content.Parts(filePartSize, func(part []byte) error {
		number++
		return c.Tx.Write("INSERT INTO file_part (hash, number, data) VALUES (?, ?, ?)", x.SHA256Checksum, number, part)
	})
}

// openFile returns the size of a file and a function that returns its parts. Parts are numbered from 1; after the last one the function
// returns nil.
func openFile(row *store.Resource, a *resource.API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error) {
	o, err := a.Object(row)
	if err != nil {
		return 0, nil, err
	}
	x, _ := o.(*TFTPFile)
	parts := int((x.Size + filePartSize - 1) / filePartSize)
	return x.Size, func(tx *store.Tx, number int) (data []byte, err error) {
		if number > parts {
			return nil, nil
		}
		err = tx.QueryRow("SELECT data FROM file_part WHERE hash = ? AND number = ?", x.SHA256Checksum, number).Scan(&data)
		return data, err
	}, nil
}

// FileParts calls fn for the parts of the content with a SHA-256 checksum, in order.
func FileParts(tx *store.Tx, checksum string, fn func(part []byte) error) error {
	found := false
	if err := tx.Each(func(scan func(...any) error) error {
		var data []byte
		if err := scan(&data); err != nil {
			return err
		}
		found = true
		return fn(data)
	}, "SELECT data FROM file_part WHERE hash = ? ORDER BY number", checksum); err != nil {
		return fmt.Errorf("read the content of a file: %w", err)
	}
	if !found {
		return fmt.Errorf("the content %.16s… is not in the database", checksum)
	}
	return nil
}
