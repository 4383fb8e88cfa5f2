// Package remote uploads files to directories of other machines, by SFTP or S3.
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

// Part is the suffix of the name of an incomplete file on an SFTP server.
const Part = ".part"

// idleTimeout is the time without data after which a connection is closed.
const idleTimeout = time.Minute

// maxListed is the maximum number of files in an S3 directory.
const maxListed = 100_000

// Dir is a directory of another machine. Its methods return an error when their context ends, or when no data was transferred for a minute.
type Dir interface {
	// List returns the size of each file, in bytes, by name. On an SFTP server it creates the directory if it is missing.
	List(ctx context.Context) (map[string]int64, error)
	// Put uploads a file of size bytes. Afterwards the name has the complete file or, after an error, its previous content. On an SFTP
	// server without posix-rename@openssh.com the name may not exist after an error.
	Put(ctx context.Context, name string, f *os.File, size int64) error
	// Remove deletes a file.
	Remove(ctx context.Context, name string) error
	// Close closes the connection.
	Close() error
}

// Target is a directory of another machine, with an account. Host is HOST or HOST:PORT, for S3 also a URL. Directory is a path, for S3 a
// bucket with an optional prefix after a slash. User and Password are an account, for S3 an access key. HostKey is the required key of an
// SFTP server; empty accepts any.
type Target struct {
	Host, Directory, User, Password, HostKey string
}

// Dial connects by a protocol. It returns the key that an SFTP server has shown, in the form of HostKey; for S3 the key is empty.
func Dial(ctx context.Context, protocol string, to Target) (d Dir, hostKey string, err error) {
	switch protocol {
	case SFTP:
		return dialSFTP(ctx, to)
	case S3:
		d, err := newS3(to)
		return d, "", err
	}
	return nil, "", fmt.Errorf("transfer protocol: must be %s or %s, not %q", SFTP, S3, protocol)
}

// idleConn is a connection that fails when no data is transferred for a while.
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
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil { // the response gets the full time as well
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

// CheckHost returns an error if a protocol cannot connect to a host.
func CheckHost(protocol, host string) error {
	var err error
	if protocol == S3 {
		_, _, err = s3Endpoint(host)
	} else {
		_, err = sftpAddress(host)
	}
	return err
}

// CheckDirectory returns an error if a directory is invalid for a protocol.
func CheckDirectory(protocol, directory string) error {
	if protocol != S3 {
		return nil
	}
	bucket, _ := splitDirectory(directory)
	return s3utils.CheckValidBucketName(bucket)
}
