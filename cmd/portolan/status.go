package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/server"
)

type statusCommand struct {
	managerFlags
}

// Help returns examples.
func (statusCommand) Help() string {
	return `Examples:

  portolan status
  portolan status --json | jq .alarms`
}

// Run prints the status of the manager on one screen.
func (c *statusCommand) Run(s *session) error {
	raw, now, err := c.status(s)
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.NewOutput(s.stdout, cli.JSON, "", nil).WriteOne(raw)
	}
	return writeStatus(s.stdout, &now)
}

// status requests the manager's status.
func (c *statusCommand) status(s *session) (raw json.RawMessage, now server.Status, err error) {
	cl, err := c.client()
	if err != nil {
		return nil, now, err
	}
	if err := cl.Do(s.ctx, http.MethodGet, client.AddressPath+"status", nil, &raw); err != nil {
		return nil, now, err
	}
	return raw, now, json.Unmarshal(raw, &now)
}

// counts returns counts by name as text: "2 HEALTHY, 1 UNHEALTHY".
func counts(all map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] > 0 {
			parts = append(parts, fmt.Sprint(all[name], " ", name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// statusRows returns the lines of the screen: a label and its value.
func statusRows(now *server.Status) (rows [][2]string) {
	add := func(what, is string) {
		if len(rows) > 0 && what != "" {
			for i := len(rows) - 1; i >= 0; i-- {
				if rows[i][0] == what { // the label is printed once
					what = ""
				} else if rows[i][0] != "" {
					break
				}
			}
		}
		rows = append(rows, [2]string{what, is})
	}
	add("manager", fmt.Sprintf("%s on %s, at %s, since %s (%s)", now.Version, now.Host, now.Address, now.Since.Format(time.DateTime), now.Go))
	database := fmt.Sprintf("%s %s, %d MiB, %d transactions, %d changes waiting", now.Database.Kind, now.Database.Version,
		now.Database.Bytes>>20, now.Database.Transactions, now.Database.Waiting)
	if now.Database.LogBytes != nil {
		database += fmt.Sprintf(", log %d KiB", *now.Database.LogBytes>>10)
	}
	if now.Database.StandbyBytes != nil {
		database += fmt.Sprintf(", the standby is %d KiB behind", *now.Database.StandbyBytes>>10)
	}
	if now.FreeBytes != nil {
		database += fmt.Sprintf(", %.1f GiB free on the disk", float64(*now.FreeBytes)/(1<<30))
	}
	add("database", database)
	backups := fmt.Sprintf("none; %d schedules", now.Backups.Schedules)
	if now.Backups.Last != nil {
		backups = fmt.Sprintf("the last on %s, %d KiB; %d files, %d schedules", now.Backups.Last.Format(time.DateTime),
			now.Backups.LastBytes>>10, now.Backups.Files, now.Backups.Schedules)
	}
	add("backups", backups)
	add("fleet", fmt.Sprintf("%s; %d connected", counts(now.Fleet.Statuses), now.Fleet.Connected))
	for _, name := range slices.Sorted(maps.Keys(now.Fleet.Applications)) {
		add("applications", name+": "+counts(now.Fleet.Applications[name]))
	}
	if len(now.Fleet.Rollouts) > 0 {
		add("rollouts", counts(now.Fleet.Rollouts))
	}
	for _, f := range now.Space.Fullest[:min(len(now.Space.Fullest), 5)] {
		add("nearly full", fmt.Sprintf("%s in %s: %.0f%%, %d of %d", f.Range, f.Configuration, f.Share()*100, f.Used, f.Size))
	}
	for _, one := range now.Certificates {
		renewed := ""
		if one.Renewed {
			renewed = ", renewed by itself"
		}
		add("certificates", fmt.Sprintf("%s until %s%s", one.Name, one.NotAfter.Format(time.DateOnly), renewed))
	}
	sealed := "by keys stored next to the data: run portolan doctor"
	if now.MasterKey {
		sealed = "by a master key"
	}
	add("secrets", "sealed "+sealed)
	return rows
}

func writeStatus(w io.Writer, now *server.Status) error {
	for _, row := range statusRows(now) {
		if _, err := fmt.Fprintf(w, "%-13s %s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	if len(now.Alarms) == 0 {
		_, err := fmt.Fprintln(w, "\nno alarms")
		return err
	}
	for _, a := range now.Alarms {
		if _, err := fmt.Fprintf(w, "\n%s: %s\n    %s\n", a.Severity, a.What, alarmRemedy(a)); err != nil {
			return err
		}
	}
	return nil
}

// alarmRemedy returns the remedy of an alarm with its command.
func alarmRemedy(a server.Alarm) string {
	if a.Command == "" {
		return a.Do
	}
	return a.Do + " (" + a.Command + ")"
}

type doctorCommand struct {
	serveCommand
	jsonFlag
	URL   string `help:"The URL of the manager to check. Default: that of the context." name:"url" placeholder:"URL"`
	Token string `help:"A bearer token for the manager." placeholder:"TOKEN"`
	CA    string `help:"A file with the authority to trust." name:"ca" placeholder:"FILE"`
}

// Help returns examples.
func (doctorCommand) Help() string {
	return `Examples:

  portolan doctor --data /var/lib/portolan
  portolan doctor --config /etc/portolan/portolan.yaml`
}

// Run checks this machine and the manager, and prints what to do. The exit code is 1 if there is a fault.
func (c *doctorCommand) Run(s *session) error {
	var all []server.Finding
	if c.Data != "" || c.Database != "" {
		o, err := c.options(s)
		if err != nil {
			return err
		}
		all = server.Examine(s.ctx, o)
	}
	asks := statusCommand{managerFlags{connectFlags: connectFlags{URL: c.URL, Token: c.Token, CA: c.CA}}}
	one, err := asks.selectedContext()
	if err != nil {
		return err
	}
	_, listens, _ := net.SplitHostPort(c.Listen)
	at, err := url.Parse(one.URL)
	if err != nil {
		return err
	}
	if other := c.URL == "" && (c.Data != "" || c.Database != "") && at.Port() != listens; other {
		all = append(all, server.Finding{What: "manager",
			Is: "not checked: the settings have port " + listens + ", but the context is for " + one.URL,
			Do: "specify it with --url and --token"})
	} else if one.Token == "" {
		all = append(all, server.Finding{What: "manager", Is: "not checked: no token", Do: "portolan login " + one.URL})
	} else if _, now, err := asks.status(s); err != nil {
		all = append(all, server.Finding{What: "manager", Is: err.Error(), Do: "check that it runs (systemctl status portolan), and read its log",
			Fault: true})
	} else {
		all = append(all, server.Finding{What: "manager", Is: now.Version + " answers at " + one.URL})
		// The manager's report on the master key replaces the finding from the local settings.
		all = append(slices.DeleteFunc(all, func(f server.Finding) bool { return f.What == server.Sealing(false).What }),
			server.Sealing(now.MasterKey))
		for _, a := range now.Alarms {
			all = append(all, server.Finding{What: "alarm", Is: a.What, Do: alarmRemedy(a), Fault: a.Severity == "CRITICAL"})
		}
	}
	if c.JSON {
		if err := c.print(s, all); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(f server.Finding) bool { return !f.Fault })
	} else {
		for _, f := range all {
			if err := f.Print(s.stdout); err != nil {
				return err
			}
		}
	}
	if n := server.Faults(all); n > 0 {
		return fmt.Errorf("%d of these need attention", n)
	}
	return nil
}

type passwordCommand struct {
	dataFlag
	User string `arg:"" help:"The user." default:"admin"`
}

// Help returns examples.
func (passwordCommand) Help() string {
	return `This command requires write access to the data directory. It asks for the new password on a terminal, and otherwise reads
it from standard input. If the input is empty, it generates a password and prints it once. The sessions of the user end, and
its bearer tokens and key sets are revoked, because another person may have them.

Examples:

  portolan password --data /var/lib/portolan admin < /dev/null`
}

// Run sets a new password for a user.
func (c *passwordCommand) Run(s *session) error {
	password, made := "", false
	if isInteractive() {
		var err error
		if password, err = askPassword(s, c.User); err != nil {
			return err
		}
	} else if line, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil || errors.Is(err, io.EOF) {
		password = strings.TrimRight(line, "\r\n")
	}
	if password == "" {
		password, made = secrets.New()[:20], true
	}
	return c.open(func(st *store.Store, _ *identity.Service) error {
		if err := server.SetPassword(s.ctx, model.NewAPI(st), c.User, password); err != nil {
			return err
		}
		text := "the password was changed"
		if made {
			text = "the new password of " + c.User + ", shown once: " + password
		}
		text += "\nthe user's sessions were ended, and its tokens and key sets were revoked"
		_, err := fmt.Fprintln(s.stdout, text)
		return err
	})
}

type authorityCommand struct {
	dataFlag
}

// Help returns examples.
func (authorityCommand) Help() string {
	return `Pass it to commands with --ca, or add it to the trusted authorities of browsers and programs.

Examples:

  portolan authority --data /var/lib/portolan > authority.pem`
}

// Run prints the certificate of the manager's own authority.
func (c *authorityCommand) Run(s *session) error {
	return c.open(func(st *store.Store, _ *identity.Service) error {
		authority, err := fleet.LoadAuthority(s.ctx, st, secrets.Sealer{})
		if err == nil {
			_, err = fmt.Fprint(s.stdout, authority.PEM())
		}
		return err
	})
}
