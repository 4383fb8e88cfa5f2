package catalog

import "portolan/internal/engine/resource"

// registerAbsent declares collections of which only what lies below their resources is published, with no way to make one or to list them:
// what is built of what they are for (DNS64, reports, hardware modules) has other paths. There never is a resource in them, and so each
// number is answered as not there. The services of the manager's own machine (release 9.6) are none of Portolan's, which runs on a machine
// that somebody else runs: there are none, either.
func registerAbsent(r *resource.Registry) {
	for _, name := range []string{"dns64", "hsmConfigurations", "hsmServers", "reports"} {
		r.Collection(resource.Collection{Name: name})
	}
	r.Collection(resource.Collection{Name: "managerServices", At: "services", Parents: []string{""}, Guard: resource.Administration})
}
