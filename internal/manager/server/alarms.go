package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/checkin"
)

// backupsPath is the page of backups.
const backupsPath = "/ui/backups"

// alarms returns the problems in the status that need action, the most severe first.
func (s *Status) alarms(now time.Time) []Alarm {
	all := []Alarm{}
	add := func(a Alarm, links ...AlarmLink) {
		a.Links = append([]AlarmLink{}, links...)
		all = append(all, a)
	}
	s.addCertificateAlarms(now, add)
	if f := Sealing(s.MasterKey); f.Do != "" {
		add(Alarm{Severity: warning, What: "Encryption keys are stored next to the data: anyone with the database or a backup can decrypt " +
			"the secrets.", Do: "Start the manager with a master key.", Command: f.Do})
	}
	s.addDatabaseAlarms(add)
	s.addBackupAlarms(now, add)
	s.addFleetAlarms(add)
	if n := s.Fleet.Rollouts[fleet.RolloutHalted]; n > 0 {
		add(Alarm{Severity: warning, What: plural.Count(n, "rollout") + plural.Verb(n, " has halted.", " have halted."),
			Do: "Read the reason, then resume the rollout or roll it back.", Command: "portolan rollout list"},
			AlarmLink{"Show the rollouts", "/ui/fleet?rollouts=1"})
	}
	s.addSpaceAlarms(add)
	slices.SortStableFunc(all, func(x, y Alarm) int { return strings.Compare(x.Severity, y.Severity) })
	return all
}

// addAlarm adds an alarm with the pages that show or correct the problem.
type addAlarm func(a Alarm, links ...AlarmLink)

// certificateNames are the owners of the certificates of the manager, certificateAdvice the remedies before they expire.
var (
	certificateNames  = map[string]string{"api": "the API", "check-in": "the check-in listener", "authority": "the authority of the fleet"}
	certificateAdvice = map[string]string{"api": "Write a new certificate to the file of --tls-cert; the manager reloads it automatically.",
		"check-in":  "Restart the manager to create a new certificate.",
		"authority": "Replace the authority before it expires; all service points must then enrol again (docs/operate.md)."}
)

// addCertificateAlarms adds the alarms of certificates that expire soon or have expired.
func (s *Status) addCertificateAlarms(now time.Time, add addAlarm) {
	for _, c := range s.Certificates {
		of, do, links := certificateNames[c.Name], certificateAdvice[c.Name], []AlarmLink(nil)
		if c.ServicePoint != "" {
			of, do = c.Name, "Set a new certificate and its key in the configuration of the application."
			_, point, _ := strings.Cut(c.Name, " on ")
			links = append(links, AlarmLink{point, "/ui/fleet/" + c.ServicePoint})
		}
		switch left := c.NotAfter.Sub(now); {
		case left < 0:
			add(Alarm{Severity: critical, What: fmt.Sprintf("The certificate of %s expired on %s.", of, c.NotAfter.Format(time.DateOnly)), Do: do},
				links...)
		case left < certificateSoon && !c.Renewed:
			add(Alarm{Severity: warning, What: fmt.Sprintf("The certificate of %s expires on %s.", of, c.NotAfter.Format(time.DateOnly)), Do: do},
				links...)
		}
	}
}

// addDatabaseAlarms adds the alarms of the database and its disk.
func (s *Status) addDatabaseAlarms(add addAlarm) {
	if s.FreeBytes != nil && *s.FreeBytes < littleRoom {
		add(Alarm{Severity: critical, What: fmt.Sprintf("The disk of the data directory has %d MiB left.", *s.FreeBytes>>20),
			Do: "Free disk space, or move the directory. Changes are refused when the disk is full."})
	}
	switch s.Database.Condition {
	case store.Full:
		add(Alarm{Severity: critical, What: "The disk of the database is full: changes are refused.",
			Do: "Free disk space (docs/troubleshoot.md). The manager then resumes automatically."})
	case store.Damaged:
		add(Alarm{Severity: critical, What: "The database is damaged.", Do: "Recover the database as in docs/troubleshoot.md.",
			Command: "portolan check"})
	case store.Unreachable:
		add(Alarm{Severity: critical, What: "The database is unreachable.", Do: "Check the database server and the network to it."})
	}
	if s.Database.LogBytes != nil && *s.Database.LogBytes > longLog {
		add(Alarm{Severity: warning, What: fmt.Sprintf("The write-ahead log of the database has %d MiB.", *s.Database.LogBytes>>20),
			Do: "A long read prevents its truncation: find a list or a backup that does not end."})
	}
	if s.Database.StandbyBytes != nil && *s.Database.StandbyBytes > behindStandby {
		add(Alarm{Severity: warning, What: fmt.Sprintf("The standby is %d MiB behind.", *s.Database.StandbyBytes>>20),
			Do: "Check its replication. Lists are read from the database meanwhile."})
	}
	if n := s.Indexes.Missing; n > 0 && s.Indexes.Fault != "" {
		add(Alarm{Severity: warning, What: fmt.Sprintf("%s of user-defined fields could not be created: %s.", plural.Count(n, "index"),
			strings.TrimSuffix(s.Indexes.Fault, ".")), Do: "Correct the cause, or set indexed to false. The manager retries automatically. " +
			"Filters by these fields scan all resources meanwhile."}, AlarmLink{"User-defined fields", "/ui/userDefinedFieldDefinitions"})
	}
}

