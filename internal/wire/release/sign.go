package release

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/dirlock"

	"github.com/klauspost/compress/zstd"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// roles are the roles of a repository (TUF specification, section 2.1). The root key names the other keys. It is only needed for that and
// is kept offline. The targets key signs releases, the snapshot and timestamp keys sign publications.
var roles = []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP}

// Lifetimes of documents. A service point rejects expired documents. An attacker who withholds a newer timestamp can hide a release only
// until the old one expires.
const (
	rootLife      = 5 * 365 * 24 * time.Hour
	documentLife  = 2 * 365 * 24 * time.Hour
	TimestampLife = 30 * 24 * time.Hour
)

// key reads the private key of a role from the key directory.
func key(keys, role string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(filepath.Join(keys, role+".pem"))
	if err != nil {
		return nil, fmt.Errorf("read the key of %s: %w", role, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read the key of %s: no key in PEM", role)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key of %s: %w", role, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read the key of %s: it is not an Ed25519 key", role)
	}
	return private, nil
}

// key reads the private key of a role. It rejects a key that neither the newest root nor the staged one names for the role: service points
// would not accept its signatures.
func (r Repository) key(keys, role string) (ed25519.PrivateKey, error) {
	private, err := key(keys, role)
	if err != nil {
		return nil, err
	}
	public, err := metadata.KeyFromPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	id, err := public.ID()
	if err != nil {
		return nil, err
	}
	number, err := r.latest(metadata.ROOT)
	if err != nil || number == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no repository", r.Dir))
	}
	for _, path := range []string{r.path(metadata.ROOT, number), r.stagedRoot()} {
		root, err := metadata.Root().FromFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if named := root.Signed.Roles[role]; named != nil && slices.Contains(named.KeyIDs, id) {
			return private, nil
		}
	}
	return nil, fmt.Errorf("the key of %s in %s is not one that the root of %s names: it belongs to another repository, or was replaced", role,
		keys, r.Dir)
}

// newKey creates the key of a role. It never overwrites one.
func newKey(keys, role string) (ed25519.PrivateKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(keys, role+".pem")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the key of %s: %w", role, err)
	}
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err == nil {
		err = f.Sync()
	}
	return private, errors.Join(err, f.Close())
}

// sign signs a document with a key and writes it atomically.
func sign[T metadata.Roles](path string, m *metadata.Metadata[T], private ed25519.PrivateKey) error {
	signer, err := signature.LoadSigner(private, crypto.Hash(0))
	if err != nil {
		return err
	}
	m.ClearSignatures()
	if _, err := m.Sign(signer); err != nil {
		return fmt.Errorf("sign %s: %w", path, err)
	}
	text, err := m.ToBytes(true)
	if err != nil {
		return err
	}
	return writeFile(path, text)
}

// writeFile writes a file and syncs it before it gets its name.
func writeFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	return commitFile(f, path, err)
}

// commitFile syncs a temporary file and renames it to path. err is the error of writing it.
func commitFile(f *os.File, path string, err error) error {
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// Init creates an empty repository, and the keys of its roles in the directory keys. It returns an error if either exists.
func (r Repository) Init(keys string, now time.Time) error {
	if n, err := r.latest(metadata.ROOT); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%s has a repository already", r.Dir))
	}
	for _, role := range roles {
		if _, err := os.Stat(filepath.Join(keys, role+".pem")); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%s has the key of %s already", keys, role))
		}
	}
	for _, dir := range []string{filepath.Join(r.Dir, metadataFolder), filepath.Join(r.Dir, targetsFolder)} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // its content is public
			return err
		}
	}
	if err := os.MkdirAll(keys, 0o700); err != nil {
		return err
	}
	root := metadata.Root(now.Add(rootLife).UTC())
	var private ed25519.PrivateKey
	for _, role := range roles {
		made, err := newKey(keys, role)
		if err != nil {
			return err
		}
		if role == metadata.ROOT {
			private = made
		}
		if err := addKey(root, role, made); err != nil {
			return err
		}
	}
	targets, err := key(keys, metadata.TARGETS)
	if err != nil {
		return err
	}
	if err := sign(r.path(metadata.TARGETS, 1), metadata.Targets(now.Add(documentLife).UTC()), targets); err != nil {
		return err
	}
	return sign(r.path(metadata.ROOT, 1), root, private) // written last: a root implies that everything else exists
}

// addKey adds a key for a role to the root.
func addKey(root *metadata.Metadata[metadata.RootType], role string, private ed25519.PrivateKey) error {
	public, err := metadata.KeyFromPublicKey(private.Public())
	if err != nil {
		return err
	}
	return root.Signed.AddKey(public, role)
}

