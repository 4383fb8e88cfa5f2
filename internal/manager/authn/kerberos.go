package authn

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Kerberos verifies passwords in a Kerberos realm (RFC 4120), at one key distribution center.
type Kerberos struct {
	// Host is the key distribution center, with a port if it is not 88.
	Host, Realm string
	// Keytab has the key of the service that tickets are requested for. A center that does not know this key proves nothing.
	Keytab *Keytab
}

// Keytab is the key of one service.
type Keytab struct {
	keys    *keytab.Keytab
	service types.PrincipalName
}

// ParseKeytab parses a keytab in base64. The first entry is the service, such as HTTP/portolan.example.net.
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

// readKeytab parses a keytab. The library panics for some truncated files.
func readKeytab(into *keytab.Keytab, raw []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("not a keytab")
		}
	}()
	return into.Unmarshal(raw)
}

// Realm returns the realm of the keytab's service.
func (k *Keytab) Realm() string { return k.keys.Entries[0].Principal.Realm }

// Check verifies a name and a password: it gets a ticket with the password, and with that a ticket for the service, which the key in the
// keytab must decrypt (RFC 4120 section 3). It returns ErrWrong if the center refuses the user, and ErrUnavailable if the center cannot be
// reached or does not know the key.
func (k Kerberos) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if name == "" || password == "" || strings.ContainsAny(name, "/@") { // a service, or a name of another realm
		return id, ErrWrong
	}
	ctx, end := withAskTime(ctx)
	defer end()
	relay, err := newKerberosRelay(ctx, k.center())
	if err != nil {
		return id, unavailable("asking: %w", err)
	}
	defer relay.close()
	id, err = k.ask(relay.address(), name, password)
	if failed := relay.failure(); err != nil && failed != nil {
		return id, unavailable("asking: %w", failed)
	}
	return id, err
}

// ask performs the exchanges with the center at an address.
func (k Kerberos) ask(at, name, password string) (id Identity, err error) {
	c := config.New()
	c.LibDefaults.DefaultRealm, c.LibDefaults.DNSLookupKDC, c.LibDefaults.DNSLookupRealm = k.Realm, false, false
	c.LibDefaults.UDPPreferenceLimit = 1 // TCP only
	c.Realms = []config.Realm{{Realm: k.Realm, KDC: []string{at}}}
	user := client.NewWithPassword(name, k.Realm, password, c, client.DisablePAFXFAST(true))
	defer user.Destroy()
	if err := user.Login(); err != nil {
		return id, loginError(err)
	}
	ticket, key, err := user.GetServiceTicket(k.Keytab.service.PrincipalNameString())
	if err != nil {
		return id, unavailable("asking for a ticket of %s: %w", k.Keytab.service.PrincipalNameString(), err)
	}
	if err := ticket.DecryptEncPart(k.Keytab.keys, &k.Keytab.service); err != nil {
		return id, unavailable("the center %s does not know the key of %s that the keytab has: %w", k.Host,
			k.Keytab.service.PrincipalNameString(), err)
	}
	inside := ticket.DecryptedEncPart
	if inside.CName.PrincipalNameString() != name || inside.CRealm != k.Realm || !bytes.Equal(inside.Key.KeyValue, key.KeyValue) {
		return id, unavailable("the center %s returned the ticket of another user", k.Host)
	}
	return Identity{Name: name}, nil
}

// center returns the host and port of the center.
func (k Kerberos) center() string {
	if _, _, err := net.SplitHostPort(k.Host); err == nil {
		return k.Host
	}
	return net.JoinHostPort(k.Host, "88")
}

// loginError returns ErrWrong if the center refused the user, otherwise ErrUnavailable.
func loginError(err error) error {
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
	return unavailable("asking: %w", err)
}
