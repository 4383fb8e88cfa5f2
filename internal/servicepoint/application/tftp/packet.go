package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The operation codes of TFTP packets (RFC 1350 section 5, RFC 2347).
const (
	opRead   = 1
	opWrite  = 2
	opData   = 3
	opAck    = 4
	opError  = 5
	opOptAck = 6
)

// errorCode is the code of an error packet (RFC 1350 appendix I, RFC 2347).
type errorCode uint16

// The error codes that the server sends.
const (
	codeUndefined errorCode = 0
	codeNotFound  errorCode = 1
	codeAccess    errorCode = 2
	codeIllegal   errorCode = 4
)

// Limits of the options of a request (RFC 2348, RFC 2349, RFC 7440). A larger windowsize is reduced to maxWindow.
const (
	defaultBlock = 512
	minBlock     = 8
	maxBlock     = 65464
	maxTimeout   = 30 // seconds; two tries in maxWait
	maxWindow    = 64
	maxRequest   = 2048 // octets of a request; names and options that are longer are not those of a client
)

// request is a read request.
type request struct {
	// path is the path of the file, without a leading slash.
	path string
	// netascii means that line ends are converted (RFC 764); otherwise the file is sent as it is.
	netascii bool
	// block is the requested number of octets in a data packet; 0 without the option. timeout is the requested interval of
	// retransmissions in seconds; 0 without the option. window is the requested number of packets for each acknowledgement; 0 without the
	// option. size reports that the client requests the size of the file.
	block, timeout, window int
	size                   bool
}

// refusal is a request that is answered with an error packet. reason is the name of its counter.
type refusal struct {
	code   errorCode
	text   string
	reason string
}

func (r *refusal) Error() string { return r.text }

// errIgnored reports a packet that gets no answer.
var errIgnored = errors.New("not a request")

// parseRequest parses a packet that arrived at the port of the server. It returns a refusal for a request that is answered with an error
// packet, and errIgnored for anything else.
func parseRequest(p []byte) (r request, err error) {
	if len(p) < 4 || len(p) > maxRequest {
		return r, errIgnored
	}
	op := binary.BigEndian.Uint16(p)
	if op != opRead && op != opWrite || p[len(p)-1] != 0 {
		return r, errIgnored
	}
	fields := strings.Split(string(p[2:len(p)-1]), "\x00")
	if len(fields) < 2 {
		return r, errIgnored
	}
	if op == opWrite {
		return r, &refusal{codeAccess, "files cannot be written: the server is read only", refusedWrite}
	}
	switch strings.ToLower(fields[1]) {
	case "octet":
	case "netascii":
		r.netascii = true
	default:
		return r, &refusal{codeIllegal, fmt.Sprintf("the mode %.20q is not supported: use octet or netascii", fields[1]), refusedMode}
	}
	if r.path, err = cleanPath(fields[0]); err != nil {
		return r, err
	}
	for options := fields[2:]; len(options) >= 2; options = options[2:] {
		r.setOption(strings.ToLower(options[0]), options[1])
	}
	return r, nil
}

// setOption sets an option of a request. Options that are not known or not valid are ignored, as RFC 2347 requires.
func (r *request) setOption(name, value string) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return
	}
	switch {
	case name == "blksize" && n >= minBlock && n <= maxBlock:
		r.block = n
	case name == "timeout" && n >= 1 && n <= maxTimeout:
		r.timeout = n
	case name == "windowsize" && n >= 1 && n <= 65535:
		r.window = min(n, maxWindow)
	case name == "tsize":
		r.size = true
	}
}

// cleanPath returns the path of a file from the name in a request. It removes leading slashes, and reads backslashes as slashes, because
// boot programs of Windows send them.
func cleanPath(name string) (string, error) {
	elements := strings.FieldsFunc(name, func(c rune) bool { return c == '/' || c == '\\' })
	kept := elements[:0]
	for _, e := range elements {
		if e == ".." {
			return "", &refusal{codeAccess, fmt.Sprintf("the name %.100q points outside the tree", name), refusedPath}
		}
		if e != "." {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return "", &refusal{codeNotFound, "the request names no file", refusedPath}
	}
	return strings.Join(kept, "/"), nil
}

// appendError appends an error packet. The text has at most 200 octets.
func appendError(to []byte, code errorCode, text string) []byte {
	to = binary.BigEndian.AppendUint16(to, opError)
	to = binary.BigEndian.AppendUint16(to, uint16(code))
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
	return append(append(to, text[:min(len(text), 200)]...), 0)
}

// appendOption appends an option to an option acknowledgement.
func appendOption(to []byte, name string, value int64) []byte {
	to = append(append(to, name...), 0)
	return append(strconv.AppendInt(to, value, 10), 0)
}

// parseAnswer parses a packet of a client in a transfer. It returns the acknowledged block, or the error of the client. ok is false for
// other packets, which are ignored.
func parseAnswer(p []byte) (block uint16, failure error, ok bool) { //nolint:revive // the error is what the client sent
	if len(p) < 4 {
		return 0, nil, false
	}
	switch binary.BigEndian.Uint16(p) {
	case opAck:
		return binary.BigEndian.Uint16(p[2:]), nil, true
	case opError:
		text, _, _ := bytes.Cut(p[4:], []byte{0})
		return 0, fmt.Errorf("the client ended the transfer: error %d, %.100q", binary.BigEndian.Uint16(p[2:]), text), true
	}
	return 0, nil, false
}
