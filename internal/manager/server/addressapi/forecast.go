package addressapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/figures"
	"portolan/internal/manager/ipam"
)

// forecastPath is the path of the forecast for networks.
const forecastPath = published.Base + "/spaceForecast"

// forecastPeriod is the period that the forecast follows from, forecastLife how long its trends are kept.
const (
	forecastPeriod = 28 * 24 * time.Hour
	forecastLife   = 10 * time.Minute
)

// SpaceForecast lists networks by their utilization and by its growth.
type SpaceForecast struct {
	// Since is the start of the period that the growth is of.
	Since time.Time `json:"since"`
	// Fullest are the fullest networks and ranges, Filling those that are full first.
	Fullest []ForecastNetwork `json:"fullest"`
	Filling []ForecastNetwork `json:"filling"`
}

// ForecastNetwork is a network or a DHCP range with its growth.
type ForecastNetwork struct {
	ID         int64  `json:"id"`
	Type       string `json:"type"`
	Name       string `json:"name"`
	Collection string `json:"collection"`
	Range      string `json:"range"`
	// Utilization is the part in use, PerDay its growth per day. FullInDays is null if it is not full within a year.
	Utilization float64  `json:"utilization"`
	PerDay      float64  `json:"perDay"`
	FullInDays  *float64 `json:"fullInDays"`
}

// trends caches the trends of all networks, whose computation reads all their figures.
type trends struct {
	mu sync.Mutex
	// The following fields are guarded by mu.
	at  time.Time
	all map[string]figures.Trend
}

func (t *trends) get(ctx context.Context, of figures.Store, now time.Time) (map[string]figures.Trend, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all != nil && now.Sub(t.at) < forecastLife && !now.Before(t.at) {
		return t.all, nil
	}
	all, err := of.Trends(ctx, "utilization", now.Add(-forecastPeriod))
	if err == nil {
		t.all, t.at = all, now
	}
	return all, err
}

// forecastDeclaration declares the forecast.
func (a *API) forecastDeclaration() family.Path {
	return family.Path{Pattern: forecastPath, Operations: []family.Operation{{
		Method: http.MethodGet, ID: "getSpaceForecast", Summary: "The fullest networks, and those that fill fastest (Portolan extension)",
		Description: "Up to 10 IPv4 networks and DHCP ranges each, from the figures of the last 28 days. The forecast is the line with the " +
			"least squares. Callers with limited rights see those that they see everything in.",
		Access:   family.Access{Schemes: schemes, Admit: a.admit},
		Success:  family.Success{Status: http.StatusOK, Description: "The forecast.", Schema: family.Ref("SpaceForecast")},
		Problems: []int{503}, Handle: a.showForecast,
	}}}
}

// maxForecast is the maximum length of a list of the forecast, maxExamined the number of candidates that are examined for a caller.
const (
	maxForecast = 10
	maxExamined = 2000
)

// showForecast answers with the forecast for the networks that the caller sees.
func (a *API) showForecast(w http.ResponseWriter, r *family.Request) error {
	if a.Figures == nil {
		return errNoFigures()
	}
	now := a.Address.Store.Now()
	all, err := a.trends.get(r.Context(), a.Figures, now)
	if err != nil {
		return problem.Unavailable("FiguresUnavailable", "the figures over time could not be read: %v", err)
	}
	answer := SpaceForecast{Since: now.Add(-forecastPeriod)}
	byShare, byTime := []ForecastNetwork{}, []ForecastNetwork{}
	for object, t := range all {
		one := ForecastNetwork{Utilization: t.Last, PerDay: t.PerDay}
		collection, text, _ := strings.Cut(object, "/")
		one.Collection = collection
		if one.ID, err = strconv.ParseInt(text, 10, 64); err != nil {
			continue
		}
		byShare = append(byShare, one)
		if days, ok := t.FullIn(); ok {
			one.FullInDays = &days
			byShare[len(byShare)-1] = one
			byTime = append(byTime, one)
		}
	}
	slices.SortFunc(byShare, func(x, y ForecastNetwork) int {
		return cmp.Or(cmp.Compare(y.Utilization, x.Utilization), cmp.Compare(x.ID, y.ID))
	})
	slices.SortFunc(byTime, func(x, y ForecastNetwork) int {
		return cmp.Or(cmp.Compare(*x.FullInDays, *y.FullInDays), cmp.Compare(x.ID, y.ID))
	})
	if err := a.Address.Store.View(r.Context(), func(tx *store.Tx) (err error) {
		if answer.Fullest, err = a.visibleNetworks(tx, callerOf(r), byShare); err == nil {
			answer.Filling, err = a.visibleNetworks(tx, callerOf(r), byTime)
		}
		return err
	}); err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// visibleNetworks returns the first networks that exist and that the caller sees everything in.
func (a *API) visibleNetworks(tx *store.Tx, caller resource.Caller, all []ForecastNetwork) ([]ForecastNetwork, error) {
	found := []ForecastNetwork{}
	for part := range slices.Chunk(all[:min(len(all), maxExamined)], 100) {
		ids := make([]int64, len(part))
		for i, one := range part {
			ids[i] = one.ID
		}
		shown, err := a.Address.VisibleResources(tx, caller, ids)
		if err != nil {
			return nil, err
		}
		rows, err := tx.Load(ids) // with their ranges
		if err != nil {
			return nil, err
		}
		var whole map[int64]bool
		if caller.Limited() {
			if whole, err = caller.Rights.Whole(tx, ids); err != nil {
				return nil, err
			}
		}
		for _, one := range part {
			row := rows[one.ID]
			if row == nil || shown[one.ID] == nil || row.Collection != one.Collection || caller.Limited() && !whole[one.ID] {
				continue
			}
			one.Type, one.Name, one.Range = row.Type, row.Name, ipam.RangeOf(row).String()
			if found = append(found, one); len(found) == maxForecast {
				return found, nil
			}
		}
	}
	return found, nil
}

// errNoFigures reports a manager without figures.
func errNoFigures() error {
	return problem.Unavailable("FiguresDisabled",
		"this manager keeps no figures over time: start it with --data, without --figures-bytes=-1, or with --figures-url")
}
