package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"
)

// Source is a repository as a service point reads it. Its content is trusted only if its signatures are valid.
type Source struct {
	// Base is the URL of the repository, without a trailing slash.
	Base string
	// HTTP is the client for requests.
	HTTP *http.Client
	// Cache is a directory with the latest documents that were seen; older ones are rejected. If it contains root.json before the first
	// use, that root is trusted. Otherwise the root of the first use is trusted.
	Cache string
	// Now is the time for checking the expiry of documents.
	Now time.Time
}

// Fetch verifies the repository and writes the program of a version for a platform, uncompressed, to out.
func (s Source) Fetch(ctx context.Context, version, platform string, out io.Writer) error {
	if err := errors.Join(CheckVersion(version), checkPlatform(platform)); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Cache, 0o700); err != nil {
		return err
	}
	fetches := fetcher{ctx, s.HTTP}
	root, err := s.root(fetches)
	if err != nil {
		return err
	}
	c, err := config.New(s.Base+"/"+metadataFolder, root)
	if err != nil {
		return err
	}
	c.Fetcher, c.LocalMetadataDir, c.RemoteTargetsURL = fetches, s.Cache, s.Base+"/"+targetsFolder
	c.LocalTargetsDir = s.Cache
	u, err := updater.New(c)
	if err != nil {
		return fmt.Errorf("read the trusted root: %w", err)
	}
	u.UnsafeSetRefTime(s.Now) // the manager's time: this machine's clock may be wrong
	if err := u.Refresh(); err != nil {
		return fmt.Errorf("the releases cannot be trusted: %w", err)
	}
	info, err := u.GetTargetInfo(target(version, platform))
	if err != nil {
		return fmt.Errorf("version %s does not exist for %s: %w", version, platform, err)
	}
	if info.Length > MaxPacked {
		return fmt.Errorf("version %s has %d bytes, more than %d", version, info.Length, MaxPacked)
	}
	c.DisableLocalCache = true // the program is written to out
	_, packed, err := u.DownloadTarget(info, filepath.Join(s.Cache, "unused"), "")
	if err != nil {
		return fmt.Errorf("version %s cannot be trusted: %w", version, err)
	}
	return unpack(packed, out)
}

func unpack(packed []byte, out io.Writer) error {
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxMemory(MaxPacked))
	if err != nil {
		return err
	}
	defer z.Close()
	n, err := io.Copy(out, io.LimitReader(z, MaxUnpacked+1))
	if err == nil && n > MaxUnpacked {
		err = fmt.Errorf("it has more than %d bytes unpacked", MaxUnpacked)
	}
	return err
}

// root returns the trusted root. On first use that is the first root of the repository.
func (s Source) root(f fetcher) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(s.Cache, "root.json"))
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = f.DownloadFile(s.Base+"/"+metadataFolder+"/1.root.json", maxRoot, 0); err != nil {
		return nil, fmt.Errorf("fetch the first root: %w", err)
	}
	return text, nil
}

// CheckRoot validates a root that is to be trusted.
func CheckRoot(text []byte) error {
	if _, err := trustedmetadata.New(text); err != nil {
		return fmt.Errorf("read the root of the releases: %w", err)
	}
	return nil
}

// maxRoot is the maximum size of a root, in bytes.
const maxRoot = 512 << 10

// fetcher fetches the files of a repository.
type fetcher struct {
	ctx  context.Context
	http *http.Client
}

// UnreachableError reports that a repository could not be reached, or did not return a complete file. The request can be retried.
type UnreachableError struct{ err error }

// Error returns the message.
func (e *UnreachableError) Error() string { return "the releases cannot be fetched: " + e.err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.err }

// DownloadFile fetches a file. A file of more than longest bytes is an error.
func (f fetcher) DownloadFile(path string, longest int64, _ time.Duration) ([]byte, error) {
	rq, err := http.NewRequestWithContext(f.ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	rs, err := f.http.Do(rq)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode >= 500 || rs.StatusCode == http.StatusTooManyRequests {
		return nil, &UnreachableError{errors.New(rs.Status)}
	}
	if rs.StatusCode != http.StatusOK {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: rs.StatusCode, URL: path}
	}
	text, err := io.ReadAll(io.LimitReader(rs.Body, longest+1))
	if err != nil {
		return nil, &UnreachableError{err}
	}
	if int64(len(text)) > longest {
		return nil, fmt.Errorf("%s has more than %d bytes", path, longest)
	}
	return text, nil
}