// Renew signs a new root with the root key and extends its lifetime. It creates new keys for the roles in replaced; the old keys become
// invalid and their files must have been moved away. The new root takes effect when it is published.
func (r Repository) Renew(keys string, replaced []string, now time.Time) error {
	return r.withLock(func() error { return r.stageRoot(keys, replaced, now) })
}

func (r Repository) stageRoot(keys string, replaced []string, now time.Time) error {
	number, err := r.latest(metadata.ROOT)
	if err != nil || number == 0 {
		return errors.Join(err, fmt.Errorf("%s has no repository", r.Dir))
	}
	root, err := metadata.Root().FromFile(r.path(metadata.ROOT, number))
	if err != nil {
		return err
	}
	private, err := r.key(keys, metadata.ROOT)
	if err != nil {
		return err
	}
	for _, role := range replaced {
		if role == metadata.ROOT {
			return errors.New("the key of the root cannot be replaced: service points that trust it would reject every release")
		}
		known := root.Signed.Roles[role]
		if known == nil {
			return fmt.Errorf("%q is not a role; the roles are %s", role, strings.Join(roles[1:], ", "))
		}
		for _, id := range append([]string{}, known.KeyIDs...) {
			if err := root.Signed.RevokeKey(id, role); err != nil {
				return err
			}
		}
		made, err := newKey(keys, role)
		if err != nil {
			return err
		}
		if err := addKey(root, role, made); err != nil {
			return err
		}
	}
	root.Signed.Version, root.Signed.Expires = number+1, now.Add(rootLife).UTC()
	return sign(r.stagedRoot(), root, private)
}

// stagedRoot returns the path of a root that is signed but not published.
func (r Repository) stagedRoot() string {
	return filepath.Join(r.Dir, metadataFolder, ".next-root.json")
}

// signTargetsAgain signs the list of releases again if there is a staged root, which may have replaced the targets key. It returns the
// version of that root; 0 if there is none.
func (r Repository) signTargetsAgain(keys string, now time.Time) (number int64, err error) {
	root, err := metadata.Root().FromFile(r.stagedRoot())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return root.Signed.Version, r.changeTargets(keys, now, func(*metadata.TargetsType) error { return nil })
}

// placeRoot publishes the staged root.
func (r Repository) placeRoot(number int64) error {
	if err := os.Rename(r.stagedRoot(), r.path(metadata.ROOT, number)); err != nil {
		return err
	}
	return syncDir(filepath.Join(r.Dir, metadataFolder))
}

// withLock runs fn while no other process writes the repository.
func (r Repository) withLock(fn func() error) error {
	lock, err := dirlock.Acquire(r.Dir, "portolan release")
	if err != nil {
		return err
	}
	return errors.Join(fn(), lock.Close())
}

// changeTargets changes the newest list of releases, published or not, and signs it with the targets key.
func (r Repository) changeTargets(keys string, now time.Time, change func(*metadata.TargetsType) error) error {
	private, err := r.key(keys, metadata.TARGETS)
	if err != nil {
		return err
	}
	targets, err := r.targets()
	if err != nil {
		return err
	}
	if err := change(&targets.Signed); err != nil {
		return err
	}
	targets.Signed.Version++
	targets.Signed.Expires = now.Add(documentLife).UTC()
	return sign(r.path(metadata.TARGETS, targets.Signed.Version), targets, private)
}

// Add adds a program to the repository as a release of a version for a platform, and signs it with the targets key. The release becomes
// visible when it is published. An existing version for the platform is never replaced.
func (r Repository) Add(keys, version, platform string, program io.Reader, now time.Time) error {
	if err := errors.Join(CheckVersion(version), checkPlatform(platform)); err != nil {
		return err
	}
	return r.withLock(func() error {
		return r.changeTargets(keys, now, func(targets *metadata.TargetsType) error {
			path := target(version, platform)
			if targets.Targets[path] != nil {
				return fmt.Errorf("version %s is there for %s already", version, platform)
			}
			file, err := r.pack(path, version, platform, program)
			targets.Targets[path] = file
			return err
		})
	})
}

// Withdraw removes a version from the list of releases, for all platforms, and signs the list with the targets key. Once it is published,
// service points reject that version. Its files are kept.
func (r Repository) Withdraw(keys, version string, now time.Time) error {
	return r.withLock(func() error {
		return r.changeTargets(keys, now, func(targets *metadata.TargetsType) error {
			before := len(targets.Targets)
			maps.DeleteFunc(targets.Targets, func(path string, _ *metadata.TargetFiles) bool {
				return strings.HasPrefix(path, target(version, ""))
			})
			if len(targets.Targets) == before {
				return fmt.Errorf("version %q does not exist", version)
			}
			return nil
		})
	})
}

