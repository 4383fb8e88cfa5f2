// Package figures keeps figures over time: the utilization of networks and ranges, answers of name servers and resolvers, messages and
// leases of DHCP, the state of the fleet and the load of the APIs, for 13 months at falling resolution.
//
// A Sampler measures once a minute (sample.go). Local stores the samples in a folder of the data directory with the time-series database
// of Prometheus (local.go, rollup.go); Remote uses a Prometheus-compatible server (remote.go). Declared lists the metrics (metric.go).
// The package does not decide who may see a figure: the address API does.
package figures