// addBackupAlarms adds the alarms of backups.
func (s *Status) addBackupAlarms(now time.Time, add addAlarm) {
	switch b := s.Backups; {
	case b.Schedules == 0:
		add(Alarm{Severity: warning, What: "No backups are configured.", Do: "Create a backup schedule, or start the manager with " +
			"--backup-every 24h."}, AlarmLink{"Create a backup schedule", backupsPath})
	case b.Due != nil && now.Sub(*b.Due) > lateBackup:
		last := "No backup was made yet"
		if b.Last != nil {
			last = "The last backup was made on " + b.Last.Format(time.DateTime)
		}
		add(Alarm{Severity: warning, What: last + ", and one was due on " + b.Due.Format(time.DateTime) + ".",
			Do: "Read the reason in the events of the category DATABASE_MAINTENANCE.", Command: "portolan list events --filter " +
				"category=DATABASE_MAINTENANCE"}, AlarmLink{"Show the backups", backupsPath},
			AlarmLink{"Show the events", "/ui/events?filter=category%3A'DATABASE_MAINTENANCE'"})
	}
	if s.Backups.UploadFault != "" {
		add(Alarm{Severity: warning, What: "Backups could not be uploaded to another machine: " +
			strings.TrimSuffix(s.Backups.UploadFault, ".") + ".", Do: "Correct the remote settings of the schedule, or repair that machine. " +
			"The manager retries every five minutes (docs/operate.md)."}, AlarmLink{"Show the backups", backupsPath})
	}
}

// addSpaceAlarms adds the alarm of networks that are nearly full.
func (s *Status) addSpaceAlarms(add addAlarm) {
	total, names, links := int64(0), []string{}, []AlarmLink{}
	for _, n := range s.Space.NearlyFull {
		total += n
	}
	for _, f := range s.Space.Fullest[:min(3, len(s.Space.Fullest))] {
		names = append(names, f.Range)
		links = append(links, AlarmLink{f.Range, fmt.Sprintf("/ui/networks/%d", f.ID)})
	}
	if total > 0 {
		add(Alarm{Severity: warning, What: fmt.Sprintf("%s %s %d%% full or more: %s.", plural.Count(total, "network"),
			plural.Verb(total, "is", "are"), s.Space.Mark, strings.Join(names, ", ")), Do: "Release unused addresses, or assign a larger network.",
			Command: "portolan next blocks/... --size /LENGTH"}, append(links, AlarmLink{"Find space", "/ui/find"})...)
	}
}

// addFleetAlarms adds the alarms of the fleet.
func (s *Status) addFleetAlarms(add addAlarm) {
	if n := s.Fleet.Disconnected; n > 0 {
		names, links := namePoints(s.Fleet.TroubledBy(fleet.NotConnected, ""), n, "status="+fleet.NotConnected)
		add(Alarm{Severity: warning, What: names + plural.Verb(n, " is", " are") + " not connected.",
			Do:      "Check the machine, and its network path to the check-in listener.",
			Command: "portolan fleet list --filter connectionStatus=NOT_CONNECTED"}, links...)
	}
	if n := s.Fleet.Statuses[fleet.Unhealthy]; n > 0 {
		names, links := namePoints(s.Fleet.TroubledBy(fleet.Unhealthy, ""), n, "status="+fleet.Unhealthy)
		add(Alarm{Severity: warning, What: names + plural.Verb(n, " is", " are") + " unhealthy.", Do: reasonOnPage,
			Command: "portolan fleet events NAME"}, links...)
	}
	states := map[string]string{checkin.DeployFailed: "could not be deployed", checkin.Unhealthy: "is unhealthy"}
	for _, name := range slices.Sorted(maps.Keys(s.Fleet.Applications)) {
		for _, status := range []string{checkin.DeployFailed, checkin.Unhealthy} {
			if n := s.Fleet.Applications[name][status]; n > 0 {
				names, links := namePoints(s.Fleet.TroubledBy(status, name), n, "trouble="+name)
				add(Alarm{Severity: warning, What: fmt.Sprintf("The application %s %s on %s.", name, states[status], names),
					Do: reasonOnPage, Command: "portolan fleet applications NAME, portolan fleet logs NAME " + name}, links...)
			}
		}
	}
	if n := s.Fleet.Updates[checkin.UpdateFailed]; n > 0 {
		names, links := namePoints(s.Fleet.TroubledBy(checkin.UpdateFailed, ""), n, "update="+checkin.UpdateFailed)
		add(Alarm{Severity: warning, What: "The update failed on " + names + ".", Do: "Read the reason on the page of the service point, " +
			"then update it again.", Command: "portolan fleet update NAME VERSION"}, links...)
	}
}

// reasonOnPage is the remedy of problems whose reason a service point reports.
const reasonOnPage = "Read the reason on the page of the service point."

// namePoints names service points, such as "buoy1, buoy2 and 2 more", with a link to each, and to the list of all if not all are named.
func namePoints(some []fleet.Troubled, all int64, query string) (text string, links []AlarmLink) {
	names := []string{}
	for _, one := range some {
		names = append(names, one.Name)
		links = append(links, AlarmLink{one.Name, "/ui/fleet/" + one.ID})
	}
	text = strings.Join(names, ", ")
	switch more := all - int64(len(some)); {
	case len(some) == 0:
		text = plural.Count(all, "service point")
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	if all > int64(len(some)) {
		links = append(links, AlarmLink{"Show all", "/ui/fleet?" + query})
	}
	return text, links
}
