package dhcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Fields of an ARP packet for IPv4 over Ethernet (RFC 826).
const (
	arpSize     = 28
	arpSenderHW = 8
	arpSenderIP = 14
	arpTargetIP = 24
	arpRequest  = 1
)

// askARP returns the hardware address of a machine on the link of an interface that has an address; nil if none has: it sends a probe
// (RFC 5227) and waits for a packet from the address. It also finds machines that do not answer pings.
func askARP(index int, a netip.Addr, limit time.Duration) (hardware net.HardwareAddr, err error) {
	i, err := net.InterfaceByIndex(index)
	if err != nil || len(i.HardwareAddr) != 6 {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing is buffered
	address := a.As4()
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: arpSenderIP, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(address[:]), SkipTrue: 1},
		bpf.RetConstant{Val: 64},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(program))
	for k, one := range program {
		filter[k] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	wait := unix.NsecToTimeval(limit.Nanoseconds())
	link := &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: index, Halen: 6,
		Addr: [8]byte{255, 255, 255, 255, 255, 255}}
	err = errors.Join(
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: index}))
	if err == nil {
		err = unix.Sendto(fd, arpProbe(i.HardwareAddr, a), 0, link)
	}
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, 64)
	for until := time.Now().Add(limit); time.Now().Before(until); {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return nil, nil
		case err != nil:
			return nil, err
		case n >= arpSize && !bytes.Equal(buffer[arpSenderHW:arpSenderIP], i.HardwareAddr):
			return slices.Clone(net.HardwareAddr(buffer[arpSenderHW:arpSenderIP])), nil
		}
	}
	return nil, nil
}

// arpProbe returns a request for an address without the address of its sender.
func arpProbe(hardware net.HardwareAddr, a netip.Addr) []byte {
	p := make([]byte, arpSize)
	copy(p, []byte{0, 1, 8, 0, 6, 4, 0, arpRequest})
	copy(p[arpSenderHW:], hardware)
	copy(p[arpTargetIP:], a.AsSlice())
	return p
}
