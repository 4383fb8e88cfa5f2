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

// displayName returns the number of a node and the name of its machine, for error conditions.
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

// reportedMachines returns the machines in the report of a node. If the node is not connected, its anycast addresses are down.
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

// maxHostName is the number of characters of a machine's name in an error condition. maxApplicationConditions is the number of error
// conditions kept of one application.
const (
	maxHostName              = 64
	maxApplicationConditions = 20
)

// truncateList returns at most limit conditions. If there are more, the last one states how many were left out.
func truncateList(all []string, limit int) []string {
	if len(all) <= limit {
		return all
	}
	return append(slices.Clone(all[:limit-1]), fmt.Sprintf("… and %d more", len(all)-limit+1))
}

// mergeReports returns the report of a service point from the reports of its nodes. Applications and error conditions come from the
// connected nodes, or from all nodes if none is connected. Nodes that are not connected add an error condition. target is the release that
// the service point is updated to.
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
		// the service point has the target version only when all nodes have it
		if n.report.Version != target && (r.Version == target || n.number == 1) {
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
			r.ErrorConditions = append(r.ErrorConditions, fmt.Sprintf("%s is not connected: last seen %s", n.displayName(),
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

// statusOf returns the status that follows from a report.
func statusOf(r *checkin.Report) string {
	if len(r.ErrorConditions) > 0 {
		return Unhealthy
	}
	return Healthy
}

// worst are the states of an application, the worst first. An application has the worst state of all nodes.
var worst = []string{checkin.DeployFailed, checkin.Unhealthy, checkin.Deploying, checkin.Healthy}

// isEarlier reports whether a revision of content precedes another one.
func isEarlier(one, other string) bool {
	a, err := content.ParseRevision(one)
	b, e := content.ParseRevision(other)
	return e == nil && (err != nil || a.Number < b.Number)
}

// mergeApplications adds the applications of one more node, whose display name is name, to those of other nodes.
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
		if isEarlier(one.Content, all[i].Content) { // content counts as served only when all nodes serve it
			all[i].Content = one.Content
		}
		all[i].ServesContent = all[i].ServesContent || one.ServesContent
		if one.Engine != "" {
			all[i].Engine = one.Engine
		}
		if one.Version != all[i].Version { // the version is unknown while the nodes differ
			all[i].Version = ""
		}
		all[i].ErrorConditions = append(slices.Clone(all[i].ErrorConditions), conditions...)
	}
	return all
}
