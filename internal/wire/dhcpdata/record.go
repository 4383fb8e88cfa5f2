package dhcpdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// Record is an item in the form that is sent, stored and hashed: its letter and its JSON.
type Record []byte

// MaxRecord is the maximum size of a record in octets.
const MaxRecord = 64 << 10

// Encode returns the record of an item. It returns an error if the item is invalid.
func Encode(x Item) (Record, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	if len(text)+1 > MaxRecord {
		return nil, fmt.Errorf("the record has %d octets, more than %d", len(text)+1, MaxRecord)
	}
	return append(Record{x.letter()}, text...), nil
}

// Decode returns the item of a record. It rejects unknown kinds and members, so that each of them has an effect.
func Decode(r Record) (Item, error) {
	if len(r) == 0 || len(r) > MaxRecord {
		return nil, fmt.Errorf("a record has %d octets", len(r))
	}
	switch r[0] {
	case 'S':
		return decode[Server](r)
	case 'N':
		return decode[Network](r)
	case 'P':
		return decode[Pool](r)
	case 'R':
		return decode[Reservation](r)
	case 'C':
		return decode[Class](r)
	case 'U':
		return decode[Subclass](r)
	case 'M':
		return decode[MACPool](r)
	case 'A':
		return decode[MACAddress](r)
	case 'O':
		return decode[Option](r)
	case 'V':
		return decode[Service](r)
	case 'F':
		return decode[Pair](r)
	case 'Z':
		return decode[Zone](r)
	case 'Q':
		return decode[Order](r)
	}
	return nil, fmt.Errorf("unknown kind %q of records", r[0])
}

func decode[T Item](r Record) (Item, error) {
	var x T
	d := json.NewDecoder(bytes.NewReader(r[1:]))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return nil, fmt.Errorf("decode DHCP record of type %q: %w", r[0], err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode DHCP record of type %q: text after the JSON object", r[0])
	}
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("decode DHCP record of type %q: %w", r[0], err)
	}
	return x, nil
}

// Limits of the texts and identifiers of a record, in octets.
const (
	maxText       = 1020
	maxIdentifier = 255
	maxDUID       = 130
	maxMAC        = 16
	maxValue      = 24 << 10
)

var errID = errors.New("the id must be positive")

func checkHead(id int64, name string) error {
	if id <= 0 {
		return errID
	}
	if len(name) > maxText {
		return fmt.Errorf("the name has %d octets, more than %d", len(name), maxText)
	}
	return nil
}

// plain reports whether an address is valid, without a zone, and not an IPv4 address in IPv6 form.
func plain(a netip.Addr) bool { return a.IsValid() && a.Zone() == "" && !a.Is4In6() }

func (x Server) check() error {
	for _, a := range slices.Concat(x.Addresses, x.OtherAddresses) {
		if !plain(a) {
			return fmt.Errorf("%s is not an address", a)
		}
	}
	if len(x.DUID) > maxDUID {
		return fmt.Errorf("the DUID has %d octets, more than %d", len(x.DUID), maxDUID)
	}
	return checkHead(x.ID, x.Name)
}

func (x Network) check() error {
	switch {
	case !x.Prefix.IsValid() || x.Prefix != x.Prefix.Masked() || !plain(x.Prefix.Addr()):
		return fmt.Errorf("%s is not a prefix", x.Prefix)
	case x.Gateway.IsValid() && (!plain(x.Gateway) || x.Gateway.Is4() != x.Prefix.Addr().Is4()):
		return fmt.Errorf("the gateway %s is not an address of %s", x.Gateway, x.Prefix)
	case x.Identifier.IsValid() && (!plain(x.Identifier) || x.Identifier.Is4() != x.Prefix.Addr().Is4()):
		return fmt.Errorf("the identifier %s is not an address of the family of %s", x.Identifier, x.Prefix)
	case x.Shared < 0 || x.Pair < 0:
		return errID
	case len(x.SharedName) > maxText:
		return errors.New("the name of the shared network is too long")
	}
	return checkHead(x.ID, x.Name)
}

