package catalog

import "portolan/internal/engine/resource"

// registerAbsent declares collections that never contain a resource: the published API has only paths below their resources, with no way to
// create or list them. Each id is answered with "not found". The features behind them (DNS64, reports, hardware modules) have other paths
// in Portolan. The services of the manager's machine (release 9.6) are absent because Portolan does not administer the machine that it runs
// on.
func registerAbsent(r *resource.Registry) {
	for _, name := range []string{"dns64", "hsmConfigurations", "hsmServers", "reports"} {
		r.Collection(resource.Collection{Name: name})
	}
	r.Collection(resource.Collection{Name: "managerServices", At: "services", Parents: []string{""}, Guard: resource.Administration})
}
