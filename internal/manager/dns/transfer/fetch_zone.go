package transfer

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// keyStatement matches a key as printed by tsig-keygen and in a BIND configuration.
var keyStatement = regexp.MustCompile(`(?s)key\s+"?([^\s"{]+)"?\s*\{(.*?)\}`)

// keyPart matches the algorithm or the secret of a key.
var keyPart = regexp.MustCompile(`(algorithm|secret)\s+"?([^\s";]+)"?\s*;`)

// ReadKey reads a key from a file in the format of tsig-keygen.
func ReadKey(file string) (*TransferKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := keyStatement.FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf(`%s does not contain a key as printed by tsig-keygen: key "NAME" { algorithm hmac-sha256; secret "..."; };`, file)
	}
	parts := map[string]string{}
	for _, part := range keyPart.FindAllSubmatch(found[2], -1) {
		parts[string(part[1])] = string(part[2])
	}
	k := &TransferKey{dns.CanonicalName(string(found[1])), dns.CanonicalName(parts["algorithm"]), parts["secret"]}
	if _, err := base64.StdEncoding.DecodeString(k.Secret); err != nil || k.Secret == "" || parts["algorithm"] == "" {
		return nil, fmt.Errorf("%s: the key %s has no algorithm or no base64 secret", file, found[1])
	}
	return k, nil
}

// FetchZone transfers a zone from a server (see CopyZone) and writes it as text that naming.ReadZone reads.
func FetchZone(ctx context.Context, server, zone string, key *TransferKey, out io.Writer) error {
	text := bufio.NewWriter(out)
	if err := eachZoneRecord(ctx, server, zone, key, func(rr dns.RR) error {
		_, err := text.WriteString(rr.String() + "\n")
		return err
	}); err != nil {
		return err
	}
	return text.Flush()
}

// withPort returns the server with a port; the default is 53.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err != nil {
		return net.JoinHostPort(strings.Trim(server, "[]"), "53")
	}
	return server
}
