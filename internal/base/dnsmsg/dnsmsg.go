// Package dnsmsg provides DNS messages and records to the rest of Portolan. It is the only package that imports the DNS library, and
// contains only the parts that are used: types, constants, tables and functions. Replacing or upgrading the library changes only this
// package.
package dnsmsg

import (
	"io"

	"github.com/miekg/dns"
)

// Types of the library.
type (
	A                 = dns.A
	AAAA              = dns.AAAA
	ANY               = dns.ANY
	CNAME             = dns.CNAME
	Class             = dns.Class
	Client            = dns.Client
	Conn              = dns.Conn
	DHCID             = dns.DHCID
	DNSKEY            = dns.DNSKEY
	DS                = dns.DS
	EDNS0             = dns.EDNS0
	EDNS0_COOKIE      = dns.EDNS0_COOKIE
	EDNS0_EDE         = dns.EDNS0_EDE
	EDNS0_LOCAL       = dns.EDNS0_LOCAL
	EDNS0_NSID        = dns.EDNS0_NSID
	HINFO             = dns.HINFO
	HTTPS             = dns.HTTPS
	HandlerFunc       = dns.HandlerFunc
	MX                = dns.MX
	Msg               = dns.Msg
	NAPTR             = dns.NAPTR
	NS                = dns.NS
	NSEC3             = dns.NSEC3
	NSEC3PARAM        = dns.NSEC3PARAM
	NULL              = dns.NULL
	OPT               = dns.OPT
	PTR               = dns.PTR
	Question          = dns.Question
	RFC3597           = dns.RFC3597
	RR                = dns.RR
	RRSIG             = dns.RRSIG
	RR_Header         = dns.RR_Header
	ResponseWriter    = dns.ResponseWriter
	SOA               = dns.SOA
	SRV               = dns.SRV
	SVCB              = dns.SVCB
	SVCBAlpn          = dns.SVCBAlpn
	SVCBECHConfig     = dns.SVCBECHConfig
	SVCBIPv4Hint      = dns.SVCBIPv4Hint
	SVCBIPv6Hint      = dns.SVCBIPv6Hint
	SVCBKey           = dns.SVCBKey
	SVCBKeyValue      = dns.SVCBKeyValue
	SVCBLocal         = dns.SVCBLocal
	SVCBMandatory     = dns.SVCBMandatory
	SVCBNoDefaultAlpn = dns.SVCBNoDefaultAlpn
	SVCBPort          = dns.SVCBPort
	Server            = dns.Server
	TSIG              = dns.TSIG
	TXT               = dns.TXT
	Transfer          = dns.Transfer
	Type              = dns.Type
	URI               = dns.URI
)

