package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// sftpAddress returns the address of a machine, with the port of SSH if it has none.
func sftpAddress(host string) (string, error) {
	if strings.ContainsAny(host, "/@ ") {
		return "", fmt.Errorf("must be HOST or HOST:PORT, not %q", host)
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host, nil
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.Contains(bare, ":") && net.ParseIP(bare) == nil {
		return "", fmt.Errorf("must be HOST or HOST:PORT, not %q", host)
	}
	return net.JoinHostPort(bare, "22"), nil
}

// HostKey parses the public key of an SSH server, a line of ssh-keyscan with or without the name, and returns its type and the key.
func HostKey(text string) (string, error) {
	key, err := readHostKey(text)
	if err != nil {
		return "", err
	}
	return hostKeyText(key), nil
}

// readHostKey parses the type and the key of a machine. It ignores a name before them, as written by ssh-keyscan.
func readHostKey(text string) (ssh.PublicKey, error) {
	if fields := strings.Fields(text); len(fields) == 3 {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(strings.Join(fields[1:], " "))); err == nil {
			return key, nil
		}
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, errors.New("must be an SSH public key")
	}
	return key, nil
}

// hostKeyText returns the type and the key of a machine.
func hostKeyText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// hostKeyAlgorithms returns the signature algorithms for a host key.
func hostKeyAlgorithms(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// sftpDir is a directory of an SFTP server.
type sftpDir struct {
	files     *sftp.Client
	ssh       *ssh.Client
	directory string
	stopWatch func() bool // stops closing the connection at the end of the context
}

// dialSFTP connects to an SFTP server, and returns the host key that it has shown. It rejects a server with a key other than to.HostKey
// before it sends the password.
func dialSFTP(ctx context.Context, to Target) (_ Dir, shown string, err error) {
	address, err := sftpAddress(to.Host)
	if err != nil {
		return nil, "", err
	}
	config := &ssh.ClientConfig{User: to.User, Auth: []ssh.AuthMethod{ssh.Password(to.Password),
		ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range answers {
				answers[i] = to.Password
			}
			return answers, nil
		})}}
	var want ssh.PublicKey
	if to.HostKey != "" {
		if want, err = readHostKey(to.HostKey); err != nil {
			return nil, "", err
		}
		config.HostKeyAlgorithms = hostKeyAlgorithms(want)
	}
	config.HostKeyCallback = func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if shown = hostKeyText(key); want != nil && hostKeyText(want) != shown {
			return fmt.Errorf("%s has the host key %s instead of %s: if the new key is correct, set it or remove the old one", to.Host,
				ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(want))
		}
		return nil
	}
	conn, err := connect(ctx, "tcp", address)
	if err != nil {
		return nil, "", err
	}
	watch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	r := &sftpDir{directory: to.Directory, stopWatch: watch}
	over, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		watch()
		return nil, "", errors.Join(err, ignoreClosed(conn.Close()))
	}
	r.ssh = ssh.NewClient(over, channels, requests)
	if r.files, err = sftp.NewClient(r.ssh, sftp.UseConcurrentWrites(true)); err != nil {
		return nil, "", errors.Join(err, r.Close())
	}
	return r, shown, nil
}

// ignoreClosed returns nil for the error that a connection is closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (r *sftpDir) Close() error {
	defer r.stopWatch()
	var err error
	if r.files != nil {
		err = ignoreClosed(r.files.Close())
	}
	return errors.Join(err, ignoreClosed(r.ssh.Close()))
}

// filePath returns the path of a file of the directory.
func (r *sftpDir) filePath(name string) string { return path.Join(r.directory, name) }

func (r *sftpDir) List(ctx context.Context) (map[string]int64, error) {
	if r.directory != "" {
		if err := r.files.MkdirAll(r.directory); err != nil {
			return nil, fmt.Errorf("directory %s: %w", r.directory, err)
		}
	}
	infos, err := r.files.ReadDirContext(ctx, cmp.Or(r.directory, "."))
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", r.directory, err)
	}
	sizes := map[string]int64{}
	for _, info := range infos {
		if info.Mode().IsRegular() {
			sizes[info.Name()] = info.Size()
		}
	}
	return sizes, nil
}

func (r *sftpDir) Put(_ context.Context, name string, f *os.File, size int64) error {
	begun := r.filePath(name + Part)
	to, err := r.files.OpenFile(begun, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = to.ReadFrom(f)
	if syncing := to.Sync(); err == nil && syncing != nil && !unsupported(syncing) {
		err = syncing
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = r.checkSize(begun, size)
	}
	if err != nil {
		return err
	}
	if _, has := r.files.HasExtension("posix-rename@openssh.com"); has {
		return r.files.PosixRename(begun, r.filePath(name))
	}
	if err := r.files.Remove(r.filePath(name)); err != nil && !errors.Is(err, os.ErrNotExist) { // a file of another size
		return err
	}
	return r.files.Rename(begun, r.filePath(name))
}

// checkSize returns an error if the uploaded file does not have the expected size.
func (r *sftpDir) checkSize(at string, size int64) error {
	info, err := r.files.Stat(at)
	if err == nil && info.Size() != size {
		err = fmt.Errorf("the server received %d of %d bytes", info.Size(), size)
	}
	return err
}

// unsupported reports whether the server does not support a request.
func unsupported(err error) bool {
	var status *sftp.StatusError
	return errors.As(err, &status) && status.FxCode() == sftp.ErrSSHFxOpUnsupported
}

func (r *sftpDir) Remove(_ context.Context, name string) error {
	return r.files.Remove(r.filePath(name))
}
