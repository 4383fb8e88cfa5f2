package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/client"
	"portolan/internal/manager/fleet"
)

type rolloutCommand struct {
	Start    rolloutStart    `cmd:"" example:"portolan rollout start 1.2.0 --watch" help:"Update many service points, in waves."`
	List     rolloutList     `cmd:"" example:"portolan rollout list" help:"List the rollouts, the latest first."`
	Show     rolloutShow     `cmd:"" example:"portolan rollout show ID" help:"Show the service points of a rollout and their progress."`
	Watch    rolloutWatch    `cmd:"" example:"portolan rollout watch ID" help:"Watch a rollout until it ends or stops."`
	Pause    rolloutPause    `cmd:"" example:"portolan rollout pause ID" help:"Pause a rollout: no further service points are updated."`
	Resume   rolloutResume   `cmd:"" example:"portolan rollout resume ID" help:"Resume a paused or halted rollout."`
	TakeBack rolloutTakeBack `cmd:"" example:"portolan rollout take-back ID" help:"Roll all service points back to their previous version."`
	Delete   rolloutDelete   `cmd:"" example:"portolan rollout delete ID" help:"Delete a finished rollout."`
}

type rolloutStart struct {
	managerFlags
	Version     string        `arg:"" help:"The version."`
	Filter      []string      `help:"Update only service points with these fields, such as status=HEALTHY; label=site=oslo selects a label. Default: all." placeholder:"FIELD=VALUE" env:"-" sep:"none"`
	Wave        []string      `help:"The cumulative target of each wave, as a number or percentage; the last wave updates the rest. Default: 1,5%,25%." placeholder:"N|N%,..." env:"-"`
	MostAway    string        `help:"The maximum number unavailable at the same time. Default: 10%." placeholder:"N|N%" env:"-"`
	MostFailed  string        `help:"The number of tolerated failures. More failures halt the rollout. Default: none." placeholder:"N|N%" env:"-"`
	Window      []string      `help:"A maintenance window, such as 22:00-04:00 or SAT+SUN@06:00-20:00." placeholder:"[DAY+DAY@]FROM-TO" env:"-"`
	TimeZone    string        `help:"The time zone of the windows, such as Europe/Oslo. Default: UTC." env:"-"`
	GiveUp      time.Duration `help:"The time after which an unfinished update counts as failed." default:"15m" env:"-"`
	Description string        `help:"Why." env:"-"`
	Watch       bool          `help:"Watch the rollout until it ends or stops." env:"-"`
}

// Run starts a rollout.
func (c *rolloutStart) Run(s *session) error {
	p := client.Plan{Version: c.Version, Description: c.Description, Waves: c.Wave, MostAway: c.MostAway, MostFailed: c.MostFailed,
		TimeZone: c.TimeZone, GiveUpSeconds: int(c.GiveUp.Seconds())}
	var err error
	if p.Filter, err = filterOf(c.Filter); err != nil {
		return err
	}
	for _, text := range c.Window {
		var w client.Window
		times := text
		if days, rest, ok := strings.Cut(text, "@"); ok {
			w.Days, times = strings.Split(days, "+"), rest
		}
		var ok bool
		if w.From, w.To, ok = strings.Cut(times, "-"); !ok {
			return usageError{fmt.Errorf("--window: %q is not of the form SAT+SUN@06:00-20:00", text)}
		}
		p.Windows = append(p.Windows, w)
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	r, err := cl.StartRollout(s.ctx, p)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(r)
	} else {
		_, err = fmt.Fprintln(s.stdout, r.ID)
	}
	if err != nil || !c.Watch {
		return err
	}
	return watchRollout(s, cl, r.ID)
}

// filterOf returns FIELD=VALUE settings as a filter.
func filterOf(texts []string) (map[string]any, error) {
	filter, labels := map[string]any{}, map[string]string{}
	for _, text := range texts {
		field, value, err := fieldOf(text)
		if err != nil {
			return nil, err
		}
		if field == "label" {
			name, wanted, _ := strings.Cut(value, ":")
			labels[name] = wanted
			continue
		}
		filter[field] = value
	}
	if len(labels) > 0 {
		filter["labels"] = labels
	}
	return filter, nil
}

type rolloutList struct{ managerFlags }

// Run lists the rollouts.
func (c *rolloutList) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	all, err := cl.Rollouts(s.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "ID\tVERSION\tSTATUS\tWAVE\t%s\tTOTAL\tCREATED\tREASON\n", strings.Join(fleet.MemberStates, "\t"))
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t", r.ID, r.Version, r.Status, r.Wave, r.WaveCount)
		for _, state := range fleet.MemberStates {
			fmt.Fprintf(w, "%d\t", r.Counts[state])
		}
		fmt.Fprintf(w, "%d\t%s\t%s\n", r.Total, time.UnixMilli(r.Created).UTC().Format(time.RFC3339), r.Reason)
	}
	return w.Flush()
}