func (x Pool) check() error {
	if len(x.Ranges) == 0 && len(x.Probed) > 0 {
		return errors.New("the pool has static addresses and no ranges")
	}
	for _, all := range [][]Interval{x.Ranges, x.Probed} {
		for i, one := range all {
			if err := one.check(); err != nil {
				return err
			}
			if i > 0 && (all[i-1].Last.Is4() != one.First.Is4() || !all[i-1].Last.Less(one.First)) {
				return fmt.Errorf("the ranges %s and %s are not in order", all[i-1], one)
			}
		}
	}
	if x.Whole != (Interval{}) {
		if err := x.Whole.check(); err != nil {
			return err
		}
		if n := len(x.Ranges); n > 0 && (!x.Whole.Contains(x.Ranges[0].First) || !x.Whole.Contains(x.Ranges[n-1].Last)) {
			return fmt.Errorf("the pool %s contains addresses outside of %s", x.Name, x.Whole)
		}
	}
	if x.DelegatedLength != 0 && (x.DelegatedLength < 1 || x.DelegatedLength > 64 || len(x.Ranges) > 0 && x.Ranges[0].First.Is4()) {
		return fmt.Errorf("prefixes of length %d cannot be delegated", x.DelegatedLength)
	}
	if x.LowWaterMark < 0 || x.LowWaterMark > 100 || x.HighWaterMark < 0 || x.HighWaterMark > 100 {
		return errors.New("a water mark must be 0 to 100")
	}
	return checkHead(x.ID, x.Name)
}

func (x Reservation) check() error {
	switch {
	case !plain(x.Address):
		return errors.New("the reservation has no address")
	case len(x.MAC)+len(x.ClientID)+len(x.DUID) == 0:
		return fmt.Errorf("the reservation of %s names no client", x.Address)
	case len(x.MAC) > maxMAC || len(x.ClientID) > maxIdentifier || len(x.DUID) > maxDUID:
		return fmt.Errorf("the reservation of %s has an identifier that is too long", x.Address)
	case x.PrefixLength != 0 && (x.Address.Is4() || x.PrefixLength < 1 || x.PrefixLength > 64):
		return fmt.Errorf("the prefix %s/%d cannot be reserved", x.Address, x.PrefixLength)
	case len(x.HostName) > maxIdentifier:
		return fmt.Errorf("the host name of %s has more than %d octets", x.Address, maxIdentifier)
	}
	return checkHead(x.ID, x.Name)
}

func (x Class) check() error {
	if (x.Match == nil) == (x.If == nil) {
		return fmt.Errorf("the class %s needs a value to match or a condition", x.Name)
	}
	err := checkHead(x.ID, x.Name)
	if x.Match != nil {
		return errors.Join(err, x.Match.check(false))
	}
	return errors.Join(err, x.If.check(true))
}

func (x Subclass) check() error {
	if len(x.Value) > maxIdentifier+1 {
		return fmt.Errorf("the value of a subclass has %d octets, more than %d", len(x.Value), maxIdentifier+1)
	}
	return checkHead(x.ID, x.Name)
}

func (x MACPool) check() error { return checkHead(x.ID, x.Name) }

func (x MACAddress) check() error {
	if len(x.MAC) == 0 || len(x.MAC) > maxMAC {
		return fmt.Errorf("a MAC address has %d octets", len(x.MAC))
	}
	return checkHead(x.ID, x.Name)
}

// levels are the levels in order.
var levels = []Level{AtDefault, AtConfiguration, AtServerGroup, AtServer, AtBlock, AtNetwork, AtRange, AtMACPool, AtClass, AtSubclass,
	AtMACAddress, AtAddress}

func (s Source) check() error {
	if !slices.Contains(levels, s.Level) {
		return fmt.Errorf("%q is not a level", s.Level)
	}
	return checkHead(s.ID, s.Name)
}

func (x Option) check() error {
	switch {
	case x.At < 0:
		return errID
	case x.Name == "" || len(x.Name) > maxIdentifier:
		return fmt.Errorf("the option %d has a name of %d octets", x.Code, len(x.Name))
	case x.Code == 0 || !x.V6 && x.Code > 254:
		return fmt.Errorf("the option %s has the code %d", x.Name, x.Code)
	case len(x.Vendor) > maxIdentifier:
		return fmt.Errorf("the vendor of the option %s has more than %d octets", x.Name, maxIdentifier)
	case len(x.Value) > maxValue:
		return fmt.Errorf("the option %s has %d octets, more than %d", x.Name, len(x.Value), maxValue)
	case x.Vendor != "" && !x.V6 && len(x.Value) > maxIdentifier:
		return fmt.Errorf("the sub-option %s has %d octets, more than %d", x.Name, len(x.Value), maxIdentifier)
	}
	return x.From.check()
}

