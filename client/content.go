package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
)

// Content opens the content of a resource of the address API: a file, a backup or a log. resource is its path below /api/v2/, such as
// files/100200. The caller closes the reader.
func (c *Client) Content(ctx context.Context, resource string) (io.ReadCloser, error) {
	return c.open(ctx, AddressPath+resource, "application/octet-stream")
}

// MaxContent is the maximum size of an uploaded file, in bytes.
const MaxContent = 100 << 20

// CreateWithContent creates a resource with content of at most MaxContent bytes. collection is a path below /api/v2/, name is the file
// name, and file contains the content. fields, unless nil, are the fields of the resource. The created resource is decoded into answer
// unless that is nil.
func (c *Client) CreateWithContent(ctx context.Context, collection, name string, file io.Reader, fields any, o ChangeOptions,
	answer any,
) error {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if fields != nil {
		info, err := json.Marshal(fields)
		if err == nil {
			err = w.WriteField("fileInfo", string(info))
		}
		if err != nil {
			return err
		}
	}
	part, err := w.CreateFormFile("fileData", name)
	n := int64(0)
	if err == nil {
		n, err = io.Copy(part, io.LimitReader(file, MaxContent+1))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if n > MaxContent {
		return fmt.Errorf("%s is larger than 100 MiB, the most that is sent", name)
	}
	header := o.header()
	header["Content-Type"] = w.FormDataContentType()
	return c.send(ctx, http.MethodPost, AddressPath+collection, header, &body, answer)
}
