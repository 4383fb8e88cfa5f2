package dhcp

import (
	"net"
	"slices"
)

// examineLinks opens a link for each interface whose clients are served, and closes those of interfaces that vanished, are down, or are not
// wanted any more. The caller holds mu.
func (s *service) examineLinks() {
	wanted, errors := s.wantedInterfaces()
	for name, l := range s.links {
		if i, ok := wanted[name]; !ok || i.Index != l.index {
			l.close()
			delete(s.links, name)
		}
	}
	for name, i := range wanted {
		if s.links[name] != nil {
			continue
		}
		l, err := openLink(i, s)
		if err != nil {
			errors[name] = err.Error()
			continue
		}
		s.links[name] = l
		s.log.Info("interface served", "interface", name)
	}
	s.linkErrors = errors
	s.examineLinks6()
	byIndex := map[int]*link{}
	for _, l := range s.links {
		byIndex[l.index] = l
	}
	s.linkLock.Lock()
	s.linksByIndex = byIndex
	s.linkLock.Unlock()
	for name := range wanted {
		if l := s.links[name]; l != nil && !l.started {
			l.start()
		}
	}
}

// wantedInterfaces returns the interfaces whose clients are served, and the reasons why configured ones are not. The caller holds mu.
func (s *service) wantedInterfaces() (wanted map[string]*net.Interface, errors map[string]string) {
	wanted, errors = map[string]*net.Interface{}, map[string]string{}
	if !s.configuration.servesLink() {
		return wanted, errors
	}
	for _, name := range s.configuration.Interfaces {
		errors[name] = "the interface does not exist"
	}
	all, err := net.Interfaces()
	if err != nil {
		s.log.Error("list interfaces failed", "error", err)
		return wanted, errors
	}
	content := s.engine.content.Load().compiled
	for _, i := range all {
		named := slices.Contains(s.configuration.Interfaces, i.Name)
		if !named && (len(s.configuration.Interfaces) > 0 || i.Flags&net.FlagLoopback != 0) {
			continue
		}
		prefixes := prefixesOf(i.Index, true)
		serves := slices.ContainsFunc(prefixes, func(p prefix) bool { return content.Serves(p.Addr()) })
		switch {
		case !named && !serves:
		case i.Flags&net.FlagUp == 0:
			errors[i.Name] = "the interface is down"
		case len(prefixes) == 0:
			errors[i.Name] = "the interface has no IPv4 address"
		default:
			delete(errors, i.Name)
			wanted[i.Name] = &i
		}
	}
	return wanted, errors
}