func (x Service) check() error {
	if x.At < 0 {
		return errID
	}
	if err := checkService(x.Name, x.V6, x.Value); err != nil {
		return err
	}
	return x.From.check()
}

func (x Pair) check() error {
	switch {
	case x.Partner <= 0:
		return errID
	case !x.Endpoint.IsValid():
		return fmt.Errorf("the pair %d has no endpoint of the partner", x.ID)
	case x.Split < 0 || x.Split > 256:
		return fmt.Errorf("the split %d is not between 0 and 256", x.Split)
	case len(x.PartnerKey) != 0 && len(x.PartnerKey) != 32:
		return fmt.Errorf("the key of the partner of the pair %d has %d octets", x.ID, len(x.PartnerKey))
	case x.MCLT == 0 || x.MCLT == math.MaxUint32:
		return fmt.Errorf("the maximum client lead time is %d", x.MCLT)
	}
	return checkHead(x.ID, x.Name)
}

func (x Zone) check() error {
	switch {
	case !strings.HasSuffix(x.Name, ".") || x.Name != strings.ToLower(x.Name):
		return fmt.Errorf("the zone %q is not an absolute name in lower case", x.Name)
	case !plain(x.Primary) || x.Secondary.IsValid() && !plain(x.Secondary):
		return fmt.Errorf("the zone %s has no server", x.Name)
	case (x.KeyName == "") != (len(x.KeySecret) == 0), (x.KeyName == "") != (x.KeyAlgorithm == ""):
		return fmt.Errorf("the key of the zone %s has no name, no algorithm or no secret", x.Name)
	}
	return checkHead(x.ID, x.Name)
}

func (x Order) check() error {
	if !plain(x.Address) || x.Action != EndLease && x.Action != ClearAddress && x.Action != RestoreLease {
		return fmt.Errorf("%q of %s is not an order", x.Action, x.Address)
	}
	if (x.Action == RestoreLease) != (x.Lease != nil) {
		return fmt.Errorf("the order %q of %s has a lease, or lacks it", x.Action, x.Address)
	}
	if err := x.Lease.check(x.Address); err != nil {
		return err
	}
	if x.Start < 0 {
		return fmt.Errorf("the order for %s names a lease from %d", x.Address, x.Start)
	}
	return checkHead(x.ID, "")
}

// Limits of a restored lease: octets of a hardware address, of an identifier, and of a host name.
const (
	maxRestoredHardware   = 16
	maxRestoredIdentifier = 255
)

// check returns an error if the lease is invalid. l may be nil.
func (l *RestoredLease) check(a netip.Addr) error {
	switch {
	case l == nil:
		return nil
	case l.Start < 0 || l.Expires < l.Start:
		return fmt.Errorf("the lease of %s ends before it begins", a)
	case l.PrefixLength < 0 || l.PrefixLength > 128 || l.PrefixLength > 0 && a.Is4():
		return fmt.Errorf("the lease of %s has the prefix length %d", a, l.PrefixLength)
	case !l.Abandoned && a.Is4() && len(l.Hardware)+len(l.ClientID) == 0, !l.Abandoned && a.Is6() && len(l.DUID) == 0:
		return fmt.Errorf("the lease of %s has no client", a)
	case len(l.Hardware) > maxRestoredHardware:
		return fmt.Errorf("the lease of %s has a hardware address of %d octets", a, len(l.Hardware))
	}
	for _, text := range []string{string(l.ClientID), string(l.DUID), l.HostName, string(l.CircuitID), string(l.RemoteID),
		string(l.VendorClass)} {
		if len(text) > maxRestoredIdentifier {
			return fmt.Errorf("the lease of %s has an identifier of %d octets", a, len(text))
		}
	}
	return nil
}
