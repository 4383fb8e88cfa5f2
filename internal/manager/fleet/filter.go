package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/wire/checkin"
)

// Filter selects service points by their fields. All fields that are set must match. The method fields describes them.
type Filter struct {
	ID                      string `json:"id,omitempty"`
	Name                    string `json:"name,omitempty"`
	NameContains            string `json:"nameContains,omitempty"`
	Description             string `json:"description,omitempty"`
	Status                  string `json:"status,omitempty"`
	ConnectionStatus        string `json:"connectionStatus,omitempty"`
	Version                 string `json:"version,omitempty"`
	TargetVersion           string `json:"targetVersion,omitempty"`
	UpdateStatus            string `json:"updateStatus,omitempty"`
	Platform                string `json:"platform,omitempty"`
	Variant                 string `json:"variant,omitempty"`
	LastSeenSince           string `json:"lastSeenSince,omitempty"`
	LastSeenBefore          string `json:"lastSeenBefore,omitempty"`
	ErrorCondition          string `json:"errorCondition,omitempty"`
	NodeCount               string `json:"nodeCount,omitempty"`
	Application             string `json:"application,omitempty"`
	ApplicationStatus       string `json:"applicationStatus,omitempty"`
	ApplicationVersion      string `json:"applicationVersion,omitempty"`
	ApplicationUpdateStatus string `json:"applicationUpdateStatus,omitempty"`
	Node                    string `json:"node,omitempty"`
	Hostname                string `json:"hostname,omitempty"`
	Address                 string `json:"address,omitempty"`
	Gateway                 string `json:"gateway,omitempty"`
	// Labels are required labels. An empty value matches any value.
	Labels map[string]string `json:"labels,omitempty"`
	// Within are sets of labels; a service point must match at least one of them as described for Labels. nil matches all.
	Within []map[string]string `json:"-"`
	// Named means that Name is compared even if it is empty.
	Named bool `json:"-"`
}

// field describes a field of a filter: its value in the filter, its meaning and its allowed values; nil allows all.
type field struct {
	name    string
	value   *string
	meaning string
	allowed []string
	// parse converts a value to the form that is compared. nil means that the value is used as it is.
	parse func(value string) (string, error)
	// column is the database column compared with the value; empty if the database does not hold the field in a column. ofApplication means
	// that the column belongs to an application.
	column        string
	ofApplication bool
	// isPart means that the value must be a part of the column.
	isPart bool
}

// fields returns the fields of a filter without its labels.
func (f *Filter) fields() []field {
	return []field{{name: "id", value: &f.ID, column: "s.id", meaning: "Their id"},
		{name: "name", value: &f.Name, column: "s.name", meaning: "The name of one service point"},
		{name: "nameContains", value: &f.NameContains, column: "s.name", isPart: true,
			meaning: "A part of their name, in small letters or large ones"},
		{name: "description", value: &f.Description, column: "s.description", meaning: "Their description"},
		{name: "status", value: &f.Status, allowed: statuses, meaning: "Their status"},
		{name: "connectionStatus", value: &f.ConnectionStatus, allowed: []string{Connected, NotConnected}, meaning: "Their connectionStatus"},
		{name: "version", value: &f.Version, column: "s.version", meaning: "The version that they run"},
		{name: "targetVersion", value: &f.TargetVersion, column: "s.target_version", meaning: "The version that they are updated to"},
		{name: "updateStatus", value: &f.UpdateStatus, allowed: updateStatuses, column: "s.update_status", meaning: "Their updateStatus"},
		{name: "platform", value: &f.Platform, column: "s.platform", meaning: "Their platform, such as linux/amd64"},
		{name: "variant", value: &f.Variant, allowed: []string{checkin.Fleet, checkin.V4}, column: "s.variant", meaning: "Their kind"},
		{name: "lastSeenSince", value: &f.LastSeenSince, parse: readMoment, meaning: "A moment, in Unix milliseconds or as RFC 3339 has it, " +
			"at which or behind which they were last heard of"},
		{name: "lastSeenBefore", value: &f.LastSeenBefore, parse: readMoment, meaning: "A moment, in Unix milliseconds or as RFC 3339 has it, " +
			"before which they were last heard of, or never"},
		{name: "errorCondition", value: &f.ErrorCondition, meaning: "A part of one of their errorConditions, or of those of their " +
			"applications, in small letters or large ones"},
		{name: "nodeCount", value: &f.NodeCount, column: "s.node_count", parse: readCount, meaning: "How many nodes they may have"},
		{name: "application", value: &f.Application, column: "a.name", ofApplication: true, meaning: "The name of an application that they run"},
		{name: "applicationStatus", value: &f.ApplicationStatus, column: "a.status", ofApplication: true,
			allowed: slices.Sorted(maps.Keys(nextStatuses)), meaning: "The status of an application that they run"},
		{name: "applicationVersion", value: &f.ApplicationVersion, column: "a.version", ofApplication: true,
			meaning: "The version of an application that they run"},
		{name: "applicationUpdateStatus", value: &f.ApplicationUpdateStatus, column: "a.update_status", ofApplication: true,
			allowed: []string{updateQueued, updateRunning, deleteQueued, deleteRunning},
			meaning: "The updateStatus of an application that they run"},
		{name: "node", value: &f.Node, meaning: "The id of one of their nodes, its end such as node-2, or its name"},
		{name: "hostname", value: &f.Hostname, meaning: "The host name of one of their nodes"},
		{name: "address", value: &f.Address, meaning: "An address of one of their nodes"},
		{name: "gateway", value: &f.Gateway, meaning: "The address of a gateway of one of their nodes"}}
}

