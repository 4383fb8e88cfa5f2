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

// Check verifies a name and a password: it gets a ticket with the password, and with that a ticket for the service, which the key in the
// keytab must decrypt (RFC 4120 section 3). It returns ErrWrong if the center refuses the user, and ErrAway if the center cannot be
// reached or does not know the key.
func (k Kerberos) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if name == "" || password == "" || strings.ContainsAny(name, "/@") { // a service, or a name of another realm
		return id, ErrWrong
	}
	ctx, end := asking(ctx)
	defer end()
	relay, err := newKerberosRelay(ctx, k.center())
	if err != nil {
		return id, away("asking: %w", err)
	}
	defer relay.close()
	id, err = k.ask(relay.address(), name, password)
	if failed := relay.failure(); err != nil && failed != nil {
		return id, away("asking: %w", failed)
	}
	return id, err
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

// center is the host and port of the center.
func (k Kerberos) center() string {
	if _, _, err := net.SplitHostPort(k.Host); err == nil {
		return k.Host
	}
	return net.JoinHostPort(k.Host, "88")
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
