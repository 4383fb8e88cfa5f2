package space

import (
	"crypto/sha1" //nolint:gosec // RFC 4193 requires it; it protects no secret
	"encoding/binary"
	"net"
	"net/netip"
	"time"
)

// UniqueLocal returns a /48 of unique local IPv6 space for a hardware address of 6 or 8 bytes and a time (RFC 4193 section 3.2.2). The
// global ID is the last 40 bits of the SHA-1 digest of the time in NTP format and the EUI-64.
func UniqueLocal(hardware net.HardwareAddr, at time.Time) netip.Prefix {
	var seed [16]byte
	const sinceNTP = 2208988800                                                              // seconds from 1900 to 1970
	binary.BigEndian.PutUint32(seed[:4], uint32(at.Unix()+sinceNTP))                         //nolint:gosec // NTP seconds wrap around
	binary.BigEndian.PutUint32(seed[4:8], uint32(uint64(at.Nanosecond())<<32/1_000_000_000)) //nolint:gosec // a fraction of 2^32
	copy(seed[8:], eui64(hardware))
	digest := sha1.Sum(seed[:]) //nolint:gosec // as above
	a := [16]byte{0xfd}
	copy(a[1:6], digest[15:])
	return netip.PrefixFrom(netip.AddrFrom16(a), 48)
}

// eui64 returns the modified EUI-64 of a hardware address (RFC 4291 appendix A).
func eui64(hardware net.HardwareAddr) []byte {
	b := make([]byte, 8)
	if len(hardware) == 8 {
		copy(b, hardware)
	} else {
		copy(b, hardware[:3])
		b[3], b[4] = 0xff, 0xfe
		copy(b[5:], hardware[3:])
	}
	b[0] ^= 2
	return b
}
