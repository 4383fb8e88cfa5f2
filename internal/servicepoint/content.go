package servicepoint

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/content"
)

// contents is the folder with an application's content: a chain of streams, each from one revision to the next, the first from nothing.
// The application can serve it without the manager. One goroutine uses it at a time. The files are listed once: a change of the content
// costs the same whatever the folder holds, apart from its share of the next full content (isFull).
type contents struct {
	dir string
	// spread is a random number below 1. It delays the next full content, so that service points with the same content do not request it at
	// the same time.
	spread float64
	// streams are the files in order, if listed is true.
	streams []storedStream
	listed  bool
}

// storedStream is a file with a stream. whole reports that the stream begins at nothing.
type storedStream struct {
	name  string
	size  int64
	whole bool
}

// contentsOf returns the contents of an application, whose folder is below dir.
func contentsOf(dir, application string) *contents {
	return &contents{dir: filepath.Join(dir, contentFolder, application), spread: rand.Float64()} //nolint:gosec // not a secret
}

const contentFolder = "content"

// incompletePrefix is the name prefix of incomplete files.
const incompletePrefix = ".new-"

// removeIncomplete removes incomplete files.
func (c *contents) removeIncomplete() error {
	left, err := filepath.Glob(filepath.Join(c.dir, incompletePrefix+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// Limits of the streams after the first one. Their total size may be maxDifferences bytes plus half the size of the first one, and their
// number one for each bytesForStream of that, but from minContentStreams to maxContentStreams; contents.spread adds up to a quarter to
// both. Beyond that the full content is requested again: its cost for a change is bounded, and so is the number of files to read at a
// start.
const (
	minContentStreams = 5000
	maxContentStreams = 40_000
	bytesForStream    = 4096
	maxDifferences    = 1 << 20
)

// isFull reports whether there are too many streams after the first one of the last chain, which begins at index from.
func (c *contents) isFull(from int) bool {
	first, behind := c.streams[from].size, int64(0)
	for _, one := range c.streams[from+1:] {
		behind += one.size
	}
	number := min(max(first/bytesForStream, minContentStreams), maxContentStreams)
	spread := 1 + c.spread/4
	return float64(len(c.streams)-from) > float64(number)*spread || float64(behind) > float64(maxDifferences+first/2)*spread
}

// list reads the folder.
func (c *contents) list() error {
	if c.listed {
		return nil
	}
	c.streams = nil
	entries, err := os.ReadDir(c.dir) // sorted by name
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f, err := os.Open(filepath.Join(c.dir, e.Name()))
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return err
		}
		h, err := content.Read(bufio.NewReader(f))
		_ = f.Close()
		if err != nil {
			return err
		}
		c.streams = append(c.streams, storedStream{e.Name(), info.Size(), h.From == ""})
	}
	c.listed = true
	return nil
}

// remove deletes the streams from i up to, but not including, j.
func (c *contents) remove(i, j int) (err error) {
	for _, one := range c.streams[i:j] {
		err = errors.Join(err, os.Remove(filepath.Join(c.dir, one.name)))
	}
	c.streams = slices.Delete(c.streams, i, j)
	c.listed = err == nil
	return err
}

// revisionOf returns the revision that the stream in a file ends at.
func revisionOf(name string) string {
	_, revision, _ := strings.Cut(name, "_")
	return revision
}

// lastRevision returns the revision at the end of the chain; empty if there is none. full reports that the full content must be requested
// again.
func (c *contents) lastRevision() (revision string, full bool, err error) {
	if err := c.list(); err != nil || len(c.streams) == 0 {
		return "", false, err
	}
	first, err := c.lastChain()
	if err != nil {
		return "", false, err
	}
	return revisionOf(c.streams[len(c.streams)-1].name), c.isFull(first), nil
}

// add stores a stream, which fetch writes, on the disk and returns its path. A stream from nothing replaces all before it, which prune
// deletes.
func (c *contents) add(fetch func(io.Writer) error) (path string, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	if err := c.list(); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(c.dir, incompletePrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer func() { _ = f.Close() }()
	if err := fetch(f); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h, err := content.Verify(f)
	if err != nil {
		return "", err
	}
	number := 0
	if n := len(c.streams); n > 0 {
		last := c.streams[n-1].name
		if _, err := fmt.Sscanf(last, "%d_", &number); err != nil {
			return "", fmt.Errorf("the content file %q has an invalid name: %w", last, err)
		}
		if h.From != "" && h.From != revisionOf(last) {
			return "", errors.New("the new content does not start at the revision of the current content")
		}
	} else if h.From != "" {
		return "", errors.New("the new content starts at a revision that does not exist")
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%08d_%s", number+1, h.To)
	path = filepath.Join(c.dir, name)
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	c.streams = append(c.streams, storedStream{name, size, h.From == ""})
	return path, syncDir(c.dir)
}

// removeLast deletes the last stream.
func (c *contents) removeLast() error { return c.remove(len(c.streams)-1, len(c.streams)) }

// lastChain returns the index of the first stream of the last chain. There are several chains if the application has not accepted the last
// one yet, or after a crash.
func (c *contents) lastChain() (first int, err error) {
	if err := c.list(); err != nil {
		return 0, err
	}
	for i, one := range slices.Backward(c.streams) {
		if one.whole {
			return i, nil
		}
	}
	return 0, errors.New("the content on the disk has no start")
}

// prune deletes all chains but the last one. It is called after the application has accepted the last one.
func (c *contents) prune() error {
	first, err := c.lastChain()
	if err != nil || first == 0 {
		return err
	}
	return c.remove(0, first)
}

// paths returns the paths of the streams from first on.
func (c *contents) paths(first int) (paths []string) {
	for _, one := range c.streams[first:] {
		paths = append(paths, filepath.Join(c.dir, one.name))
	}
	return paths
}

// supply sends an application its content until ctx ends: first from the disk, then updates from the manager.
func (p *process) supply(ctx context.Context) {
	c := contentsOf(p.s.dir, p.id)
	if err := c.removeIncomplete(); err != nil {
		p.log.Warn("remove incomplete content failed", "reason", err)
	}
	for b := (backoff{}); ctx.Err() == nil; {
		began := time.Now()
		other, err := p.syncContent(ctx, c)
		if err == nil {
			if b = (backoff{}); !other { // a manager that is shutting down answers immediately
				sleep(ctx, minPause-time.Since(began))
			}
			if other {
				select {
				case p.changed <- struct{}{}: // request the status immediately to see the new revision
				default:
				}
			}
			continue
		}
		if ctx.Err() == nil {
			p.log.Warn("supply content failed", "reason", err)
		}
		b.pause(ctx)
	}
}

// syncContent sends the application the content on the disk if it has another revision. Then it waits for newer content from the manager
// and sends that. It reports whether there was newer content.
func (p *process) syncContent(ctx context.Context, c *contents) (other bool, err error) {
	now, err := p.getStatus(ctx)
	if err != nil {
		return false, err
	}
	have, full, err := c.lastRevision()
	if err == nil && have != "" && now.Content != have {
		if err = p.catchUp(ctx, c); err == nil {
			have, full, err = c.lastRevision() // the application may have refused the last streams
		}
	}
	if err != nil { // the manager can send the full content again
		c.listed = false
		p.log.Error("stored content not usable, requesting full content", "reason", err)
		have = ""
	}
	if full || p.isRefused() {
		have = ""
	}
	path, err := c.add(func(to io.Writer) error { return p.s.fetch(ctx, p.id, have, to) })
	if errors.Is(err, errNoNewContent) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("fetch the content: %w", err)
	}
	err = p.sendFile(ctx, path)
	var refused *contentRejected
	if errors.As(err, &refused) { // the application continues to serve its previous content; the next request fetches the full content
		p.setRefused(refused.Error())
		return false, errors.Join(err, c.removeLast())
	}
	if err == nil {
		p.setRefused("")
		err = c.prune()
	}
	return err == nil, err
}

// isRefused reports whether the application refused the last content.
func (p *process) isRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused != ""
}

func (p *process) setRefused(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = why
}

// restoreContent sends a newly started application the content on the disk before its configuration. Otherwise it would answer wrongly in
// between.
func (p *process) restoreContent(ctx context.Context, now application.Status) {
	c := contentsOf(p.s.dir, p.id)
	have, _, err := c.lastRevision()
	if err == nil && have != "" && now.Content == "" {
		err = p.catchUp(ctx, c)
	}
	if err != nil {
		p.log.Warn("restore content failed", "reason", err)
	}
}

// catchUp sends the application all content on the disk in one stream, so that it never serves an intermediate revision. If it refuses
// the last chain, that chain is deleted and the chain before it is sent.
func (p *process) catchUp(ctx context.Context, c *contents) error {
	for {
		first, err := c.lastChain()
		if err != nil {
			return err
		}
		err = p.sendChain(ctx, c, first)
		var refused *contentRejected
		if err == nil {
			return c.prune()
		}
		if !errors.As(err, &refused) || first == 0 {
			return err
		}
		p.log.Error("content rejected, restoring previous content", "reason", err)
		if err := c.remove(first, len(c.streams)); err != nil {
			return err
		}
	}
}

// sendChain sends the application the streams from first on as one. If it refuses them, sendChain sends all but the last one, which it then
// deletes.
func (p *process) sendChain(ctx context.Context, c *contents, first int) error {
	paths := c.paths(first)
	err := p.sendContent(ctx, &files{paths: paths}) // sendContent closes the files
	var refused *contentRejected
	if len(paths) < 2 || !errors.As(err, &refused) {
		return err
	}
	if p.sendContent(ctx, &files{paths: paths[:len(paths)-1]}) != nil {
		return err
	}
	p.log.Error("last content rejected, restoring previous content", "reason", err)
	return c.removeLast()
}

// files reads several files as one stream.
type files struct {
	paths []string
	now   *os.File
}

func (f *files) Read(to []byte) (n int, err error) {
	for {
		if f.now == nil {
			if len(f.paths) == 0 {
				return 0, io.EOF
			}
			if f.now, err = os.Open(f.paths[0]); err != nil {
				return 0, err
			}
			f.paths = f.paths[1:]
		}
		if n, err = f.now.Read(to); n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
}

// Close closes the open file.
func (f *files) Close() error {
	now := f.now
	if f.now = nil; now == nil {
		return nil
	}
	return now.Close()
}

// errNoNewContent reports that the manager has no newer content.
var errNoNewContent = errors.New("the manager has no newer content")

// contentRejected reports that an application refused content.
type contentRejected struct{ reason string }

func (n *contentRejected) Error() string { return n.reason }

func (p *process) sendFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return p.sendContent(ctx, f)
}

// sendContent sends the application a stream.
func (p *process) sendContent(ctx context.Context, stream io.Reader) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://application"+application.ContentPath, stream)
	if err != nil {
		return err
	}
	rs, err := p.contentHTTP.Do(rq)
	if err != nil {
		return fmt.Errorf("pass the content to the application: %w", unwrapURL(err))
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusNoContent {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
	if err != nil {
		return err
	}
	return &contentRejected{fmt.Sprintf("the content was refused: %s", bytes.TrimSpace(text))}
}

// contentLimit is the time limit for fetching or sending content.
const contentLimit = time.Hour

// fetchContent writes the content stream of an application from a revision to the current one. It waits for newer content, and returns
// errNoNewContent if there is none in time.
func (a *Agent) fetchContent(ctx context.Context, application, from string, to io.Writer) error {
	a.mu.Lock()
	m, enrolled := a.manager, a.identity != nil
	a.mu.Unlock()
	if !enrolled {
		return errors.New("this service point is not enrolled")
	}
	rq := checkin.ContentRequest{From: from, WaitSeconds: int(a.currentInterval().Seconds()), Application: application}
	return m.stream(ctx, checkin.ContentPath, rq, to)
}
