package stream

import "portolan/internal/base/problem"

// Counters is the kind of records that are a list of Counter: the state of all counters of a service point, once a minute. The records
// come from the agent itself.
const Counters = "counters"

// Counter is a counter of an application. It grows while the application runs, and begins at 0 when that starts.
type Counter struct {
	// Application is the id of the application. Metric is queries, dhcpReceived or dhcpSent. By is the response code or the type of the
	// message.
	Application string `json:"application"`
	Metric      string `json:"metric"`
	By          string `json:"by"`
	Count       int64  `json:"count"`
}

// Metrics of counters.
const (
	Queries      = "queries"
	DHCPReceived = "dhcpReceived"
	DHCPSent     = "dhcpSent"
)

// maxCounters is the maximum number of counters of a record.
const maxCounters = 500

// CheckCounters returns a problem that names the field if a counter of a record has an invalid name or count, or if there are too many.
func CheckCounters(all []Counter) error {
	if len(all) > maxCounters {
		return problem.Invalid("counters", "has %d entries, more than %d", len(all), maxCounters)
	}
	for _, c := range all {
		switch {
		case !IsName(c.Application):
			return problem.Invalid("application", "%q must match %s", c.Application, names)
		case c.Metric != Queries && c.Metric != DHCPReceived && c.Metric != DHCPSent:
			return problem.Invalid("metric", "must be %s, %s or %s", Queries, DHCPReceived, DHCPSent)
		case !IsName(c.By):
			return problem.Invalid("by", "%q must match %s", c.By, names)
		case c.Count < 0:
			return problem.Invalid("count", "must not be negative")
		}
	}
	return nil
}
