package fleet

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/wire/checkin"
)

// claims returns the addresses and ports that an application listens at.
func (s *Service) claims(name string, configuration json.RawMessage) []string {
	if program := s.programs[name]; program.Claims != nil {
		return program.Claims(configuration)
	}
	return nil
}

// conflicts reports whether two addresses with ports overlap: they are equal, or one is the unspecified address.
func conflicts(a, b string) bool {
	one, err := netip.ParseAddrPort(a)
	other, e := netip.ParseAddrPort(b)
	if err != nil || e != nil {
		return a == b
	}
	return one.Port() == other.Port() && one.Addr().Is4() == other.Addr().Is4() &&
		(one.Addr() == other.Addr() || one.Addr().IsUnspecified() || other.Addr().IsUnspecified())
}

// Limits of the configuration of an application, of the configurations of all applications of a service point, both in bytes, and of the
// number of applications.
const (
	maxConfiguration  = 128 << 10
	maxConfigurations = 512 << 10
	maxApplications   = 64
)

// checkFit returns an error if a configuration makes the sum of all configurations too large, or claims an address of another application.
func (s *Service) checkFit(all []deployed, id, name string, configuration json.RawMessage) error {
	size := len(configuration)
	mine := s.claims(name, configuration)
	for _, d := range all {
		if d.ID == id || d.Status == checkin.Deleted {
			continue
		}
		size += len(d.Configuration)
		for _, theirs := range s.claims(d.Name, d.Configuration) {
			if i := slices.IndexFunc(mine, func(one string) bool { return conflicts(one, theirs) }); i >= 0 {
				return problem.Invalid("configuration", "%s is already in use by application %s (%s) at %s", mine[i], d.ID, d.Name, theirs)
			}
		}
	}
	if size > maxConfigurations {
		return problem.Invalid("configuration", "together with the other applications of the service point has %d bytes, more than %d", size,
			maxConfigurations)
	}
	return nil
}

// checkConfiguration checks a configuration of a program and returns it in stored form.
func (s *Service) checkConfiguration(name string, configuration json.RawMessage) (json.RawMessage, error) {
	program, ok := s.programs[name]
	if !ok {
		var names []string
		for known := range s.programs {
			names = append(names, known)
		}
		slices.Sort(names)
		return nil, problem.Invalid("name", "application %q does not exist; must be one of %s", name, strings.Join(names, ", "))
	}
	if len(configuration) == 0 {
		configuration = json.RawMessage("{}")
	}
	if len(configuration) > maxConfiguration {
		return nil, problem.Invalid("configuration", "has more than %d bytes", maxConfiguration)
	}
	return configuration, program.Check(configuration)
}

// checkVersion returns an error if a text is not a version.
func checkVersion(field, version string) error {
	if version == "" || len(version) > maxVersion || strings.ContainsFunc(version, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return problem.Invalid(field, "must have 1 to %d ASCII characters without blanks", maxVersion)
	}
	return nil
}

// checkNew returns an error unless version is the manager's version of the application. Other versions are installed only with a release of
// the service point.
func (s *Service) checkNew(name, version string) error {
	const field = "version"
	if err := checkVersion(field, version); err != nil {
		return err
	}
	if newest := s.programs[name].Version; version != newest {
		return problem.Invalid(field, "%q is not the version of this manager (%s): applications are part of the release of their service point; "+
			"omit the version", version, newest)
	}
	return nil
}

// checkTarget returns an error if an application cannot be updated to a version: applications come with the release of their service point.
func (s *Service) checkTarget(d deployed, version string) error {
	const field = "targetVersion"
	if err := checkVersion(field, version); err != nil {
		return err
	}
	if newest := s.programs[d.Name].Version; version != d.Version && version != newest {
		return problem.Invalid(field, "must be the current version, %s, or the version of this manager, %s, not %q: applications are part of "+
			"the release of their service point", d.Version, newest, version)
	}
	return nil
}
