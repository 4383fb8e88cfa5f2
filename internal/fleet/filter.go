package fleet

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"portolan/internal/checkin"
	"portolan/internal/problem"
)

// Filter names service points by their fields. What it does not name does not matter; all that it names must be so.
type Filter struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// NameContains is a part of its name, in small letters or large ones; letters beyond ASCII as they are written there.
	NameContains     string `json:"nameContains,omitempty"`
	Description      string `json:"description,omitempty"`
	Status           string `json:"status,omitempty"`
	ConnectionStatus string `json:"connectionStatus,omitempty"`
	Version          string `json:"version,omitempty"`
	TargetVersion    string `json:"targetVersion,omitempty"`
	UpdateStatus     string `json:"updateStatus,omitempty"`
	Platform         string `json:"platform,omitempty"`
	// Variant is fleet or v4.
	Variant string `json:"variant,omitempty"`
	// Application is the name of an application that it runs.
	Application string `json:"application,omitempty"`
	// Address is an address, and Hostname the name, of a node of it.
	Address  string `json:"address,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	// Labels are labels that it has. An empty value is any.
	Labels map[string]string `json:"labels,omitempty"`
	// Within are sets of labels, one of which it has to have as Labels are had; nil means any.
	Within []map[string]string `json:"-"`
	// Named says that Name matters, also where it is empty.
	Named bool `json:"-"`
}

// field is a field of a filter: where it is given, and what it may be where that is not anything.
type field struct {
	name    string
	value   *string
	allowed []string
	// column is what it is compared with in the database; empty where that shows in what is read alone.
	column string
	// part: it has to be a part of what is there.
	part bool
}

// fields are the fields of a filter, its labels apart.
func (f *Filter) fields() []field {
	return []field{{name: "id", value: &f.ID, column: "s.id"}, {name: "name", value: &f.Name, column: "s.name"},
		{name: "nameContains", value: &f.NameContains, column: "s.name", part: true},
		{name: "description", value: &f.Description, column: "s.description"}, {name: "status", value: &f.Status, allowed: statuses},
		{name: "connectionStatus", value: &f.ConnectionStatus, allowed: []string{Connected, NotConnected}},
		{name: "version", value: &f.Version, column: "s.version"}, {name: "targetVersion", value: &f.TargetVersion, column: "s.target_version"},
		{name: "updateStatus", value: &f.UpdateStatus, allowed: updateStatuses, column: "s.update_status"},
		{name: "platform", value: &f.Platform, column: "s.platform"},
		{name: "variant", value: &f.Variant, allowed: []string{checkin.Fleet, checkin.V4}, column: "s.variant"},
		{name: "application", value: &f.Application}, {name: "address", value: &f.Address}, {name: "hostname", value: &f.Hostname}}
}

// FilterNames are the names of the fields of a filter, its labels apart.
func FilterNames() (names []string) {
	for _, one := range new(Filter).fields() {
		names = append(names, one.name)
	}
	return names
}

// Set sets a field of a filter by its name, and refuses a name that there is not and a value that it cannot have.
func (f *Filter) Set(name, value string) error {
	fields := f.fields()
	i := slices.IndexFunc(fields, func(one field) bool { return one.name == name })
	if i < 0 {
		return problem.Query(name, "there is no such field; there are labels, %s", strings.Join(FilterNames(), ", "))
	}
	*fields[i].value = value
	f.Named = f.Named || name == "name"
	return fields[i].check(true)
}

// UnmarshalJSON reads a filter. A field that there is not would let all through, as would one without a value: both are refused.
func (f *Filter) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return problem.Invalid("filter", "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == "labels" {
			if json.Unmarshal(members[name], &f.Labels) != nil {
				return problem.Invalid("filter.labels", "must be an object of texts")
			}
			continue
		}
		var value string
		if json.Unmarshal(members[name], &value) != nil || value == "" {
			return problem.Invalid("filter."+name, "must be a text that is not empty")
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

// check refuses a value that there is not; given says that the field was given.
func (f field) check(given bool) error {
	switch {
	case *f.value == "" && given && f.name != "name":
		return problem.Query(f.name, "must not be empty")
	case strings.ContainsRune(*f.value, 0) || !utf8.ValidString(*f.value):
		return problem.Query(f.name, "holds a NUL, or is no UTF-8")
	case *f.value != "" && f.allowed != nil && !slices.Contains(f.allowed, *f.value):
		return problem.Query(f.name, "%q is none of %s", *f.value, strings.Join(f.allowed, ", "))
	}
	return nil
}

// check refuses values that there are not.
func (f *Filter) check() error {
	for _, one := range f.fields() {
		if err := one.check(false); err != nil {
			return err
		}
	}
	if len(f.Labels) > maxLabels {
		return problem.Query("label", "there are %d, more than %d", len(f.Labels), maxLabels)
	}
	for name, value := range f.Labels {
		if err := checkLabel(name, cmp.Or(value, "any")); err != nil {
			return err
		}
	}
	return nil
}

// likeEscaper takes the meaning from what LIKE would not take as it is.
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// where words what a database can answer of the filter.
func (f *Filter) where() (conditions string, args []any) {
	var all []string
	and := func(condition string, values ...any) {
		all, args = append(all, condition), append(args, values...)
	}
	for _, one := range f.fields() {
		switch {
		case one.column == "" || *one.value == "" && (one.name != "name" || !f.Named):
		case one.part:
			// As it is written, and in small letters: the databases know those of other alphabets or not.
			part := "%" + likeEscaper.Replace(*one.value) + "%"
			and("("+one.column+" LIKE ? ESCAPE '!' OR lower("+one.column+") LIKE ? ESCAPE '!')", part, strings.ToLower(part))
		default:
			and(one.column+" = ?", *one.value)
		}
	}
	status := "s.status"
	if len(f.Labels) > 0 { // few have a label and most have a status: the index of the labels is to be used
		status = "s.status || ''"
	}
	switch f.Status {
	case "":
	case Expired: // it is noted a little later than it is so
		and(status+" IN (?, ?)", Waiting, Expired)
	default:
		and(status+" = ?", f.Status)
	}
	if f.Application != "" {
		and("EXISTS (SELECT 1 FROM application a WHERE a.service_point = s.id AND a.name = ?)", f.Application)
	}
	if len(f.Labels) > 0 {
		and(labelsAre(f.Labels, &args))
	}
	if f.Within != nil {
		either := make([]string, len(f.Within))
		for i, labels := range f.Within {
			either[i] = labelsAre(labels, &args)
		}
		and("(" + strings.Join(either, " OR ") + ")")
	}
	if all == nil {
		return "", nil
	}
	return "WHERE " + strings.Join(all, " AND "), args
}

// labelsAre words that a service point has labels, and adds the arguments of that.
func labelsAre(labels map[string]string, args *[]any) string {
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

// byRow reports whether the row of a service point, with its labels and applications, says whether it is one of those.
func (f *Filter) byRow() bool { return f.ConnectionStatus == "" && !f.byNodes() }

// byNodes reports whether its nodes have to be looked at for that.
func (f *Filter) byNodes() bool { return f.Address != "" || f.Hostname != "" }

// isSo reports whether a service point in this state is one of those, as far as that says.
func (f *Filter) isSo(status, connection string) bool {
	return (f.Status == "" || status == f.Status) && (f.ConnectionStatus == "" || connection == f.ConnectionStatus)
}

// keeps reports whether a service point that the database has found is one of those.
func (f *Filter) keeps(i *Instance) bool {
	if !f.isSo(i.Status, i.ConnectionStatus) {
		return false
	}
	if !f.byNodes() {
		return true
	}
	for _, n := range i.Nodes {
		if f.Hostname != "" && !strings.EqualFold(n.Hostname, f.Hostname) {
			continue
		}
		if f.Address == "" {
			return true
		}
		for _, a := range n.Addresses {
			if a.IPAddress == f.Address {
				return true
			}
		}
	}
	return false
}
