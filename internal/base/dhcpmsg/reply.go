package dhcpmsg

import (
	"encoding/binary"
	"net/netip"
)

// Option is an option of a reply.
type Option struct {
	Code  uint8
	Value []byte
}

// Reply is a reply of a server to a Message.
type Reply struct {
	To *Message
	// Type is the message type; 0 for BOOTP.
	Type uint8
	// Yours and Server are yiaddr and siaddr; they may be invalid.
	Yours, Server netip.Addr
	// ServerName and File are sname and file.
	ServerName, File string
	// Broadcast sets the broadcast flag.
	Broadcast bool
	// KeepClient copies ciaddr of the message.
	KeepClient bool
	// Options are the options in order, the most important ones first, without the message type. Option 82 is written last.
	Options []Option
}

// Limits of the size of replies: RFC 2131 section 2 requires clients to accept IP packets of 576 octets. headers is the size of the headers
// of IP and UDP.
const (
	minPacket = 576
	maxPacket = 1500
	headers   = 28
	minReply  = 300
	maxPart   = 255
)

// MaxSize returns the maximum size of a reply in octets, by the value of option 57 of the client.
func MaxSize(option57 []byte) int {
	size := minPacket
	if len(option57) == 2 {
		size = min(max(int(binary.BigEndian.Uint16(option57)), minPacket), maxPacket)
	}
	return size - headers
}

// Append appends the reply. dropped are the codes of the options that did not fit.
func (r *Reply) Append(to []byte, limit int) (packet []byte, dropped []uint8) {
	start := len(to)
	to = append(to, make([]byte, optionsAt)...)
	p := to[start:]
	m := r.To
	p[0], p[1], p[2] = bootReply, m.HardwareType, m.HardwareLength
	binary.BigEndian.PutUint32(p[4:], m.Transaction)
	flags := m.Flags
	if r.Broadcast {
		flags |= BroadcastFlag
	}
	binary.BigEndian.PutUint16(p[10:], flags)
	if r.KeepClient {
		copy(p[12:], m.Client.AsSlice())
	}
	copy(p[16:], r.Yours.AsSlice())
	copy(p[20:], r.Server.AsSlice())
	copy(p[24:], m.Relay.AsSlice())
	copy(p[hardwareAt:], m.Padded[:])
	copy(p[snameAt:snameAt+snameSize], r.ServerName)
	copy(p[fileAt:fileAt+fileSize], r.File)
	binary.BigEndian.PutUint32(p[headerSize:], cookie)
	w := areas{limit: limit - optionsAt, file: r.File == "", sname: r.ServerName == "", main: make([]byte, 0, usualOptions)}
	if dropped = w.place(r); r.Type == 0 && len(r.Options) == 0 && m.Options == nil {
		w.main = make([]byte, 60) // a BOOTP client without options
	}
	copy(p[snameAt:snameAt+snameSize], w.snameOptions)
	copy(p[fileAt:fileAt+fileSize], w.fileOptions)
	to = append(to, w.main...)
	for len(to)-start < minReply {
		to = append(to, 0)
	}
	return to, dropped
}

// usualOptions is the first capacity for the options of a reply in bytes.
const usualOptions = 256

// areas are the fields of a reply that contain options.
type areas struct {
	limit       int // of main
	file, sname bool
	main        []byte

	fileOptions, snameOptions []byte
}

// isEchoed reports whether an option repeats one of the client, which may discard a reply without it: the client identifier (RFC 6842) and
// the subnet selection (RFC 3011). Other options are left out first.
func isEchoed(code uint8) bool { return code == 61 || code == 118 }

// place writes the options. Those that do not fit into the options field go to the fields file and sname if these are free (option 52).
func (w *areas) place(r *Reply) (dropped []uint8) {
	if r.Type != 0 {
		w.main = append(w.main, messageType, 1, r.Type)
	}
	var last []byte
	total := len(w.main) + 1
	for _, o := range r.Options {
		if o.Code == relayOption {
			last = appendOption(last, o)
		}
		total += sizeOf(o)
	}
	reserved := 1 + len(last)
	for _, o := range r.Options {
		if isEchoed(o.Code) {
			reserved += sizeOf(o)
		}
	}
	overloads := total > w.limit && (w.file || w.sname)
	if overloads {
		reserved += 3
	}
	for _, o := range r.Options {
		size := sizeOf(o)
		if isEchoed(o.Code) { // its space is reserved
			reserved -= size
		}
		switch {
		case o.Code == relayOption:
		case len(w.main)+size+reserved <= w.limit:
			w.main = appendOption(w.main, o)
		case overloads && w.file && len(w.fileOptions)+size < fileSize:
			w.fileOptions = appendOption(w.fileOptions, o)
		case overloads && w.sname && len(w.snameOptions)+size < snameSize:
			w.snameOptions = appendOption(w.snameOptions, o)
		default:
			dropped = append(dropped, o.Code)
		}
	}
	if used := w.closeAreas(); used != 0 {
		w.main = append(w.main, overload, 1, used)
	}
	w.main = append(append(w.main, last...), endOption)
	return dropped
}

// closeAreas ends the overloaded fields and returns the value of option 52; 0 if there are none.
func (w *areas) closeAreas() (used byte) {
	if len(w.fileOptions) > 0 {
		w.fileOptions, used = append(w.fileOptions, endOption), used|overloadFile
	}
	if len(w.snameOptions) > 0 {
		w.snameOptions, used = append(w.snameOptions, endOption), used|overloadSName
	}
	return used
}

// sizeOf returns the size of an option with its codes and lengths.
func sizeOf(o Option) int {
	parts := max(1, (len(o.Value)+maxPart-1)/maxPart)
	return len(o.Value) + 2*parts
}

// appendOption appends an option. It splits a long value (RFC 3396).
func appendOption(to []byte, o Option) []byte {
	value := o.Value
	for {
		n := min(len(value), maxPart)
		to = append(append(to, o.Code, byte(n)), value[:n]...)
		if value = value[n:]; len(value) == 0 {
			return to
		}
	}
}