// Constants of the library.
const (
	AMTRELAYHost                  = dns.AMTRELAYHost
	AMTRELAYIPv4                  = dns.AMTRELAYIPv4
	AMTRELAYIPv6                  = dns.AMTRELAYIPv6
	AMTRELAYNone                  = dns.AMTRELAYNone
	ClassANY                      = dns.ClassANY
	ClassCHAOS                    = dns.ClassCHAOS
	ClassHESIOD                   = dns.ClassHESIOD
	ClassINET                     = dns.ClassINET
	ClassNONE                     = dns.ClassNONE
	ECDSAP256SHA256               = dns.ECDSAP256SHA256
	ECDSAP384SHA384               = dns.ECDSAP384SHA384
	ED25519                       = dns.ED25519
	EDNS0COOKIE                   = dns.EDNS0COOKIE
	EDNS0NSID                     = dns.EDNS0NSID
	ExtendedErrorCodeBlocked      = dns.ExtendedErrorCodeBlocked
	ExtendedErrorCodeForgedAnswer = dns.ExtendedErrorCodeForgedAnswer
	ExtendedErrorCodeProhibited   = dns.ExtendedErrorCodeProhibited
	HmacMD5                       = dns.HmacMD5
	HmacSHA1                      = dns.HmacSHA1
	HmacSHA224                    = dns.HmacSHA224
	HmacSHA256                    = dns.HmacSHA256
	HmacSHA384                    = dns.HmacSHA384
	HmacSHA512                    = dns.HmacSHA512
	MaxMsgSize                    = dns.MaxMsgSize
	MinMsgSize                    = dns.MinMsgSize
	OpcodeIQuery                  = dns.OpcodeIQuery
	OpcodeNotify                  = dns.OpcodeNotify
	OpcodeQuery                   = dns.OpcodeQuery
	OpcodeStatus                  = dns.OpcodeStatus
	OpcodeUpdate                  = dns.OpcodeUpdate
	RSASHA1                       = dns.RSASHA1
	RSASHA1NSEC3SHA1              = dns.RSASHA1NSEC3SHA1
	RSASHA256                     = dns.RSASHA256
	RSASHA512                     = dns.RSASHA512
	RcodeBadKey                   = dns.RcodeBadKey
	RcodeBadSig                   = dns.RcodeBadSig
	RcodeBadTime                  = dns.RcodeBadTime
	RcodeBadVers                  = dns.RcodeBadVers
	RcodeFormatError              = dns.RcodeFormatError
	RcodeNXRrset                  = dns.RcodeNXRrset
	RcodeNameError                = dns.RcodeNameError
	RcodeNotAuth                  = dns.RcodeNotAuth
	RcodeNotImplemented           = dns.RcodeNotImplemented
	RcodeNotZone                  = dns.RcodeNotZone
	RcodeRefused                  = dns.RcodeRefused
	RcodeServerFailure            = dns.RcodeServerFailure
	RcodeSuccess                  = dns.RcodeSuccess
	RcodeYXDomain                 = dns.RcodeYXDomain
	RcodeYXRrset                  = dns.RcodeYXRrset
	SEP                           = dns.SEP
	SHA1                          = dns.SHA1
	SHA256                        = dns.SHA256
	SHA384                        = dns.SHA384
	SVCB_ALPN                     = dns.SVCB_ALPN
	SVCB_ECHCONFIG                = dns.SVCB_ECHCONFIG
	SVCB_IPV4HINT                 = dns.SVCB_IPV4HINT
	SVCB_IPV6HINT                 = dns.SVCB_IPV6HINT
	SVCB_NO_DEFAULT_ALPN          = dns.SVCB_NO_DEFAULT_ALPN
	SVCB_PORT                     = dns.SVCB_PORT
	TypeA                         = dns.TypeA
	TypeAAAA                      = dns.TypeAAAA
	TypeAMTRELAY                  = dns.TypeAMTRELAY
	TypeANY                       = dns.TypeANY
	TypeAPL                       = dns.TypeAPL
	TypeAXFR                      = dns.TypeAXFR
	TypeCAA                       = dns.TypeCAA
	TypeCDNSKEY                   = dns.TypeCDNSKEY
	TypeCDS                       = dns.TypeCDS
	TypeCNAME                     = dns.TypeCNAME
	TypeDHCID                     = dns.TypeDHCID
	TypeDNAME                     = dns.TypeDNAME
	TypeDNSKEY                    = dns.TypeDNSKEY
	TypeDS                        = dns.TypeDS
	TypeGID                       = dns.TypeGID
	TypeHINFO                     = dns.TypeHINFO
	TypeHTTPS                     = dns.TypeHTTPS
	TypeISDN                      = dns.TypeISDN
	TypeIXFR                      = dns.TypeIXFR
	TypeMAILA                     = dns.TypeMAILA
	TypeMAILB                     = dns.TypeMAILB
	TypeMX                        = dns.TypeMX
	TypeNAPTR                     = dns.TypeNAPTR
	TypeNS                        = dns.TypeNS
	TypeNSEC                      = dns.TypeNSEC
	TypeNSEC3                     = dns.TypeNSEC3
	TypeNSEC3PARAM                = dns.TypeNSEC3PARAM
	TypeNULL                      = dns.TypeNULL
	TypeNXT                       = dns.TypeNXT
	TypeOPT                       = dns.TypeOPT
	TypePTR                       = dns.TypePTR
	TypeRP                        = dns.TypeRP
	TypeRRSIG                     = dns.TypeRRSIG
	TypeSOA                       = dns.TypeSOA
	TypeSRV                       = dns.TypeSRV
	TypeSVCB                      = dns.TypeSVCB
	TypeTKEY                      = dns.TypeTKEY
	TypeTSIG                      = dns.TypeTSIG
	TypeTXT                       = dns.TypeTXT
	TypeUID                       = dns.TypeUID
	TypeUINFO                     = dns.TypeUINFO
	TypeURI                       = dns.TypeURI
	ZONE                          = dns.ZONE
)

