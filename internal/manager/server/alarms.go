package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/checkin"
)

// backupsLink is the page of backups.
var backupsLink = AlarmLink{"Backups", "/ui/backups"}

// alarms returns the problems in the status that need action, the most severe first.
func (s *Status) alarms(now time.Time) []Alarm {
	all := []Alarm{}
	add := func(severity, what, do string, links ...AlarmLink) {
		all = append(all, Alarm{severity, what, do, append([]AlarmLink{}, links...)})
	}
	for _, c := range s.Certificates {
		left, do := c.NotAfter.Sub(now), certificateAdvice[c.Name]
		switch {
		case left < 0:
			add(critical, fmt.Sprintf("the certificate %s expired on %s", c.Name, c.NotAfter.Format(time.DateOnly)), do)
		case left < certificateSoon && !c.Renewed:
			add(warning, fmt.Sprintf("the certificate %s expires on %s", c.Name, c.NotAfter.Format(time.DateOnly)), do)
		}
	}
	if f := Sealing(s.MasterKey); f.Do != "" {
		add(warning, f.Is, f.Do)
	}
	if s.FreeBytes != nil && *s.FreeBytes < littleRoom {
		add(critical, fmt.Sprintf("the disk of the data directory has %d MiB left", *s.FreeBytes>>20),
			"free disk space, or move the directory; changes are refused when the disk is full")
	}
	switch s.Database.Condition {
	case store.Full:
		add(critical, "the disk of the database is full: changes are refused",
			"free disk space (docs/troubleshoot.md); the manager then resumes automatically")
	case store.Damaged:
		add(critical, "the database is damaged", "portolan check names the tables; recover the database as in docs/troubleshoot.md")
	case store.Away:
		add(critical, "the database is unreachable", "check the database server and the network to it")
	}
	if s.Database.LogBytes != nil && *s.Database.LogBytes > longLog {
		add(warning, fmt.Sprintf("the write-ahead log of the database has %d MiB", *s.Database.LogBytes>>20),
			"a long read prevents its truncation: find a list or a backup that does not end")
	}
	if s.Database.StandbyBytes != nil && *s.Database.StandbyBytes > behindStandby {
		add(warning, fmt.Sprintf("the standby is %d MiB behind", *s.Database.StandbyBytes>>20),
			"check its replication; lists are read from the database meanwhile")
	}
	if s.Indexes.Missing > 0 && s.Indexes.Fault != "" {
		add(warning, fmt.Sprintf("%d indexes of user-defined fields could not be created: %s", s.Indexes.Missing, s.Indexes.Fault),
			"correct the cause, or set indexed to false; the manager retries automatically. Filters by these fields scan all resources meanwhile")
	}
	switch b := s.Backups; {
	case b.Schedules == 0:
		add(warning, "no backups are configured", "start the manager with --backup-every 24h, or create a schedule (docs/operate.md)",
			backupsLink)
	case b.Due != nil && now.Sub(*b.Due) > lateBackup:
		last := "no backup was made yet"
		if b.Last != nil {
			last = "the last backup was made on " + b.Last.Format(time.DateTime)
		}
		add(warning, last+", and one was due on "+b.Due.Format(time.DateTime),
			"portolan list events --filter category=DATABASE_MAINTENANCE shows the reason", backupsLink)
	}
	if s.Backups.UploadFault != "" {
		add(warning, "backups could not be uploaded to another machine: "+s.Backups.UploadFault,
			"correct the remote settings of the schedule, or repair that machine. The manager retries every five minutes (docs/operate.md)",
			backupsLink)
	}
	s.addFleetAlarms(add)
	if n := s.Fleet.Rollouts[fleet.RolloutHalted]; n > 0 {
		add(warning, fmt.Sprintf("%d rollouts have halted", n),
			"portolan rollout list shows the reason; portolan rollout resume ID resumes a rollout, portolan rollout take-back ID rolls it back",
			AlarmLink{"Rollouts", "/ui/fleet?rollouts=1"})
	}
	total, names, links := int64(0), []string{}, []AlarmLink{}
	for _, n := range s.Space.NearlyFull {
		total += n
	}
	for _, f := range s.Space.Fullest[:min(3, len(s.Space.Fullest))] {
		names = append(names, f.Range)
		links = append(links, AlarmLink{f.Range, fmt.Sprintf("/ui/networks/%d", f.ID)})
	}
	if total > 0 {
		add(warning, fmt.Sprintf("%d networks are %d%% full or more: %s", total, s.Space.Mark, strings.Join(names, ", ")),
			"release unused addresses, or assign a larger network: portolan next blocks/... --size /LENGTH", links...)
	}
	slices.SortStableFunc(all, func(x, y Alarm) int { return strings.Compare(x.Severity, y.Severity) })
	return all
}

// addFleetAlarms adds the alarms of the fleet.
func (s *Status) addFleetAlarms(add func(severity, what, do string, links ...AlarmLink)) {
	if n := s.Fleet.Away; n > 0 {
		names, links := namePoints(s.Fleet.TroubledBy(fleet.NotConnected, ""), n, "status="+fleet.NotConnected)
		add(warning, names+isAre(n)+"not connected", "check the machine, and its network path to the check-in listener "+
			"(portolan fleet list --filter connectionStatus=NOT_CONNECTED)", links...)
	}
	if n := s.Fleet.Statuses[fleet.Unhealthy]; n > 0 {
		names, links := namePoints(s.Fleet.TroubledBy(fleet.Unhealthy, ""), n, "status="+fleet.Unhealthy)
		add(warning, names+isAre(n)+"unhealthy", "the page of the service point shows the reason (portolan fleet events NAME)", links...)
	}
	states := map[string]string{checkin.DeployFailed: "could not be deployed", checkin.Unhealthy: "is unhealthy"}
	for _, name := range slices.Sorted(maps.Keys(s.Fleet.Applications)) {
		for _, status := range []string{checkin.DeployFailed, checkin.Unhealthy} {
			if n := s.Fleet.Applications[name][status]; n > 0 {
				names, links := namePoints(s.Fleet.TroubledBy(status, name), n, "trouble="+name)
				add(warning, fmt.Sprintf("%s %s on %s", name, states[status], names), "the page of the service point shows the reason and the log "+
					"(portolan fleet applications NAME, portolan fleet logs NAME "+name+")", links...)
			}
		}
	}
	if n := s.Fleet.Updates[checkin.UpdateFailed]; n > 0 {
		names, links := namePoints(s.Fleet.TroubledBy(checkin.UpdateFailed, ""), n, "update="+checkin.UpdateFailed)
		add(warning, "the update failed on "+names, "the page of the service point shows the reason; "+
			"portolan fleet update NAME VERSION tries again", links...)
	}
}

// namePoints names service points, such as "buoy1, buoy2 and 2 more", with a link to each, and to the list of all if not all are named.
func namePoints(some []fleet.Troubled, all int64, query string) (text string, links []AlarmLink) {
	names := []string{}
	for _, one := range some {
		names = append(names, one.Name)
		links = append(links, AlarmLink{one.Name, "/ui/fleet/" + one.ID})
	}
	text = strings.Join(names, ", ")
	switch more := all - int64(len(some)); {
	case len(some) == 0 && all == 1:
		text = "1 service point"
	case len(some) == 0:
		text = fmt.Sprintf("%d service points", all)
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	if all > int64(len(some)) {
		links = append(links, AlarmLink{"Show all", "/ui/fleet?" + query})
	}
	return text, links
}

// isAre returns the verb for a number of things.
func isAre(n int64) string {
	if n == 1 {
		return " is "
	}
	return " are "
}
