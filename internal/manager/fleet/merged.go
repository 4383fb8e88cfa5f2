package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"portolan/internal/wire/checkin"
	"portolan/internal/wire/content"
)

// name is what a sentence calls it: by its number, and what its machine is called.
func (n *node) displayName() string {
	text := "node-" + strconv.FormatInt(n.number, 10)
	if n.report == nil || len(n.report.Nodes) == 0 {
		return text
	}
	host := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, n.report.Nodes[0].Name)
	if utf8.RuneCountInString(host) > maxHostName {
		host = string([]rune(host)[:maxHostName]) + "…"
	}
	if host == "" {
		return text
	}
	return text + " (" + host + ")"
}

// machines are what it reports of its machine; of one that is away no anycast address is up.
func (n *node) reportedMachines(there bool) []checkin.Node {
	all := slices.Clone(n.report.Nodes)
	for i := range all {
		all[i].Addresses = slices.Clone(all[i].Addresses)
		for a := range all[i].Addresses {
			if up := all[i].Addresses[a].IsUp; up != nil && !there {
				down := false
				all[i].Addresses[a].IsUp = &down
			}
		}
	}
	return all
}

// Bounds of what is said of the nodes together: of a machine's name in a sentence, in characters, of the conditions of one application,
// and of
// the service point.
const (
	maxHostName              = 64
	maxApplicationConditions = 20
)

// bounded are conditions, as many as there may be and a word of the others.
func truncateList(all []string, most int) []string {
	if len(all) <= most {
		return all
	}
	return append(slices.Clone(all[:most-1]), fmt.Sprintf("… and %d more", len(all)-most+1))
}

// merged is the report of a service point: that of its nodes together. What runs, and what is wrong, is said by those that are connected,
// where any is; of the others it is said that they are not. target is the release that it is updated to.
func mergeReports(all []node, count int64, target string) *checkin.Report {
	var r *checkin.Report
	missing := count
	alone := !slices.ContainsFunc(all, func(n node) bool { return n.connected && n.report != nil })
	for _, n := range all {
		if n.report == nil {
			continue
		}
		missing--
		if r == nil {
			first := *n.report
			r = &first
			r.ErrorConditions, r.Nodes, r.Applications, r.Update, r.Applied = []string{}, nil, nil, nil, -1
		}
		if n.report.Version != target && (r.Version == target || n.number == 1) { // until all have it, it has not
			r.Version = n.report.Version
		}
		r.Nodes = append(r.Nodes, n.reportedMachines(n.connected || alone)...)
		if u := n.report.Update; u != nil && (r.Update == nil || u.Status == checkin.UpdateFailed) {
			said := *u
			if said.Reason != "" {
				said.Reason = n.displayName() + ": " + said.Reason
			}
			r.Update = &said
		}
		if !n.connected && !alone {
			r.ErrorConditions = append(r.ErrorConditions, fmt.Sprintf("%s is not connected: nothing has been heard of it since %s", n.displayName(),
				time.UnixMilli(n.lastSeen).UTC().Format(time.RFC3339)))
			continue
		}
		for _, text := range n.report.ErrorConditions {
			r.ErrorConditions = append(r.ErrorConditions, n.displayName()+": "+text)
		}
		if r.Applied < 0 || n.report.Applied < r.Applied {
			r.Applied = n.report.Applied
		}
		r.Applications = mergeApplications(r.Applications, n.report.Applications, n.displayName())
	}
	if r == nil {
		return nil
	}
	if missing > 0 {
		r.ErrorConditions = append(r.ErrorConditions, fmt.Sprintf("%d of %d nodes have not reported yet", missing, count))
	}
	r.Applied, r.ErrorConditions = max(0, r.Applied), truncateList(r.ErrorConditions, maxConditions)
	for i := range r.Applications {
		r.Applications[i].ErrorConditions = truncateList(r.Applications[i].ErrorConditions, maxApplicationConditions)
	}
	return r
}

// statusOf is the status of a service point that reports.
func statusOf(r *checkin.Report) string {
	if len(r.ErrorConditions) > 0 {
		return Unhealthy
	}
	return Healthy
}

// worst are the states of an application, the worst first: it is as well as on the node where it is worst.
var worst = []string{checkin.DeployFailed, checkin.Unhealthy, checkin.Deploying, checkin.Healthy}

// earlier reports whether a revision of content comes before another one.
func isEarlier(one, other string) bool {
	a, err := content.ParseRevision(one)
	b, e := content.ParseRevision(other)
	return e == nil && (err != nil || a.Number < b.Number)
}

// together are the applications of some nodes, and those of one more.
func mergeApplications(before, more []checkin.Application, name string) []checkin.Application {
	all := slices.Clone(before)
	for _, one := range more {
		one.ErrorConditions = truncateList(one.ErrorConditions, maxApplicationConditions)
		conditions := make([]string, len(one.ErrorConditions))
		for i, text := range one.ErrorConditions {
			conditions[i] = name + ": " + text
		}
		if len(conditions) == 0 && one.Status != checkin.Healthy {
			conditions = []string{name + ": it is " + one.Status}
		}
		one.ErrorConditions = conditions
		i := slices.IndexFunc(all, func(a checkin.Application) bool { return a.ID == one.ID })
		if i < 0 {
			all = append(all, one)
			continue
		}
		if slices.Index(worst, one.Status) < slices.Index(worst, all[i].Status) {
			all[i].Status = one.Status
		}
		if isEarlier(one.Content, all[i].Content) { // until all serve it, it is not served
			all[i].Content = one.Content
		}
		all[i].Contented = all[i].Contented || one.Contented
		if one.Engine != "" {
			all[i].Engine = one.Engine
		}
		if one.Version != all[i].Version { // until all have another one, it has none
			all[i].Version = ""
		}
		all[i].ErrorConditions = append(slices.Clone(all[i].ErrorConditions), conditions...)
	}
	return all
}
