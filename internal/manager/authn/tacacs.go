package authn

import (
	"context"
	"crypto/md5" //nolint:gosec // CHAP requires it (RFC 8907 section 5.4.2.3)
	"crypto/rand"
	"net"
	"strconv"
	"strings"
	"time"

	"portolan/internal/manager/outbound"

	"github.com/facebookincubator/tacquito"
)

// TACACS is a TACACS+ server (RFC 8907).
type TACACS struct {
	Host   string
	Port   int64
	Secret string
	// CHAP sends passwords by CHAP instead of PAP.
	CHAP bool
	// Timeout is the maximum duration of one exchange.
	Timeout time.Duration
	// GroupAttribute is the authorization argument with a user's groups; empty requests no authorization.
	GroupAttribute string
	// Arguments are sent with an authorization request, such as service=portolan.
	Arguments []string
}

// service is the argument that RFC 8907 section 8.2 requires in an authorization request. It is added if Arguments do not have it.
const service = "service"

// Check verifies a name and a password, and returns the groups of the user. It returns ErrWrong if the server refuses the authentication or
// the authorization. It returns ErrUnavailable if the server does not answer, or its answer does not conform to RFC 8907.
func (t TACACS) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if len(name) > 255 || len(password) > 255-17 || name == "" { // lengths are one octet; CHAP adds 17 octets
		return id, ErrWrong
	}
	kind, data := tacquito.AuthenTypePAP, password
	if t.CHAP {
		kind, data = tacquito.AuthenTypeCHAP, chapData(password)
	}
	var reply tacquito.AuthenReply
	start := tacquito.NewAuthenStart(tacquito.SetAuthenStartAction(tacquito.AuthenActionLogin),
		tacquito.SetAuthenStartPrivLvl(tacquito.PrivLvlUser), tacquito.SetAuthenStartType(kind),
		tacquito.SetAuthenStartService(tacquito.AuthenServiceLogin), tacquito.SetAuthenStartUser(tacquito.AuthenUser(name)),
		tacquito.SetAuthenStartPort("portolan"), tacquito.SetAuthenStartData(tacquito.AuthenData(data)))
	if err := t.exchange(ctx, tacquito.Authenticate, tacquito.MinorVersionOne, start, &reply); err != nil {
		return id, err
	}
	switch reply.Status {
	case tacquito.AuthenStatusPass:
	case tacquito.AuthenStatusError:
		return id, unavailable("the TACACS+ server answers ERROR: %s", reply.ServerMsg)
	default: // also GETDATA and similar, which need a user's answer
		return id, ErrWrong
	}
	id.Name = name
	if t.GroupAttribute != "" {
		id.Groups, err = t.groups(ctx, name, kind)
	}
	return id, err
}

// groups requests the groups of a user who has just signed in with an authentication type.
func (t TACACS) groups(ctx context.Context, name string, kind tacquito.AuthenType) (groups []string, err error) {
	arguments := tacquito.Args{}
	has := false
	for _, one := range t.Arguments {
		arguments = append(arguments, tacquito.Arg(one))
		has = has || strings.HasPrefix(one, service+"=")
	}
	if !has {
		arguments = append(tacquito.Args{service + "=portolan"}, arguments...)
	}
	var reply tacquito.AuthorReply
	request := tacquito.NewAuthorRequest(tacquito.SetAuthorRequestMethod(tacquito.AuthenMethodTacacsPlus),
		tacquito.SetAuthorRequestPrivLvl(tacquito.PrivLvlUser), tacquito.SetAuthorRequestType(kind),
		tacquito.SetAuthorRequestService(tacquito.AuthenServiceLogin), tacquito.SetAuthorRequestUser(tacquito.AuthenUser(name)),
		tacquito.SetAuthorRequestPort("portolan"), tacquito.SetAuthorRequestArgs(arguments))
	if err := t.exchange(ctx, tacquito.Authorize, tacquito.MinorVersionDefault, request, &reply); err != nil {
		return nil, err
	}
	switch reply.Status {
	case tacquito.AuthorStatusPassAdd, tacquito.AuthorStatusPassRepl:
	case tacquito.AuthorStatusError:
		return nil, unavailable("the TACACS+ server answers ERROR to an authorization: %s", reply.ServerMsg)
	default:
		return nil, ErrWrong
	}
	for _, one := range reply.Args {
		at := strings.IndexAny(string(one), "=*") // "*" marks an optional argument (RFC 8907 section 6.1)
		if at < 0 || string(one)[:at] != t.GroupAttribute {
			continue
		}
		for _, group := range strings.Split(string(one)[at+1:], ",") {
			if group = strings.TrimSpace(group); group != "" {
				groups = append(groups, group)
			}
		}
	}
	return groups, nil
}

// exchange sends one packet over a new connection and reads the answer into reply. An answer that is not obfuscated by the secret, or has
// another session id, is rejected.
func (t TACACS) exchange(ctx context.Context, kind tacquito.HeaderType, minor uint8, question, reply tacquito.EncoderDecoder) error {
	ctx, end := context.WithTimeout(ctx, t.Timeout)
	defer end()
	conn, err := outbound.Dialer().DialContext(ctx, "tcp", net.JoinHostPort(t.Host, strconv.FormatInt(t.Port, 10)))
	if err != nil {
		return unavailable("asking: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the answer was read, or the error is returned
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(until); err != nil {
			return unavailable("asking: %w", err)
		}
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return unavailable("query: %T is not a TCP connection", conn)
	}
	client, err := tacquito.NewClient(tacquito.SetClientWithConn(tcp, []byte(t.Secret)))
	if err != nil {
		return unavailable("asking: %w", err)
	}
	session := make([]byte, 4)
	_, _ = rand.Read(session) // never fails
	number := tacquito.SessionID(uint32(session[0])<<24 | uint32(session[1])<<16 | uint32(session[2])<<8 | uint32(session[3]))
	body, err := question.MarshalBinary()
	if err != nil { // a name that is not ASCII; RFC 8907 section 3.7 leaves it to the server's configuration
		return ErrWrong
	}
	answer, err := client.Send(tacquito.NewPacket(tacquito.SetPacketHeader(tacquito.NewHeader(
		tacquito.SetHeaderVersion(tacquito.Version{MajorVersion: tacquito.MajorVersion, MinorVersion: minor}),
		tacquito.SetHeaderType(kind), tacquito.SetHeaderSeqNo(1), tacquito.SetHeaderSessionID(number))), tacquito.SetPacketBody(body)))
	if err != nil {
		return unavailable("asking: %w", err)
	}
	h := answer.Header
	if h.Type != kind || h.SessionID != number || h.SeqNo != 2 || h.Flags.Has(tacquito.UnencryptedFlag) {
		return unavailable("the TACACS+ server answers with another session, or without the shared secret")
	}
	if err := tacquito.Unmarshal(answer.Body, reply); err != nil {
		return unavailable("the answer of the TACACS+ server cannot be read: the shared secret may be another one there: %w", err)
	}
	return nil
}

// chapData returns the data of a CHAP sign-in: an identifier, a challenge, and the response to it.
func chapData(password string) string {
	number, challenge := byte(1), make([]byte, 16)
	_, _ = rand.Read(challenge)                                               // never fails
	sum := md5.Sum(append(append([]byte{number}, password...), challenge...)) //nolint:gosec // CHAP requires MD5
	return string(number) + string(challenge) + string(sum[:])
}