// readMoment parses a time, in Unix milliseconds or in RFC 3339 format, and returns it in Unix milliseconds.
func readMoment(text string) (string, error) {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return text, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", fmt.Errorf("must be Unix milliseconds or a time such as 2026-01-31T12:00:00Z, not %q", text)
	}
	return strconv.FormatInt(at.UnixMilli(), 10), nil
}

// readCount parses a number of nodes.
func readCount(text string) (string, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return "", fmt.Errorf("must be a whole number, not %q", text)
	}
	return strconv.FormatUint(n, 10), nil
}

// momentOf returns a time parsed by readMoment, in Unix milliseconds.
func momentOf(read string) int64 {
	millis, _ := strconv.ParseInt(read, 10, 64) // readMoment has checked it
	return millis
}

// FilterField describes a field of a filter: its meaning and its allowed values; nil allows all.
type FilterField struct {
	Name, Meaning string
	Allowed       []string
}

// FilterFields returns the fields of a filter without its labels.
func FilterFields() (all []FilterField) {
	for _, one := range new(Filter).fields() {
		all = append(all, FilterField{one.name, one.meaning, one.allowed})
	}
	return all
}

// FilterNames returns the names of the fields.
func FilterNames() (names []string) {
	for _, one := range FilterFields() {
		names = append(names, one.Name)
	}
	return names
}

// Set sets a field of a filter by its name. It returns an error for an unknown name or a value that is not allowed.
func (f *Filter) Set(name, value string) error {
	fields := f.fields()
	i := slices.IndexFunc(fields, func(one field) bool { return one.name == name })
	if i < 0 {
		return problem.Query(name, "the field does not exist; the fields are labels, %s", strings.Join(FilterNames(), ", "))
	}
	one := fields[i]
	*one.value = value
	f.Named = f.Named || name == "name"
	if err := one.check(true); err != nil || one.parse == nil {
		return err
	}
	read, err := one.parse(value)
	if err != nil {
		return problem.Query(name, "%v", err)
	}
	*one.value = read
	return nil
}

// UnmarshalJSON decodes a filter. It rejects unknown fields and empty values, as both would match every service point.
func (f *Filter) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return problem.Invalid("filter", "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == "labels" {
			if json.Unmarshal(members[name], &f.Labels) != nil {
				return problem.Invalid("filter.labels", "must be an object of strings")
			}
			continue
		}
		var value string
		if json.Unmarshal(members[name], &value) != nil || value == "" {
			return problem.Invalid("filter."+name, "must be a string that is not empty")
		}
		if err := f.Set(name, value); err != nil {
			if wrong, ok := problem.As(err); ok {
				return problem.Invalid("filter", "%s", wrong.Message)
			}
			return err
		}
	}
	return f.check()
}

// check returns an error if a value is not allowed. given means that the field is present.
func (f field) check(given bool) error {
	switch {
	case *f.value == "" && given && f.name != "name":
		return problem.Query(f.name, "must not be empty")
	case strings.ContainsRune(*f.value, 0) || !utf8.ValidString(*f.value):
		return problem.Query(f.name, "contains a NUL or is not UTF-8")
	case *f.value != "" && f.allowed != nil && !slices.Contains(f.allowed, *f.value):
		return problem.Query(f.name, "must be one of %s, not %q", strings.Join(f.allowed, ", "), *f.value)
	}
	return nil
}

// check returns an error if a value is not allowed.
func (f *Filter) check() error {
	for _, one := range f.fields() {
		if err := one.check(false); err != nil {
			return err
		}
	}
	if len(f.Labels) > maxLabels {
		return problem.Query("label", "has %d entries, more than %d", len(f.Labels), maxLabels)
	}
	for name, value := range f.Labels {
		if err := checkLabel(name, cmp.Or(value, "any")); err != nil {
			return err
		}
	}
	return nil
}

