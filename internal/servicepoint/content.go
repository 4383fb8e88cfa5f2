package servicepoint

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
// The application can serve it without the manager. Only the goroutine that supplies the application uses it.
type contents struct{ dir string }

const contentFolder = "content"

// incompletePrefix is the name prefix of incomplete files.
const incompletePrefix = ".new-"

// clean removes incomplete files.
func (c contents) clean() error {
	left, err := filepath.Glob(filepath.Join(c.dir, incompletePrefix+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// maxContentStreams is the maximum number of streams after the first one. Their total size may be maxDifferences bytes plus half
// the size of the first one. Beyond that the full content is requested again.
const (
	maxContentStreams = 5000
	maxDifferences    = 1 << 20
)

// names returns the file names in order.
func (c contents) names() (names []string, err error) {
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// revisionOf returns the revision that the stream in a file ends at.
func revisionOf(name string) string {
	_, revision, _ := strings.Cut(name, "_")
	return revision
}

// lastRevision returns the revision at the end of the chain; empty if there is none. full reports that the full content must be requested
// again.
func (c contents) lastRevision() (revision string, full bool, err error) {
	names, err := c.names()
	if err != nil || len(names) == 0 {
		return "", false, err
	}
	sizes := make([]int64, len(names))
	for i, name := range names {
		info, err := os.Stat(filepath.Join(c.dir, name))
		if err != nil {
			return "", false, err
		}
		sizes[i] = info.Size()
	}
	behind := int64(0)
	for _, size := range sizes[1:] {
		behind += size
	}
	return revisionOf(names[len(names)-1]), len(names) > maxContentStreams || behind > maxDifferences+sizes[0]/2, nil
}

// add stores a stream, which fetch writes, on the disk and returns its path. A stream from nothing replaces all before it, which prune
// deletes.
func (c contents) add(fetch func(io.Writer) error) (path string, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	before, err := c.names()
	if err != nil {
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
	if len(before) > 0 {
		if _, err := fmt.Sscanf(before[len(before)-1], "%d_", &number); err != nil {
			return "", fmt.Errorf("a file %q among what is served: %w", before[len(before)-1], err)
		}
		if h.From != "" && h.From != revisionOf(before[len(before)-1]) {
			return "", errors.New("what is to be served begins at another revision than what is served")
		}
	} else if h.From != "" {
		return "", errors.New("what is to be served begins at a revision that is not there")
	}
	path = filepath.Join(c.dir, fmt.Sprintf("%08d_%s", number+1, h.To))
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	return path, syncDir(c.dir)
}

// chains returns the files grouped into chains that each begin at nothing, the last chain first. There are several if the application has
// not accepted the last one yet, or after a crash.
func (c contents) chains() (chains [][]string, err error) {
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range slices.Backward(names) {
		path := filepath.Join(c.dir, name)
		paths = append([]string{path}, paths...)
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		h, err := content.Read(bufio.NewReader(f))
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		if h.From == "" {
			chains, paths = append(chains, paths), nil
		}
	}
	if len(chains) == 0 {
		return nil, errors.New("what is served has no beginning on the disk")
	}
	return chains, nil
}

// prune deletes all chains but the last one. It is called after the application has accepted the last one.
func (c contents) prune() error {
	chains, err := c.chains()
	if err != nil {
		return err
	}
	for _, chain := range chains[1:] {
		for _, path := range chain {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// supply sends an application its content until ctx ends: first from the disk, then updates from the manager.
func (p *process) supply(ctx context.Context) {
	c := contents{filepath.Join(p.s.dir, contentFolder, p.id)}
	if err := c.clean(); err != nil {
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
func (p *process) syncContent(ctx context.Context, c contents) (other bool, err error) {
	now, err := p.getStatus(ctx)
	if err != nil {
		return false, err
	}
	have, full, err := c.lastRevision()
	if err == nil && have != "" && now.Content != have {
		err = p.catchUp(ctx, c)
	}
	if err != nil { // the manager can send the full content again
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
		return false, fmt.Errorf("fetching it: %w", err)
	}
	err = p.sendFile(ctx, path)
	var refused *contentRejected
	if errors.As(err, &refused) { // the application continues to serve its previous content; the next request fetches the full content
		p.setRefused(refused.Error())
		return false, errors.Join(err, os.Remove(path))
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
	c := contents{filepath.Join(p.s.dir, contentFolder, p.id)}
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
func (p *process) catchUp(ctx context.Context, c contents) error {
	chains, err := c.chains()
	if err != nil {
		return err
	}
	for i, paths := range chains {
		err = p.sendChain(ctx, paths)
		var refused *contentRejected
		if err == nil {
			return c.prune()
		}
		if !errors.As(err, &refused) || i == len(chains)-1 {
			break
		}
		p.log.Error("content rejected, restoring previous content", "reason", err)
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return err
}

// sendChain sends the application the streams of files as one. If it refuses them, sendChain sends all but the last one, which it then
// deletes.
func (p *process) sendChain(ctx context.Context, paths []string) error {
	err := p.sendContent(ctx, &files{paths: paths}) // sendContent closes the files
	var refused *contentRejected
	if len(paths) < 2 || !errors.As(err, &refused) {
		return err
	}
	last := paths[len(paths)-1]
	if p.sendContent(ctx, &files{paths: paths[:len(paths)-1]}) != nil {
		return err
	}
	p.log.Error("last content rejected, restoring previous content", "reason", err)
	return os.Remove(last)
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
var errNoNewContent = errors.New("there is nothing else to serve")

// contentRejected reports that an application refused content.
type contentRejected struct{ why string }

func (n *contentRejected) Error() string { return n.why }

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
		return fmt.Errorf("what is to be served could not be given: %w", unwrapURL(err))
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusNoContent {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
	if err != nil {
		return err
	}
	return &contentRejected{fmt.Sprintf("what is to be served was refused: %s", bytes.TrimSpace(text))}
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
