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

// contents is the folder with what an application serves: the streams that lead to it, one behind the other, the first from nothing. With
// it the application serves without the manager. It belongs to the one goroutine that supplies the application.
type contents struct{ dir string }

const contentFolder = "content"

// newContent begins the names of files that are not whole yet.
const newContent = ".new-"

// clean removes what was not whole when the machine stopped.
func (c contents) clean() error {
	left, err := filepath.Glob(filepath.Join(c.dir, newContent+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// mostContents is how many streams there may be behind the first one; mostDifferences how long they may be beside it, in bytes, and as much
// again as half of it: then all of it is asked for again.
const (
	mostContents    = 5000
	mostDifferences = 1 << 20
)

// names gives the files, in order.
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

// revisionOf is the revision that the stream in a file leads to.
func revisionOf(name string) string {
	_, revision, _ := strings.Cut(name, "_")
	return revision
}

// last gives the revision that all of it leads to; empty where there is none. full says that it is better to ask for all of it again.
func (c contents) last() (revision string, full bool, err error) {
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
	return revisionOf(names[len(names)-1]), len(names) > mostContents || behind > mostDifferences+sizes[0]/2, nil
}

// add keeps a stream, which fetch writes, on the disk, and gives its file. One that begins at nothing leads to what is served without
// those before it, which prune takes away.
func (c contents) add(fetch func(io.Writer) error) (path string, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	before, err := c.names()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(c.dir, newContent)
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

// chains gives the files in parts that each begin at nothing, the last part first. Of several the last was not taken yet, or a crash has
// left the others.
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

// prune takes away what is not needed any more, now that the application serves what the files lead to.
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

// supply brings an application the content that it is to serve, until ctx ends: what is on the disk, and what the manager has beyond that.
func (p *process) supply(ctx context.Context) {
	c := contents{filepath.Join(p.s.dir, contentFolder, p.id)}
	if err := c.clean(); err != nil {
		p.log.Warn("what was left of fetching cannot be removed", "reason", err)
	}
	for b := (backoff{}); ctx.Err() == nil; {
		began := time.Now()
		other, err := p.bring(ctx, c)
		if err == nil {
			if b = (backoff{}); !other { // a manager that is about to end answers at once
				sleep(ctx, leastPause-time.Since(began))
			}
			if other {
				select {
				case p.changed <- struct{}{}: // it is asked at once what it serves
				default:
				}
			}
			continue
		}
		if ctx.Err() == nil {
			p.log.Warn("the application does not get what it is to serve", "reason", err)
		}
		b.pause(ctx)
	}
}

// bring gives the application what is on the disk, where it serves something else, then what the manager has beyond that; it waits for
// it. It reports whether there was something.
func (p *process) bring(ctx context.Context, c contents) (other bool, err error) {
	now, err := p.ask(ctx)
	if err != nil {
		return false, err
	}
	have, full, err := c.last()
	if err == nil && have != "" && now.Content != have {
		err = p.catchUp(ctx, c)
	}
	if err != nil { // whatever it is, the manager has it
		p.log.Error("what is served is asked for again", "reason", err)
		have = ""
	}
	if full || p.isRefused() {
		have = ""
	}
	path, err := c.add(func(to io.Writer) error { return p.s.fetch(ctx, p.id, have, to) })
	if errors.Is(err, errNothingNew) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("fetching it: %w", err)
	}
	err = p.giveFile(ctx, path)
	var refused *notTaken
	if errors.As(err, &refused) { // what was served before is served on; the next time all of it is asked for
		p.noteRefused(refused.Error())
		return false, errors.Join(err, os.Remove(path))
	}
	if err == nil {
		p.noteRefused("")
		err = c.prune()
	}
	return err == nil, err
}

// isRefused reports whether the application did not take the last content.
func (p *process) isRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused != ""
}

func (p *process) noteRefused(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = why
}

// refill gives an application that has just begun what is on the disk, before it is configured: in between it would answer otherwise.
func (p *process) refill(ctx context.Context, now application.Status) {
	c := contents{filepath.Join(p.s.dir, contentFolder, p.id)}
	have, _, err := c.last()
	if err == nil && have != "" && now.Content == "" {
		err = p.catchUp(ctx, c)
	}
	if err != nil {
		p.log.Warn("the application begins without what it is to serve", "reason", err)
	}
}

// catchUp gives the application all that is on the disk, at once: nothing that lies between is to be served. What it refuses is taken away,
// where something was served before.
func (p *process) catchUp(ctx context.Context, c contents) error {
	chains, err := c.chains()
	if err != nil {
		return err
	}
	for i, paths := range chains {
		err = p.giveChain(ctx, paths)
		var refused *notTaken
		if err == nil {
			return c.prune()
		}
		if !errors.As(err, &refused) || i == len(chains)-1 {
			break
		}
		p.log.Error("what was to be served is refused, and what was served before is given", "reason", err)
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return err
}

// giveChain gives the application the streams of files, one behind the other; without the last one where all of them are refused: that was
// not taken yet. It is taken away then.
func (p *process) giveChain(ctx context.Context, paths []string) error {
	err := p.give(ctx, &files{paths: paths}) // which closes them
	var refused *notTaken
	if len(paths) < 2 || !errors.As(err, &refused) {
		return err
	}
	last := paths[len(paths)-1]
	if p.give(ctx, &files{paths: paths[:len(paths)-1]}) != nil {
		return err
	}
	p.log.Error("the last of what was to be served is refused, and what was served before is given", "reason", err)
	return os.Remove(last)
}

// files reads files one behind the other.
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

// Close closes the file that is open.
func (f *files) Close() error {
	now := f.now
	if f.now = nil; now == nil {
		return nil
	}
	return now.Close()
}

// errNothingNew is an answer of a manager that has nothing else to serve.
var errNothingNew = errors.New("there is nothing else to serve")

// notTaken is content that an application refused.
type notTaken struct{ why string }

func (n *notTaken) Error() string { return n.why }

func (p *process) giveFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return p.give(ctx, f)
}

// give gives the application a stream.
func (p *process) give(ctx context.Context, stream io.Reader) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://application"+application.ContentPath, stream)
	if err != nil {
		return err
	}
	rs, err := p.bulky.Do(rq)
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
	return &notTaken{fmt.Sprintf("what is to be served was refused: %s", bytes.TrimSpace(text))}
}

// contentLimit is how long it may take to fetch what is to be served, or to give it.
const contentLimit = time.Hour

// fetchContent fetches what leads from a revision to what an application is to serve, as soon as that is something else; errNothingNew
// where it has taken too long.
func (a *Agent) fetchContent(ctx context.Context, application, from string, to io.Writer) error {
	a.mu.Lock()
	m, enrolled := a.manager, a.identity != nil
	a.mu.Unlock()
	if !enrolled {
		return errors.New("this service point is not enrolled")
	}
	rq := checkin.ContentRequest{From: from, WaitSeconds: int(a.wait().Seconds()), Application: application}
	return m.stream(ctx, checkin.ContentPath, rq, to)
}