// targets reads the newest list of releases, published or not.
func (r Repository) targets() (*metadata.Metadata[metadata.TargetsType], error) {
	number, err := r.latest(metadata.TARGETS)
	if err != nil || number == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no repository", r.Dir))
	}
	return metadata.Targets().FromFile(r.path(metadata.TARGETS, number))
}

// pack compresses a program into the repository and returns its description.
func (r Repository) pack(path, version, platform string, program io.Reader) (*metadata.TargetFiles, error) {
	dir := filepath.Join(r.Dir, targetsFolder, filepath.FromSlash(path[:strings.LastIndex(path, "/")]))
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // its content is public
		return nil, err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	hash, counted := sha256.New(), &counter{}
	packed, err := zstd.NewWriter(io.MultiWriter(f, hash, counted))
	if err != nil {
		return nil, err
	}
	size, err := io.Copy(packed, io.LimitReader(program, MaxUnpacked+1))
	if e := packed.Close(); err == nil {
		err = e
	}
	switch {
	case err == nil && size == 0:
		err = errors.New("the program is empty")
	case err == nil && (size > MaxUnpacked || counted.n > MaxPacked):
		err = fmt.Errorf("the program has more than %d bytes, or more than %d compressed", MaxUnpacked, MaxPacked)
	}
	about, e := json.Marshal(custom{version, platform, size})
	if err == nil {
		err = e
	}
	sum := hash.Sum(nil)
	if err := commitFile(f, filepath.Join(dir, hex.EncodeToString(sum)+"."+filepath.Base(path)), err); err != nil {
		return nil, fmt.Errorf("pack %s: %w", path, err)
	}
	raw := json.RawMessage(about)
	return &metadata.TargetFiles{Length: counted.n, Hashes: metadata.Hashes{"sha256": sum}, Custom: &raw, Path: path}, nil
}

// counter counts the bytes written to it.
type counter struct{ n int64 }

// Write counts the bytes.
func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// Publish publishes the signed changes with the snapshot and timestamp keys. life is the lifetime of the timestamp. Call Publish again
// before it expires, even without changes.
func (r Repository) Publish(keys string, life time.Duration, now time.Time) error {
	signsSnapshot, err := r.key(keys, metadata.SNAPSHOT)
	if err != nil {
		return err
	}
	signsTimestamp, err := r.key(keys, metadata.TIMESTAMP)
	if err != nil {
		return err
	}
	return r.withLock(func() error {
		root, err := r.signTargetsAgain(keys, now)
		if err != nil {
			return err
		}
		snapshot, err := r.signSnapshot(signsSnapshot, now)
		if err != nil {
			return err
		}
		if root > 0 { // as late as possible: it invalidates timestamps signed with a replaced key
			if err := r.placeRoot(root); err != nil {
				return err
			}
		}
		return r.signTimestamp(signsTimestamp, snapshot, now.Add(life))
	})
}

// signSnapshot signs the snapshot of the newest list of releases and returns its version.
func (r Repository) signSnapshot(private ed25519.PrivateKey, now time.Time) (number int64, err error) {
	targets, err := r.targets()
	if err != nil {
		return 0, err
	}
	if number, err = r.latest(metadata.SNAPSHOT); err != nil {
		return 0, err
	}
	number++
	snapshot := metadata.Snapshot(now.Add(documentLife).UTC())
	snapshot.Signed.Version = number
	snapshot.Signed.Meta[metadata.TARGETS+".json"] = metadata.MetaFile(targets.Signed.Version)
	return number, sign(r.path(metadata.SNAPSHOT, number), snapshot, private)
}

// signTimestamp signs the timestamp of a snapshot, which publishes it.
func (r Repository) signTimestamp(private ed25519.PrivateKey, snapshot int64, until time.Time) error {
	timestamp := metadata.Timestamp(until.UTC())
	before, err := metadata.Timestamp().FromFile(r.path(metadata.TIMESTAMP, 0))
	switch {
	case err == nil:
		timestamp.Signed.Version = before.Signed.Version + 1
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	timestamp.Signed.Meta[metadata.SNAPSHOT+".json"] = metadata.MetaFile(snapshot)
	return sign(r.path(metadata.TIMESTAMP, 0), timestamp, private)
}
