package figures

import (
	"slices"
	"time"
)

// Objects of figures: Manager, or a collection, a slash and an id. ServicePoints are identified by the id of the fleet API.
const (
	Manager       = "manager"
	Networks      = "networks"
	Blocks        = "blocks"
	Ranges        = "ranges"
	Servers       = "servers"
	ServicePoints = "servicePoints"
)

// Metric declares what is measured of an object.
type Metric struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	// Unit is ratio, count, perSecond or bytes.
	Unit string `json:"unit"`
	// By names what the lines of the metric distinguish, such as answer; empty for a single line.
	By string `json:"by"`
	// Of are the collections of the objects that have it.
	Of []string `json:"-"`
	// Source is the metric of /metrics that it follows, and Label its label for By; empty if it is measured from a table. A counter becomes
	// a rate.
	Source, Label string `json:"-"`
	// OfProcess reports that each manager of a database has values of its own.
	OfProcess bool `json:"-"`
}

// Units.
const (
	Ratio     = "ratio"
	Count     = "count"
	PerSecond = "perSecond"
	Bytes     = "bytes"
)

// declared are the metrics, in the order in which they are shown.
var declared = []Metric{
	{Name: "utilization", Title: "Utilization", Description: "Addresses in use, or leased in a range, as a part of all.", Unit: Ratio,
		Of: []string{Networks, Ranges}},
	{Name: "addresses", Title: "Addresses", Description: "Addresses in use.", Unit: Count, Of: []string{Networks, Blocks}},
	{Name: "allocated", Title: "Allocated", Description: "Addresses of the block that networks contain, as a part of all.", Unit: Ratio,
		Of: []string{Blocks}},
	{Name: "queries", Title: "DNS answers", Description: "Answers of name servers and resolvers per second, by response code.",
		Unit: PerSecond, By: "answer", Of: []string{Manager, Servers, ServicePoints}},
	{Name: "dhcpReceived", Title: "DHCP messages", Description: "DHCP messages of clients per second, by type.", Unit: PerSecond, By: "type",
		Of: []string{Manager, Servers, ServicePoints}},
	{Name: "dhcpSent", Title: "DHCP replies", Description: "DHCP replies per second, by type.", Unit: PerSecond, By: "type",
		Of: []string{Manager, Servers, ServicePoints}},
	{Name: "leases", Title: "Leases", Description: "DHCP leases by state.", Unit: Count, By: "state", Of: []string{Manager, Servers},
		Source: "portolan_dhcp_leases_all", Label: "state"},
	{Name: "available", Title: "Available", Description: "1 while the service point is connected and healthy, 0 otherwise.", Unit: Ratio,
		Of: []string{ServicePoints, Servers}},
	{Name: "servicePoints", Title: "Service points", Description: "Service points by status.", Unit: Count, By: "status",
		Of: []string{Manager}, Source: "portolan_service_points", Label: "status"},
	{Name: "connected", Title: "Connected service points", Description: "Service points that are connected.", Unit: Count,
		Of: []string{Manager}, Source: "portolan_service_points_connected"},
	{Name: "alarms", Title: "Alarms", Description: "Alarms by severity.", Unit: Count, By: "severity", Of: []string{Manager},
		Source: "portolan_alarms", Label: "severity"},
	{Name: "requests", Title: "API requests", Description: "Answered requests per second, by API.", Unit: PerSecond, By: "api",
		Of: []string{Manager}, Source: "portolan_http_requests_total", Label: "door", OfProcess: true},
	{Name: "changes", Title: "Changes", Description: "Transactions per second.", Unit: PerSecond, Of: []string{Manager},
		Source: "portolan_transactions"},
	{Name: "databaseBytes", Title: "Database", Description: "Size of the database.", Unit: Bytes, Of: []string{Manager},
		Source: "portolan_database_bytes"},
	{Name: "freeBytes", Title: "Free disk space", Description: "Free space on the disk of the data directory.", Unit: Bytes,
		Of: []string{Manager}, Source: "portolan_disk_free_bytes", OfProcess: true},
}

// Declared returns the metrics of the objects of a collection.
func Declared(collection string) []Metric {
	return slices.DeleteFunc(slices.Clone(declared), func(m Metric) bool { return !slices.Contains(m.Of, collection) })
}

// Sample is a measured value. By distinguishes the lines of a metric.
type Sample struct {
	Metric, Object, By string
	Value              float64
}

// Query asks for the figures of one object. Metrics are the names of the wanted metrics; none means all.
type Query struct {
	Object   string
	Metrics  []string
	From, To time.Time
	Step     time.Duration
}

// Line is a line of a metric.
type Line struct {
	Metric, By string
	Points     []Point
}

// Point is a step of a line: its start in Unix seconds, the mean and the maximum of its samples.
type Point struct {
	At        int64
	Mean, Max float64
}

// steps are the steps that StepFor chooses from.
var steps = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 24 * time.Hour}

// points is the number of points that StepFor aims at; MaxPoints is the maximum of a query.
const (
	points    = 300
	MaxPoints = 5000
)

// StepFor returns a step with which a period has about 300 points or fewer.
func StepFor(period time.Duration) time.Duration {
	for _, one := range steps {
		if period/one <= points {
			return one
		}
	}
	return steps[len(steps)-1]
}