// likeEscaper escapes the wildcards of LIKE.
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// whereClause returns the part of the filter that the database evaluates, as a WHERE clause with arguments. Without conditions it is empty.
func (f *Filter) whereClause() (conditions string, args []any) {
	var all []string
	and := func(condition string, values ...any) {
		all, args = append(all, condition), append(args, values...)
	}
	var ofApplication []string
	var ofIts []any
	for _, one := range f.fields() {
		switch {
		case one.ofApplication:
			if *one.value != "" {
				ofApplication, ofIts = append(ofApplication, one.column+" = ?"), append(ofIts, *one.value)
			}
		case one.column == "" || *one.value == "" && (one.name != "name" || !f.Named):
		case one.isPart:
			// Compare as written and in lower case: not every database converts the letters of other alphabets.
			part := "%" + likeEscaper.Replace(*one.value) + "%"
			and("("+one.column+" LIKE ? ESCAPE '!' OR lower("+one.column+") LIKE ? ESCAPE '!')", part, strings.ToLower(part))
		default:
			and(one.column+" = ?", *one.value)
		}
	}
	status := "s.status"
	if len(f.Labels) > 0 { // the index on labels is to be used: labels are more selective
		status = "s.status || ''"
	}
	switch f.Status {
	case "":
	case Expired: // EXPIRED is written a little after the key has expired
		and(status+" IN (?, ?)", Waiting, Expired)
	default:
		and(status+" = ?", f.Status)
	}
	if f.ApplicationStatus == "" { // deleted applications are listed for a while
		ofApplication = append(ofApplication, "a.status <> '"+checkin.Deleted+"'")
	}
	if len(ofIts) > 0 {
		and("s.id IN (SELECT a.service_point FROM application a WHERE "+strings.Join(ofApplication, " AND ")+")", ofIts...)
	}
	if len(f.Labels) > 0 {
		and(labelCondition(f.Labels, &args))
	}
	if f.Within != nil {
		either := make([]string, len(f.Within))
		for i, labels := range f.Within {
			either[i] = labelCondition(labels, &args)
		}
		and("(" + strings.Join(either, " OR ") + ")")
	}
	if all == nil {
		return "", nil
	}
	return "WHERE " + strings.Join(all, " AND "), args
}

// labelCondition returns the condition that a service point has labels, and appends its arguments to args.
func labelCondition(labels map[string]string, args *[]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if value := labels[name]; value != "" {
			all, *args = append(all, "s.id IN (SELECT service_point FROM label WHERE name = ? AND value = ?)"), append(*args, name, value)
		} else {
			all, *args = append(all, "s.id IN (SELECT service_point FROM label WHERE name = ?)"), append(*args, name)
		}
	}
	return "(" + strings.Join(all, " AND ") + ")"
}

// rowSuffices reports whether the row of a service point, with its labels and applications, decides whether it matches.
func (f *Filter) rowSuffices() bool { return !f.needsPresence() && !f.needsReport() }

// needsPresence reports whether the last contact is needed to decide, needsReport whether the report is.
func (f *Filter) needsPresence() bool {
	return f.ConnectionStatus != "" || f.LastSeenSince != "" || f.LastSeenBefore != ""
}
func (f *Filter) needsReport() bool { return f.ErrorCondition != "" || f.needsNodes() }

// needsNodes reports whether the nodes in the report are needed to decide.
func (f *Filter) needsNodes() bool {
	return f.Node != "" || f.Hostname != "" || f.Address != "" || f.Gateway != ""
}

// matchesState reports whether the status, the connection status and the last contact of a service point match. lastSeen is in Unix
// milliseconds.
func (f *Filter) matchesState(status, connection string, lastSeen int64) bool {
	is := (f.Status == "" || status == f.Status) && (f.ConnectionStatus == "" || connection == f.ConnectionStatus)
	never := lastSeen == 0
	return is && (f.LastSeenSince == "" || !never && lastSeen >= momentOf(f.LastSeenSince)) &&
		(f.LastSeenBefore == "" || never || lastSeen < momentOf(f.LastSeenBefore))
}

// matches reports whether a service point found by the database matches the whole filter.
func (f *Filter) matches(i *Instance) bool {
	if !f.matchesState(i.Status, i.ConnectionStatus, i.LastSeen) {
		return false
	}
	return f.matchesError(i) && (!f.needsNodes() || slices.ContainsFunc(i.Nodes, f.matchesNode))
}

// matchesError reports whether an error condition of a service point, or of one of its applications, contains the text of the filter.
func (f *Filter) matchesError(i *Instance) bool {
	part := strings.ToLower(f.ErrorCondition)
	says := func(text string) bool { return strings.Contains(strings.ToLower(text), part) }
	return part == "" || slices.ContainsFunc(i.ErrorConditions, says) ||
		slices.ContainsFunc(i.Applications, func(a Application) bool { return slices.ContainsFunc(a.ErrorConditions, says) })
}

// matchesNode reports whether a node matches the fields about nodes.
func (f *Filter) matchesNode(n checkin.Node) bool {
	return (f.Node == "" || n.ID == f.Node || n.Name == f.Node || strings.HasSuffix(n.ID, "-"+f.Node)) &&
		(f.Hostname == "" || strings.EqualFold(n.Hostname, f.Hostname)) &&
		(f.Gateway == "" || n.IPv4GatewayAddress == f.Gateway || n.IPv6GatewayAddress == f.Gateway) &&
		(f.Address == "" || slices.ContainsFunc(n.Addresses, func(a checkin.NodeAddress) bool { return a.IPAddress == f.Address }))
}
