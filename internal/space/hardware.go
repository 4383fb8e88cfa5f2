package space

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"
)

// ParseHardware reads a hardware address of 48 or 64 bits: with colons, hyphens, dots or nothing between.
func ParseHardware(text string) (net.HardwareAddr, error) {
	text = strings.TrimSpace(text)
	if mac, err := net.ParseMAC(text); err == nil && (len(mac) == 6 || len(mac) == 8) {
		return mac, nil
	}
	mac, err := hex.DecodeString(text)
	if err != nil || len(mac) != 6 && len(mac) != 8 {
		return nil, fmt.Errorf("%q is no hardware address", text)
	}
	return mac, nil
}

// FormatHardware is how hardware addresses are kept and shown: 00-00-5E-00-53-01.
func FormatHardware(mac net.HardwareAddr) string {
	return strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "-"))
}
