package authn

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"portolan/internal/outbound"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Kerberos is a realm of Kerberos (RFC 4120), asked at one key distribution center.
type Kerberos struct {
	// Host is the key distribution center, with a port where that is not 88.
	Host, Realm string
	// Keytab has the key of the service that tickets are asked for: the answer of a center that does not know it proves nothing.
	Keytab *Keytab
}

// Keytab is the key of one service.
type Keytab struct {
	keys    *keytab.Keytab
	service types.PrincipalName
}

// ParseKeytab reads a keytab in base64. Its first entry is the service's: HTTP/portolan.example.net.
func ParseKeytab(text string) (*Keytab, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	keys := keytab.New()
	if err := readKeytab(keys, raw); err != nil {
		return nil, err
	}
	if len(keys.Entries) == 0 {
		return nil, errors.New("the keytab is empty")
	}
	return &Keytab{keys, types.NewPrincipalName(nametype.KRB_NT_SRV_INST, strings.Join(keys.Entries[0].Principal.Components, "/"))}, nil
}

// readKeytab reads a keytab; the library panics at some that are cut off.
func readKeytab(into *keytab.Keytab, raw []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("not a keytab")
		}
	}()
	return into.Unmarshal(raw)
}

// Realm is the realm that the keytab's service belongs to.
func (k *Keytab) Realm() string { return k.keys.Entries[0].Principal.Realm }

// Check asks whether a name and a password are right: the center gives a ticket for the password, and with that one for the service, which
// the service's key must open. ErrWrong says that they are not, ErrAway that nobody has answered who knows the service's key.
func (k Kerberos) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if name == "" || password == "" || strings.ContainsAny(name, "/@") { // a service, or a name of another realm
		return id, ErrWrong
	}
	ctx, end := asking(ctx)
	defer end()
	at, err := k.center(ctx)
	if err != nil {
		return id, err
	}
	type found struct {
		id  Identity
		err error
	}
	came := make(chan found, 1)
	go func() { // the library takes no context; each of its exchanges has a time of its own
		id, err := k.ask(at, name, password)
		came <- found{id, err}
	}()
	select {
	case f := <-came:
		return f.id, f.err
	case <-ctx.Done():
		return id, away("asking: %w", ctx.Err())
	}
}

// ask makes the exchanges with the center at an address.
func (k Kerberos) ask(at, name, password string) (id Identity, err error) {
	c := config.New()
	c.LibDefaults.DefaultRealm, c.LibDefaults.DNSLookupKDC, c.LibDefaults.DNSLookupRealm = k.Realm, false, false
	c.LibDefaults.UDPPreferenceLimit = 1 // over TCP alone
	c.Realms = []config.Realm{{Realm: k.Realm, KDC: []string{at}}}
	user := client.NewWithPassword(name, k.Realm, password, c, client.DisablePAFXFAST(true))
	defer user.Destroy()
	if err := user.Login(); err != nil {
		return id, refusedBy(err)
	}
	ticket, key, err := user.GetServiceTicket(k.Keytab.service.PrincipalNameString())
	if err != nil {
		return id, away("asking for a ticket of %s: %w", k.Keytab.service.PrincipalNameString(), err)
	}
	if err := ticket.DecryptEncPart(k.Keytab.keys, &k.Keytab.service); err != nil {
		return id, away("the center %s does not know the key of %s that the keytab has: %w", k.Host, k.Keytab.service.PrincipalNameString(), err)
	}
	inside := ticket.DecryptedEncPart
	if inside.CName.PrincipalNameString() != name || inside.CRealm != k.Realm || !bytes.Equal(inside.Key.KeyValue, key.KeyValue) {
		return id, away("the center %s gives the ticket of somebody else", k.Host)
	}
	return Identity{Name: name}, nil
}

// center gives the address of the center, which the library then connects to: the first one that the manager may connect to.
func (k Kerberos) center(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(k.Host)
	if err != nil {
		host, port = k.Host, "88"
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", away("looking up the center: %w", err)
	}
	var refused error
	for _, a := range addresses {
		if refused = outbound.Check(a.Unmap()); refused == nil {
			return net.JoinHostPort(a.Unmap().String(), port), nil
		}
	}
	return "", away("asking: %w", errors.Join(refused, noAddress(addresses)))
}

// noAddress is the error of a name without addresses.
func noAddress(addresses []netip.Addr) error {
	if len(addresses) == 0 {
		return errors.New("the center's name has no address")
	}
	return nil
}

// refusedBy tells a center's refusal of a user from what else went wrong.
func refusedBy(err error) error {
	var k krberror.Krberror
	if errors.As(err, &k) {
		for _, code := range []int32{errorcode.KDC_ERR_PREAUTH_FAILED, errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN,
			errorcode.KDC_ERR_CLIENT_REVOKED, errorcode.KDC_ERR_KEY_EXPIRED, errorcode.KDC_ERR_NAME_EXP, errorcode.KDC_ERR_POLICY,
			errorcode.KDC_ERR_NULL_KEY, errorcode.KDC_ERR_CLIENT_NOTYET} {
			if strings.Contains(k.Error(), errorcode.Lookup(code)) {
				return ErrWrong
			}
		}
		if k.RootCause == krberror.DecryptingError || strings.Contains(k.Error(), krberror.DecryptingError) { // no pre-authentication
			return ErrWrong
		}
	}
	return away("asking: %w", err)
}
