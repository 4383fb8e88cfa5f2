package dhcp

import (
	"net"
	"net/netip"
	"slices"

	"portolan/internal/wire/dhcpdata"
)

// protocol describes the interfaces of DHCPv4, or of DHCPv6.
type protocol struct {
	v4 bool
	// listens is true if the configuration serves clients without a relay, and deployed if the content has networks of the protocol.
	listens, deployed bool
	// wanted are the interfaces whose clients are served, by name. problems are the reasons why other ones are not.
	wanted   map[string]*net.Interface
	problems map[string]string
	// connected are the interfaces with an address of a served network.
	connected map[string]bool
}

// Reasons why clients on an interface are not served.
const (
	noInterface = "the interface does not exist"
	noAddress4  = "the interface has no IPv4 address"
	noAddress6  = "the interface has no IPv6 address"
)

// examineLinks opens a link for each interface whose clients are served, and closes those of interfaces that vanished, are down, or are not
// wanted any more. For DHCPv6 it joins the groups of servers. The caller holds mu.
func (s *service) examineLinks() {
	all, err := net.Interfaces()
	if err != nil {
		s.log.Error("list interfaces failed", "error", err)
		return
	}
	four, six := s.interfacesOf(true, all), s.interfacesOf(false, all)
	for name, l := range s.links {
		if i, ok := four.wanted[name]; !ok || i.Index != l.index {
			l.close()
			delete(s.links, name)
		}
	}
	for name, i := range four.wanted {
		if s.links[name] != nil {
			continue
		}
		l, err := openLink(i, s)
		if err != nil {
			four.problems[name] = err.Error()
			continue
		}
		s.links[name] = l
		s.log.Info("interface served", "interface", name)
	}
	s.joinGroups(six)
	s.linkErrors = mergeProblems(four, six)
	byIndex := map[int]*link{}
	for _, l := range s.links {
		byIndex[l.index] = l
	}
	s.linkLock.Lock()
	s.linksByIndex = byIndex
	s.linkLock.Unlock()
	for name := range four.wanted {
		if l := s.links[name]; l != nil && !l.started {
			l.start()
		}
	}
}

// interfacesOf examines the interfaces of the machine for one protocol. The caller holds mu.
func (s *service) interfacesOf(v4 bool, all []net.Interface) *protocol {
	content := s.engine.content.Load().compiled
	f := &protocol{v4: v4, listens: len(s.listeners6) > 0, deployed: content.HasNetworks(v4), wanted: map[string]*net.Interface{},
		problems: map[string]string{}, connected: map[string]bool{}}
	if v4 {
		f.listens = s.configuration.servesLink()
	}
	if !f.listens {
		return f
	}
	for _, name := range s.configuration.Interfaces {
		f.problems[name] = noInterface
	}
	for _, i := range all {
		named := slices.Contains(s.configuration.Interfaces, i.Name)
		if named || len(s.configuration.Interfaces) == 0 && i.Flags&net.FlagLoopback == 0 {
			f.examine(&i, named, content)
		}
	}
	return f
}

// examine decides whether clients on an interface are served.
func (f *protocol) examine(i *net.Interface, named bool, content *dhcpdata.Content) {
	prefixes := prefixesOf(i.Index, f.v4)
	serves := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return content.Serves(p.Addr()) })
	f.connected[i.Name] = serves
	switch {
	case !named && !serves:
	case i.Flags&net.FlagUp == 0:
		f.problems[i.Name] = "the interface is down"
	case len(prefixes) == 0:
		f.problems[i.Name] = f.noAddress()
	case !f.v4 && i.Flags&net.FlagMulticast == 0:
		f.problems[i.Name] = "the interface has no multicast, which DHCPv6 requires"
	default:
		delete(f.problems, i.Name)
		f.wanted[i.Name] = i
	}
}

func (f *protocol) noAddress() string {
	if f.v4 {
		return noAddress4
	}
	return noAddress6
}

// mergeProblems returns the reasons why clients on interfaces are not served, by the name of the interface. A configuration names
// interfaces for both protocols, and a machine may serve one of them. So a protocol without networks has no problems, and an interface
// with an address of a network of one protocol needs no address of the other. Before the first network, an interface needs one protocol.
func mergeProblems(four, six *protocol) map[string]string {
	merged := map[string]string{}
	for _, two := range [][2]*protocol{{four, six}, {six, four}} {
		f, other := two[0], two[1]
		for name, problem := range f.problems {
			_, otherFails := other.problems[name]
			switch {
			case f.deployed && problem == f.noAddress() && other.connected[name]:
			case !f.deployed && (other.deployed || other.listens && !otherFails):
			case merged[name] == "" || merged[name] == problem:
				merged[name] = problem
			default:
				merged[name] += "; " + problem
			}
		}
	}
	return merged
}
