package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/manager/server/addressapi"
)

type figuresCommand struct {
	managerFlags
	Object string   `arg:"" optional:"" help:"manager, or networks/ID, blocks/ID, ranges/ID, servers/ID or servicePoints/ID." default:"manager"`
	Metric []string `help:"The names of the wanted metrics. Default: all." placeholder:"NAME"`
	Period string   `help:"The period before now: a duration such as 90m, 24h, 28d or 13M (months)." default:"24h" placeholder:"DURATION"`
	Step   string   `help:"The period of a point. Default: about 300 points." placeholder:"DURATION"`
	CSV    bool     `help:"Print all points as CSV: time, metric, line, mean, max." name:"csv"`
}

// Help returns examples.
func (figuresCommand) Help() string {
	return `Examples:

  portolan figures
  portolan figures networks/100123 --period 28d
  portolan figures servers/100200 --metric queries --period 13M --csv > queries.csv`
}

// Run prints the figures of an object: a line with a sparkline for each line, or all points as CSV.
func (c *figuresCommand) Run(s *session) error {
	period, err := parsePeriod(c.Period)
	if err != nil {
		return usageError{fmt.Errorf("--period: %w", err)}
	}
	now := time.Now().UTC().Truncate(time.Second)
	query := url.Values{"object": {c.Object}, "to": {now.Format(time.RFC3339)}, "from": {now.Add(-period).Format(time.RFC3339)}}
	if len(c.Metric) > 0 {
		query.Set("metric", strings.Join(c.Metric, ","))
	}
	if c.Step != "" {
		step, err := parsePeriod(c.Step)
		if err != nil {
			return usageError{fmt.Errorf("--step: %w", err)}
		}
		query.Set("step", strconv.FormatInt(int64(step.Seconds()), 10))
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := cl.Do(s.ctx, http.MethodGet, client.AddressPath+"figures?"+query.Encode(), nil, &raw); err != nil {
		return err
	}
	if c.JSON {
		return cli.NewOutput(s.stdout, cli.JSON, "", nil).WriteOne(raw)
	}
	var all addressapi.Figures
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	if c.CSV {
		return writeFiguresCSV(s, &all)
	}
	return writeFigures(s, &all)
}

// units are the units of durations that time.ParseDuration does not have.
var units = map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "M": 365 * 24 * time.Hour / 12}

// parsePeriod parses a positive duration, also in days, weeks and months.
func parsePeriod(text string) (d time.Duration, err error) {
	end := max(0, len(text)-1)
	if unit, there := units[text[end:]]; there {
		var n uint64
		n, err = strconv.ParseUint(text[:end], 10, 12)
		d = time.Duration(n) * unit //nolint:gosec // 12 bits
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90m, 24h, 28d or 13M", text)
	}
	return d, nil
}

// sparkWidth is the number of characters of a sparkline.
const sparkWidth = 48

// sparkline returns the points of a period as characters of eight heights. Times without a point are blank.
func sparkline(at []int64, values []float64, from, to int64) string {
	sums, counts := [sparkWidth]float64{}, [sparkWidth]float64{}
	least, most := math.Inf(1), math.Inf(-1)
	for i, v := range values {
		place := min(sparkWidth-1, max(0, int(float64(at[i]-from)/float64(max(1, to-from))*sparkWidth)))
		sums[place], counts[place] = sums[place]+v, counts[place]+1
		least, most = min(least, v), max(most, v)
	}
	least = min(0, least)
	text := []rune{}
	for i, n := range counts {
		if n == 0 {
			text = append(text, ' ')
			continue
		}
		height := 0
		if most > least {
			height = int((sums[i]/n - least) / (most - least) * 7.999)
		}
		text = append(text, []rune("▁▂▃▄▅▆▇█")[height])
	}
	return string(text)
}

// writeFigures prints a table of the lines.
func writeFigures(s *session, all *addressapi.Figures) error {
	if len(all.Metrics) == 0 {
		_, err := fmt.Fprintln(s.stderr, "no figures in this period")
		return err
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "METRIC\tLINE\tLAST\tMEAN\tMAX\tUNIT\t"+all.From.Format("2006-01-02 15:04")+" to "+all.To.Format("2006-01-02 15:04"))
	for _, m := range all.Metrics {
		for _, l := range m.Lines {
			sum, most := 0.0, math.Inf(-1)
			for i, v := range l.Mean {
				sum, most = sum+v, max(most, l.Max[i])
			}
			n := len(l.Mean)
			if n == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%.4g\t%.4g\t%.4g\t%s\t%s\n", m.Name, l.Name, l.Mean[n-1], sum/float64(n), most, m.Unit,
				sparkline(l.At, l.Mean, all.From.Unix(), all.To.Unix()))
		}
	}
	return w.Flush()
}

// writeFiguresCSV prints all points.
func writeFiguresCSV(s *session, all *addressapi.Figures) error {
	w := csv.NewWriter(s.stdout)
	rows := [][]string{{"time", "metric", "line", "mean", "max"}}
	for _, m := range all.Metrics {
		for _, l := range m.Lines {
			for i, at := range l.At {
				rows = append(rows, []string{time.Unix(at, 0).UTC().Format(time.RFC3339), m.Name, l.Name,
					strconv.FormatFloat(l.Mean[i], 'g', -1, 64), strconv.FormatFloat(l.Max[i], 'g', -1, 64)})
			}
		}
	}
	return w.WriteAll(rows)
}