// Tables and errors of the library.
var (
	RcodeToString     = dns.RcodeToString
	StringToAlgorithm = dns.StringToAlgorithm
	StringToClass     = dns.StringToClass
	StringToHash      = dns.StringToHash
	StringToType      = dns.StringToType
	TypeToRR          = dns.TypeToRR
	TypeToString      = dns.TypeToString
)

// CanonicalName returns a name in absolute form and lower case (RFC 4034 section 6.2).
func CanonicalName(s string) string { return dns.CanonicalName(s) }

// ClientConfigFromFile reads a file such as /etc/resolv.conf.
func ClientConfigFromFile(resolvconf string) (*dns.ClientConfig, error) {
	return dns.ClientConfigFromFile(resolvconf)
}

// Copy returns a deep copy of a record.
func Copy(r dns.RR) dns.RR { return dns.Copy(r) }

// CountLabel returns the number of labels of a name; the root has none.
func CountLabel(s string) (labels int) { return dns.CountLabel(s) }

// Fqdn returns a name with its final dot.
func Fqdn(s string) string { return dns.Fqdn(s) }

// IsDomainName reports whether a text is a valid domain name, and returns the number of its labels.
func IsDomainName(s string) (labels int, ok bool) { return dns.IsDomainName(s) }

// IsDuplicate reports whether two records have the same owner, type, class and data.
func IsDuplicate(r1 dns.RR, r2 dns.RR) bool { return dns.IsDuplicate(r1, r2) }

// IsSubDomain reports whether child is parent or below it.
func IsSubDomain(parent string, child string) bool { return dns.IsSubDomain(parent, child) }

// Len returns the length of a record on the wire, uncompressed, in octets.
func Len(r dns.RR) int { return dns.Len(r) }

// NewRR parses a record from one line of a zone file. It returns nil if the line has none.
func NewRR(s string) (dns.RR, error) { return dns.NewRR(s) }

// NewZoneParser returns a parser of a zone file; file is its name in errors.
func NewZoneParser(r io.Reader, origin string, file string) *dns.ZoneParser {
	return dns.NewZoneParser(r, origin, file)
}

// NextLabel returns the index of the label after the one at offset; end is true if there is none.
func NextLabel(s string, offset int) (i int, end bool) { return dns.NextLabel(s, offset) }

// PackDomainName writes a name into msg at off and returns the offset after it.
func PackDomainName(s string, msg []byte, off int, compression map[string]int, compress bool) (off1 int, err error) {
	return dns.PackDomainName(s, msg, off, compression, compress)
}

// PackRR writes a record into msg at off and returns the offset after it.
func PackRR(rr dns.RR, msg []byte, off int, compression map[string]int, compress bool) (off1 int, err error) {
	return dns.PackRR(rr, msg, off, compression, compress)
}

// ReverseAddr returns the name below in-addr.arpa or ip6.arpa of an address.
func ReverseAddr(addr string) (arpa string, err error) { return dns.ReverseAddr(addr) }

// SplitDomainName returns the labels of a name; nil for the root.
func SplitDomainName(s string) (labels []string) { return dns.SplitDomainName(s) }

// TsigGenerate signs a message (RFC 8945). It returns the signed message in wire form, and its MAC in hexadecimal digits.
func TsigGenerate(m *dns.Msg, secret string, requestMAC string, timersOnly bool) ([]byte, string, error) {
	return dns.TsigGenerate(m, secret, requestMAC, timersOnly)
}

// UnpackDomainName reads a name in msg at off and returns the offset after it.
func UnpackDomainName(msg []byte, off int) (string, int, error) {
	return dns.UnpackDomainName(msg, off)
}

// UnpackRR reads a record in msg at off and returns the offset after it.
func UnpackRR(msg []byte, off int) (rr dns.RR, off1 int, err error) { return dns.UnpackRR(msg, off) }
