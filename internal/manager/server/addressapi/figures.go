package addressapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/figures"
)

// figuresPath is the path of figures over time.
const figuresPath = published.Base + "/figures"

// Figures are the figures of an object over a period.
type Figures struct {
	// Object is manager, or a collection, a slash and an id. Name is the name of the resource; empty without one.
	Object string    `json:"object"`
	Name   string    `json:"name"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	// Step is the period of a point, in seconds.
	Step int64 `json:"step"`
	// Metrics are the metrics with figures in the period.
	Metrics []FigureMetric `json:"metrics"`
}

// FigureMetric is a metric with its lines.
type FigureMetric struct {
	figures.Metric
	Lines []FigureLine `json:"lines"`
}

// FigureLine is a line of a metric.
type FigureLine struct {
	// Name is the value that the line is of, such as a response code; empty for the only line of a metric.
	Name string `json:"name"`
	// At are the starts of the points in Unix seconds, Mean and Max their means and maxima.
	At   []int64   `json:"at"`
	Mean []float64 `json:"mean"`
	Max  []float64 `json:"max"`
}

// figuresDeclaration declares the figures over time.
func (a *API) figuresDeclaration() family.Path {
	text, date := family.Schema{"type": "string"}, family.Schema{"type": "string", "format": "date-time"}
	return family.Path{Pattern: figuresPath, Operations: []family.Operation{{
		Method: http.MethodGet, ID: "getFigures", Summary: "Figures of an object over time (Portolan extension)",
		Description: "Utilization of networks, blocks and ranges, answers of name servers and resolvers, DHCP messages and leases, the state " +
			"of the fleet, and the load of the APIs. Each figure is visible to callers that may see its whole object; those of the manager " +
			"require rights on everything. Figures are kept for 13 months: for 2 days with a step of a minute, for 60 days with 15 minutes, " +
			"then with 3 hours.",
		Access: family.Access{Schemes: schemes, Admit: a.admit},
		Query: []family.Parameter{
			{Name: "object", Description: "manager, networks/ID, blocks/ID, ranges/ID, servers/ID or servicePoints/ID.", Schema: text},
			{Name: "metric", Description: "The names of the wanted metrics, separated by commas; by default all.", Schema: text},
			{Name: "from", Description: "The start; by default a day before the end.", Schema: date},
			{Name: "to", Description: "The end; by default now.", Schema: date},
			{Name: "step", Description: "The period of a point in seconds; by default one with 300 points or fewer. Older figures have longer " +
				"steps.", Schema: family.Schema{"type": "integer", "format": "int64"}},
		},
		Success:  family.Success{Status: http.StatusOK, Description: "The figures.", Schema: family.Ref("Figures")},
		Problems: []int{400, 403, 404, 503}, Handle: a.showFigures,
	}}}
}

// figureQuery is a parsed query for figures.
type figureQuery struct {
	figures.Query
	collection, id string
}

// parseFigures parses the parameters of a request for figures.
func parseFigures(r *http.Request, now time.Time) (q figureQuery, err error) {
	values := r.URL.Query()
	q.Object = values.Get("object")
	q.collection, q.id, _ = strings.Cut(q.Object, "/")
	declared := figures.Declared(q.collection)
	if len(declared) == 0 || q.collection == figures.Manager && q.Object != figures.Manager || q.collection != figures.Manager && q.id == "" {
		return q, problem.Query("object", "must be manager, networks/ID, blocks/ID, ranges/ID, servers/ID or servicePoints/ID, not %q", q.Object)
	}
	if text := values.Get("metric"); text != "" {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.ContainsFunc(declared, func(m figures.Metric) bool { return m.Name == name }) {
				return q, problem.Query("metric", "must be metrics of %s, not %q", q.collection, name)
			}
			q.Metrics = append(q.Metrics, name)
		}
	}
	q.To = now
	for _, one := range []struct {
		name string
		into *time.Time
	}{{"to", &q.To}, {"from", &q.From}} {
		if text := values.Get(one.name); text != "" {
			if *one.into, err = time.Parse(time.RFC3339, text); err != nil {
				return q, problem.Query(one.name, "must be a date and time such as 2026-01-31T10:00:00Z, not %q", text)
			}
		}
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-24 * time.Hour)
	}
	if !q.From.Before(q.To) {
		return q, problem.Query("from", "must be before the end")
	}
	q.Step = figures.StepFor(q.To.Sub(q.From))
	if text := values.Get("step"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > 366*86400 {
			return q, problem.Query("step", "must be a number of seconds from 1 to a year, not %q", text)
		}
		q.Step = time.Duration(n) * time.Second
	}
	if q.To.Sub(q.From)/q.Step > figures.MaxPoints {
		return q, problem.Query("step", "the period has more than %d steps of %v", figures.MaxPoints, q.Step)
	}
	return q, nil
}

// showFigures answers with the figures of an object that the caller sees.
func (a *API) showFigures(w http.ResponseWriter, r *family.Request) error {
	q, err := parseFigures(r.Request, a.Address.Store.Now())
	if err != nil {
		return err
	}
	answer := Figures{Object: q.Object, From: q.From, To: q.To, Step: int64(q.Step.Seconds()), Metrics: []FigureMetric{}}
	objects := []string{q.Object}
	switch q.collection {
	case figures.Manager:
		if caller := callerOf(r); caller.Limited() {
			return problem.Forbidden("AccessDenied",
				"%s does not have permission to view the figures of the manager: this requires access rights to everything",
				caller.Name)
		}
	case figures.ServicePoints:
		p, err := a.anyPrincipal(r.Request)
		if err != nil {
			return err
		}
		if err := a.SeesServicePoint(r.Context(), p, callerOf(r), q.id); err != nil {
			return err
		}
	default:
		name, point, err := a.figureResource(r.Context(), callerOf(r), q.collection, q.id)
		if err != nil {
			return err
		}
		if answer.Name = name; point != "" { // what its service point counts
			objects = append(objects, figures.ServicePoints+"/"+point)
		}
	}
	if a.Figures == nil {
		return errNoFigures()
	}
	var lines []figures.Line
	for _, q.Object = range objects {
		some, err := a.Figures.Query(r.Context(), q.Query)
		if err != nil {
			return problem.Unavailable("FiguresUnavailable", "the figures over time could not be read: %v", err)
		}
		lines = append(lines, some...)
	}
	for _, metric := range figures.Declared(q.collection) {
		m := FigureMetric{Metric: metric, Lines: linesOf(lines, metric.Name)}
		if len(m.Lines) > 0 {
			answer.Metrics = append(answer.Metrics, m)
		}
	}
	family.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// linesOf returns the lines of a metric.
func linesOf(lines []figures.Line, metric string) (all []FigureLine) {
	for _, l := range lines {
		if l.Metric != metric {
			continue
		}
		one := FigureLine{Name: l.By, At: []int64{}, Mean: []float64{}, Max: []float64{}}
		for _, p := range l.Points {
			one.At, one.Mean, one.Max = append(one.At, p.At), append(one.Mean, p.Mean), append(one.Max, p.Max)
		}
		all = append(all, one)
	}
	return all
}

// figureResource returns the name of a resource with figures, and its service point. A caller with limited rights must see everything in
// it, because the figures depend on that.
func (a *API) figureResource(ctx context.Context, caller resource.Caller, collection, text string) (name, point string, err error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return "", "", problem.Query("object", "%q is not the id of a resource", text)
	}
	return name, point, a.Address.Store.View(ctx, func(tx *store.Tx) error {
		row, err := a.Address.Visible(tx, id, caller)
		if err != nil {
			return err
		}
		if row.Collection != collection {
			return problem.NotFound("%s/%d does not exist: %d is in %s", collection, id, id, row.Collection)
		}
		if name = row.Name; caller.Limited() {
			whole, err := caller.Rights.Whole(tx, []int64{id})
			if err != nil {
				return err
			}
			if !whole[id] {
				return problem.Forbidden("AccessDenied", "%s does not have permission to view everything in %s, which the figures include", caller.Name,
					problem.Describe(row.ID, row.Name))
			}
		}
		if collection != figures.Servers {
			return nil
		}
		full, err := tx.Get(id)
		if err != nil {
			return fmt.Errorf("read server %d: %w", id, err)
		}
		var body struct {
			ServicePoint string `json:"servicePoint"`
		}
		if err := json.Unmarshal(full.Body, &body); err != nil {
			return fmt.Errorf("read server %d: %w", id, err)
		}
		point = body.ServicePoint
		return nil
	})
}

// ServicePointCheck returns an error if a user does not see a service point.
type ServicePointCheck func(ctx context.Context, p authz.Principal, caller resource.Caller, id string) error
