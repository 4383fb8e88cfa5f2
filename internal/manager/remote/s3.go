package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3Dir is a bucket of an object store, or the objects with a prefix in it.
type s3Dir struct {
	client         *minio.Client
	bucket, prefix string
	end            func()
}

// s3Endpoint returns the address of an object store, and whether it uses TLS. Without TLS only loopback addresses are allowed.
func s3Endpoint(host string) (address string, secure bool, err error) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return "", false, fmt.Errorf("must be HOST, HOST:PORT or https://HOST:PORT, not %q", host)
	}
	if a, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
		return "", false, errors.New("http sends the database unencrypted: use https")
	}
	return u.Host, u.Scheme == "https", nil
}

// splitDirectory returns the bucket of a directory, and the prefix of its object names.
func splitDirectory(directory string) (bucket, prefix string) {
	bucket, prefix, _ = strings.Cut(strings.Trim(directory, "/"), "/")
	if prefix != "" {
		prefix += "/"
	}
	return bucket, prefix
}

// newS3 returns a client of an object store.
func newS3(to Target) (*s3Dir, error) {
	address, secure, err := s3Endpoint(to.Host)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: connect, TLSHandshakeTimeout: idleTimeout,
		ResponseHeaderTimeout: idleTimeout, ForceAttemptHTTP2: true}
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(to.User, to.Password, ""), Secure: secure,
		Transport: transport, MaxRetries: 2})
	if err != nil {
		return nil, err
	}
	bucket, prefix := splitDirectory(to.Directory)
	return &s3Dir{client: client, bucket: bucket, prefix: prefix, end: transport.CloseIdleConnections}, nil
}

func (r *s3Dir) Close() error { r.end(); return nil }

func (r *s3Dir) List(ctx context.Context) (map[string]int64, error) {
	ctx, end := context.WithCancel(ctx) // ends the listing on an early return
	defer end()
	sizes := map[string]int64{}
	for object := range r.client.ListObjects(ctx, r.bucket, minio.ListObjectsOptions{Prefix: r.prefix}) {
		if object.Err != nil {
			return nil, fmt.Errorf("bucket %s: %w", r.bucket, object.Err)
		}
		if sizes[strings.TrimPrefix(object.Key, r.prefix)] = object.Size; len(sizes) > maxListed {
			return nil, fmt.Errorf("bucket %s has more than %d objects there: use a directory for the backups alone", r.bucket, maxListed)
		}
	}
	return sizes, ctx.Err()
}

func (r *s3Dir) Put(ctx context.Context, name string, f *os.File, size int64) error {
	_, err := r.client.PutObject(ctx, r.bucket, r.prefix+name, f, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	return err
}

func (r *s3Dir) Remove(ctx context.Context, name string) error {
	return r.client.RemoveObject(ctx, r.bucket, r.prefix+name, minio.RemoveObjectOptions{})
}
