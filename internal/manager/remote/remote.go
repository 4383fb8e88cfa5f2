// Package remote sends files to directories of other machines, by SFTP and by S3.
package remote

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"portolan/internal/manager/outbound"
)

// Protocols.
const (
	SFTP = "SFTP"
	S3   = "S3"
)

// Part ends the name of a file that Put of an SFTP directory has not sent wholly.
const Part = ".part"

// quiet is how long another machine may be silent before the connection is given up.
const idleTimeout = time.Minute

// mostListed is how many files a directory may have.
const maxListed = 100_000

// Dir is a directory of another machine. Its methods end with an error when their context ends, or when nothing was read or written for a
// minute.
type Dir interface {
	// List gives the size of each file, in bytes, by name. It creates the directory of an SFTP server where it is missing.
	List(ctx context.Context) (map[string]int64, error)
	// Put sends a file of size bytes. The name has the whole file or, after an error, what it had before; on an SFTP server without
	// posix-rename@openssh.com it may have nothing.
	Put(ctx context.Context, name string, f *os.File, size int64) error
	// Remove deletes a file.
	Remove(ctx context.Context, name string) error
	// Close ends the connection.
	Close() error
}

// Target is a directory of another machine, with an account. Host is HOST or HOST:PORT, for S3 also a URL. Directory is a path, for S3 a
// bucket with a prefix after a slash. User and Password are an account, for S3 an access key. HostKey is the key that an SFTP server has to
// show; empty takes any.
type Target struct {
	Host, Directory, User, Password, HostKey string
}

// Dial connects by a protocol. It gives the key that an SFTP server has shown, as HostKey gives it; S3 has none.
func Dial(ctx context.Context, protocol string, to Target) (d Dir, hostKey string, err error) {
	switch protocol {
	case SFTP:
		return dialSFTP(ctx, to)
	case S3:
		d, err := newS3(to)
		return d, "", err
	}
	return nil, "", fmt.Errorf("%q is neither %s nor %s", protocol, SFTP, S3)
}

// lively is a connection that ends when nothing is read or written for a while.
type idleConn struct {
	net.Conn
	limit time.Duration
}

func (c idleConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c idleConn) Write(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil { // what is sent is answered, too
		return 0, err
	}
	return c.Conn.Write(b)
}

// connect connects to an address.
func connect(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := outbound.Dialer()
	dialer.Timeout = idleTimeout
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return idleConn{conn, idleTimeout}, nil
}

// CheckHost refuses a host that a protocol cannot connect to.
func CheckHost(protocol, host string) error {
	var err error
	if protocol == S3 {
		_, _, err = s3Endpoint(host)
	} else {
		_, err = sftpAddress(host)
	}
	return err
}

// CheckDirectory refuses a directory that a protocol cannot have.
func CheckDirectory(protocol, directory string) error {
	if protocol != S3 {
		return nil
	}
	bucket, _ := splitDirectory(directory)
	return s3utils.CheckValidBucketName(bucket)
}
