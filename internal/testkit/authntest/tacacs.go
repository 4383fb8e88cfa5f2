package authntest

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // CHAP requires it (RFC 8907 section 5.4.2.3)
	"net"
	"net/netip"
	"testing"

	"github.com/facebookincubator/tacquito"
)

// TACACS is a TACACS+ server with one user.
type TACACS struct {
	// Secret is the shared secret. Name and Password are the user's. Groups are the arguments of the authorization reply.
	Secret, Name, Password string
	Groups                 []string
	// Plain makes the server reply without the shared secret, as an attacker on the network would.
	Plain bool
}

// Start starts the server on a loopback port until the test ends, and returns its address.
func (s TACACS) Start(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tacquito.NewServer(silent{}, s).Serve(ctx, l)
	}()
	t.Cleanup(func() {
		end()
		_ = l.Close()
		<-done
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Get implements tacquito.SecretProvider: it returns the secret and the handler for a client.
func (s TACACS) Get(context.Context, net.Addr) ([]byte, tacquito.Handler, error) {
	return []byte(s.Secret), tacquito.HandlerFunc(s.handle), nil
}

func (s TACACS) handle(response tacquito.Response, request tacquito.Request) {
	if s.Plain {
		body, _ := tacquito.NewAuthenReply(tacquito.SetAuthenReplyStatus(tacquito.AuthenStatusPass)).MarshalBinary()
		h := request.Header
		h.SeqNo++
		h.Flags.Set(tacquito.UnencryptedFlag)
		_, _ = response.Write(tacquito.NewPacket(tacquito.SetPacketHeader(&h), tacquito.SetPacketBody(body)))
		return
	}
	switch request.Header.Type {
	case tacquito.Authenticate:
		var start tacquito.AuthenStart
		status := tacquito.AuthenStatusFail
		if tacquito.Unmarshal(request.Body, &start) == nil && string(start.User) == s.Name && s.hasPassword(start) {
			status = tacquito.AuthenStatusPass
		}
		_, _ = response.Reply(tacquito.NewAuthenReply(tacquito.SetAuthenReplyStatus(status)))
	case tacquito.Authorize:
		var asked tacquito.AuthorRequest
		args := append([]string{}, s.Groups...)
		status := tacquito.AuthorStatusPassAdd
		if tacquito.Unmarshal(request.Body, &asked) != nil || len(asked.Args) == 0 || asked.Args[0] != "service=portolan" {
			status, args = tacquito.AuthorStatusFail, nil
		}
		_, _ = response.Reply(tacquito.NewAuthorReply(tacquito.SetAuthorReplyStatus(status), tacquito.SetAuthorReplyArgs(args...)))
	}
}

// hasPassword reports whether the password of a sign-in is the user's.
func (s TACACS) hasPassword(start tacquito.AuthenStart) bool {
	data := []byte(start.Data)
	switch {
	case start.Type == tacquito.AuthenTypePAP:
		return string(data) == s.Password
	case start.Type == tacquito.AuthenTypeCHAP && len(data) == 33:
		sum := md5.Sum(append(append([]byte{data[0]}, s.Password...), data[1:17]...)) //nolint:gosec // CHAP requires MD5
		return bytes.Equal(sum[:], data[17:])
	}
	return false
}

// silent is a logger that discards everything.
type silent struct{}

func (silent) Infof(context.Context, string, ...any)                {}
func (silent) Errorf(context.Context, string, ...any)               {}
func (silent) Debugf(context.Context, string, ...any)               {}
func (silent) Record(context.Context, map[string]string, ...string) {}
