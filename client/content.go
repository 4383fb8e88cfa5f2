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

// Content opens the bytes that a resource of the address API has beside its fields: a file, a backup, a log. resource is its path below
// /api/v2/, such as files/100200; the caller closes what is given.
func (c *Client) Content(ctx context.Context, resource string) (io.ReadCloser, error) {
	return c.open(ctx, "/api/v2/"+resource, "application/octet-stream")
}

// MaxContent is how long a file may be that is sent, in bytes.
const MaxContent = 100 << 20

// CreateWithContent makes a resource that has bytes beside its fields, which the file gives, of at most 100 MiB: collection is the path
// that takes it below /api/v2/, name what the file is called, fields, where not nil, are its fields. The resource is read into answer,
// where that is not nil.
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
		return fmt.Errorf("reading the file: %w", err)
	}
	if n > MaxContent {
		return fmt.Errorf("%s is larger than 100 MiB, the most that is sent", name)
	}
	header := o.header()
	header["Content-Type"] = w.FormDataContentType()
	return c.send(ctx, http.MethodPost, "/api/v2/"+collection, header, &body, answer)
}