type rolloutShow struct {
	managerFlags
	ID    string `arg:"" help:"The id of the rollout."`
	State string `help:"Show only service points in this state, such as FAILED." env:"-"`
}

// Run shows a rollout and its service points.
func (c *rolloutShow) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	r, err := cl.Rollout(s.ctx, c.ID)
	if err != nil {
		return err
	}
	all, err := cl.RolloutMembers(s.ctx, c.ID, c.State)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(struct {
			client.Rollout
			Members []client.Member `json:"members"`
		}{r, all})
	}
	plan, err := json.Marshal(r.Plan)
	if err != nil {
		return err
	}
	why := ""
	if r.Reason != "" {
		why = ": " + r.Reason
	}
	fmt.Fprintf(s.stdout, "%s, wave %d of %d%s\n%s\n\n", r.Status, r.Wave, r.WaveCount, why, plan)
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tWAVE\tSTATE\tBEFORE\tREASON")
	for _, m := range all {
		name := m.Name
		if name == "" {
			name = m.ServicePoint
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", name, m.Wave, m.State, m.Before, m.Reason)
	}
	return w.Flush()
}

type rolloutWatch struct {
	managerFlags
	ID string `arg:"" help:"The id of the rollout."`
}

// Run watches a rollout.
func (c *rolloutWatch) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	return watchRollout(s, cl, c.ID)
}

// watchEvery is the interval at which a watched rollout is read.
const watchEvery = time.Second

// watchTimeout is the time after which watching ends if the manager does not respond.
const watchTimeout = 2 * time.Minute

// watchRollout shows the progress of a rollout until it ends or stops. It returns an error if the rollout was halted or paused, or if a
// service point failed.
func watchRollout(s *session, cl *client.Client, id string) error {
	b := s.bar("service points")
	defer b.finish()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	answered := time.Now()
	for {
		r, err := cl.Rollout(s.ctx, id)
		var refused *client.Error
		switch {
		case s.ctx.Err() != nil:
			return nil
		case err == nil:
			answered = time.Now()
			if ended, err := showRollout(s, b, r); ended {
				return err
			}
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError, time.Since(answered) > watchTimeout:
			return err
		}
		select {
		case <-s.ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showRollout shows the progress of a rollout and reports whether it has ended or stopped.
func showRollout(s *session, b *bar, r client.Rollout) (ended bool, err error) {
	open := r.Counts["WAITING"] + r.Counts["UPDATING"] + r.Counts["GOING_BACK"]
	phase := fmt.Sprintf("done with, version %s: %s, wave %d of %d, %d failed", r.Version, r.Status, r.Wave, r.WaveCount, r.Counts["FAILED"])
	if r.Reason != "" {
		phase += ", " + r.Reason
	}
	b.show(phase, int64(r.Total-open), int64(r.Total))
	if r.Status == "RUNNING" || r.Status == "TAKING_BACK" {
		return false, nil
	}
	b.finish()
	if _, err := fmt.Fprintf(s.stdout, "%s: %d updated, %d went back, %d failed, %d away, %d skipped\n", r.Status, r.Counts["UPDATED"],
		r.Counts["WENT_BACK"], r.Counts["FAILED"], r.Counts["AWAY"], r.Counts["SKIPPED"]); err != nil {
		return true, err
	}
	switch {
	case r.Status == "HALTED":
		return true, errors.New("the rollout has halted: " + r.Reason)
	case r.Status == "PAUSED":
		return true, errors.New("the rollout is paused")
	case r.Counts["FAILED"] > 0:
		return true, fmt.Errorf("%d failed; for the reasons, run portolan rollout show %s --state FAILED", r.Counts["FAILED"], r.ID)
	}
	return true, nil
}

// rolloutID are the flags of commands for one rollout.
type rolloutID struct {
	managerFlags
	ID string `arg:"" help:"The id of the rollout."`
}

func (c *rolloutID) act(s *session, action string) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	r, err := cl.ActOnRollout(s.ctx, c.ID, action)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.stdout, r.Status)
	return err
}

type rolloutPause struct{ rolloutID }

// Run pauses a rollout.
func (c *rolloutPause) Run(s *session) error { return c.act(s, "pause") }

type rolloutResume struct{ rolloutID }

// Run resumes a rollout.
func (c *rolloutResume) Run(s *session) error { return c.act(s, "resume") }

type rolloutTakeBack struct{ rolloutID }

// Run rolls a rollout back.
func (c *rolloutTakeBack) Run(s *session) error { return c.act(s, "takeBack") }

type rolloutDelete struct{ rolloutID }

// Run deletes a rollout.
func (c *rolloutDelete) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	return cl.DeleteRollout(s.ctx, c.ID)
}
