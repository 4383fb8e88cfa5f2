package dhcpdata

import (
	"crypto/md5" //nolint:gosec // the digest of earlier servers identifies a client, and protects nothing
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// clientFQDN is the option of a client with its full name (RFC 4702 and 4704).
type clientFQDN struct {
	present bool
	// server is the flag S: the client wishes that the server keeps the address record. none is the flag N: it wishes no updates. encoded is
	// the flag E of DHCPv4: the name is in wire format.
	server, none, encoded bool
	// name is the name without a final dot, cleaned; raw is the field with the name.
	name string
	raw  []byte
}

// The flags of the option. In DHCPv6, fqdnNone6 stands for N, and there is no E.
const (
	fqdnServer   = 1
	fqdnOverride = 2
	fqdnEncoded  = 4
	fqdnNone6    = 4
	fqdnNone     = 8
)

// readFQDN reads the option of DHCPv4. A malformed option does not exist: the client is served without it.
func readFQDN(data []byte) clientFQDN {
	const head = 3 // the flags, and two obsolete codes
	if len(data) < head {
		return clientFQDN{}
	}
	f := clientFQDN{present: true, server: data[0]&fqdnServer != 0, encoded: data[0]&fqdnEncoded != 0, none: data[0]&fqdnNone != 0,
		raw: data[head:]}
	if !f.encoded {
		f.name = CleanHostName(f.raw)
		return f
	}
	name, ok := nameOfWire(f.raw)
	if !ok {
		return clientFQDN{}
	}
	f.name = CleanHostName([]byte(name))
	return f
}

// readFQDN6 reads the option of DHCPv6.
func readFQDN6(data []byte) clientFQDN {
	if len(data) < 1 {
		return clientFQDN{}
	}
	name, ok := nameOfWire(data[1:])
	if !ok {
		return clientFQDN{}
	}
	return clientFQDN{present: true, server: data[0]&fqdnServer != 0, none: data[0]&fqdnNone6 != 0, encoded: true, raw: data[1:],
		name: CleanHostName([]byte(name))}
}

// nameOfWire returns a name in wire format as text. The root at its end may be absent (RFC 4702 section 2.3.1); compression is not allowed.
func nameOfWire(data []byte) (name string, ok bool) {
	const maxName, maxLabel = 255, 63
	if len(data) > maxName {
		return "", false
	}
	var labels []string
	for len(data) > 0 && data[0] != 0 {
		n := int(data[0])
		if n > maxLabel || n >= len(data) {
			return "", false
		}
		labels = append(labels, string(data[1:1+n]))
		data = data[1+n:]
	}
	return strings.Join(labels, "."), true
}

// wireOfName returns an absolute name in wire format.
func wireOfName(name string) (out []byte) {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label != "" {
			out = append(append(out, byte(len(label))), label...)
		}
	}
	return append(out, 0)
}

// answerFlags returns the flags S, O and N of the answer: S if the server keeps the address record, O if the client wished otherwise, and N
// if the server updates nothing.
func (n named) answerFlags(f clientFQDN) (server, override, none bool) {
	server = n.names != nil && n.names.Forward
	return server, server != f.server && !f.none, n.names == nil
}

// answer returns the option of DHCPv4 for the answer. The name is that of the server, in the encoding of the client.
func (n named) answer(f clientFQDN) []byte {
	server, override, none := n.answerFlags(f)
	flags := byte(0)
	for flag, set := range map[byte]bool{fqdnServer: server, fqdnOverride: override, fqdnEncoded: f.encoded, fqdnNone: none} {
		if set {
			flags |= flag
		}
	}
	return append([]byte{flags, 255, 255}, n.answerName(f)...)
}

// answer6 returns the option of DHCPv6 for the answer.
func (n named) answer6(f clientFQDN) []byte {
	server, override, none := n.answerFlags(f)
	flags := byte(0)
	for flag, set := range map[byte]bool{fqdnServer: server, fqdnOverride: override, fqdnNone6: none} {
		if set {
			flags |= flag
		}
	}
	return append([]byte{flags}, n.answerName(f)...)
}

func (n named) answerName(f clientFQDN) []byte {
	switch {
	case n.host == "":
		return f.raw
	case f.encoded:
		return wireOfName(n.host)
	}
	return []byte(strings.TrimSuffix(n.host, "."))
}

// identifier identifies a client in a guard record. kind is its code in RFC 4701 section 3.3.
type identifier struct {
	kind byte
	data []byte
}

// The kinds of identifiers.
const (
	byHardware   = 0
	byIdentifier = 1
	byDUID       = 2
)

// identifiers4 returns the identifier of a client of DHCPv4: the DUID of a client identifier of RFC 4361, the client identifier, or the
// hardware address. A client without a DUID may have registered its name by DHCPv6 with the DUID of its hardware address (type LL).
func identifiers4(hardwareType byte, hardware, clientID []byte) []identifier {
	const node, duidAt, minDUID = 255, 5, 3
	if len(clientID) >= duidAt+minDUID && clientID[0] == node {
		return []identifier{{byDUID, clientID[duidAt:]}}
	}
	all := []identifier{{byIdentifier, clientID}}
	if len(clientID) == 0 {
		all = []identifier{{byHardware, slices.Concat([]byte{hardwareType}, hardware)}}
	}
	const linkLayer = 3
	if len(hardware) > 0 {
		all = append(all, identifier{byDUID, slices.Concat([]byte{0, linkLayer, 0, hardwareType}, hardware)})
	}
	return all
}

// identifiers6 returns the identifier of a client of DHCPv6, its DUID, and those that the same machine has in DHCPv4 if it sends none.
func identifiers6(duid []byte, hardwareType uint16, hardware []byte) []identifier {
	all := []identifier{{byDUID, duid}}
	if len(hardware) > 0 && hardwareType < 256 {
		typed := slices.Concat([]byte{byte(hardwareType)}, hardware)
		all = append(all, identifier{byIdentifier, typed}, identifier{byHardware, typed})
	}
	return all
}

// guardValues returns the values of the guard record of a name: the data of a DHCID record (RFC 4701 section 3), or the text of the TXT
// record of earlier servers. With only, it returns the value of the first identifier.
func guardValues(kind Guard, name string, all []identifier, only bool) (values []Hex) {
	for _, one := range all {
		if kind == GuardInterim {
			codes := []string{byHardware: "00", byIdentifier: "31", byDUID: "02"}
			sum := md5.Sum(one.data) //nolint:gosec // see above
			values = append(values, Hex(codes[one.kind]+hex.EncodeToString(sum[:])))
		} else {
			const digestSHA256 = 1
			sum := sha256.Sum256(append(slices.Clone(one.data), wireOfName(name)...))
			values = append(values, append(Hex{0, one.kind, digestSHA256}, sum[:]...))
		}
		if only {
			break
		}
	}
	return values
}
