package console_test

import (
	"math"
	"testing"
	"time"

	"portolan/internal/manager/figures"
)

// drawn is a script that reports whether a canvas below a selector is not empty.
func drawn(selector string) string {
	return `(() => { const c = document.querySelector('` + selector + ` .chart canvas'); if (!c) return false
		const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; return d.some(v => v) })()`
}

// TestFigures checks the charts of a network with their table, the forecast and the selected cards of the overview, and the screen for a
// wall. The selection follows the user to another browser. Each page is accessible, also in dark mode and on a phone.
func TestFigures(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	now := time.Now()
	s.ok(s.m.FillFigures(t.Context(), 28*24*time.Hour, func(at time.Time) []figures.Sample {
		days := now.Sub(at).Hours() / 24
		rate := 10 + 5*math.Sin(days*2*math.Pi)
		return []figures.Sample{{Metric: "utilization", Object: "networks/" + network, Value: max(0, 0.8-0.02*days)},
			{Metric: "queries", Object: figures.Manager, By: "NOERROR", Value: rate}, {Metric: "changes", Object: figures.Manager, Value: 0.01},
			{Metric: "queries", Object: figures.Manager, By: "NXDOMAIN", Value: rate / 10}}
	}))
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network + "/figures"))
	s.ok(p.Wait(drawn(".figure")))
	s.ok(p.Wait(`/Utilization: last \d+ %, mean \d+ %, highest 80 %/.test(document.querySelector(".chart").ariaLabel)`))
	s.ok(p.Click(`document.querySelector(".figure summary")`))
	s.ok(p.Wait(`document.querySelectorAll(".chart-table tbody tr").length > 100`))
	s.accessible(p, "figures of a network")
	s.ok(p.Enter(`document.querySelector(".period select")`, "year"))
	s.ok(p.Wait(`document.querySelectorAll(".chart-table tbody tr").length < 40 && ` + drawn(".figure"))) // a point per day
	s.ok(p.Size(390, 800, true))
	s.ok(p.Wait(drawn(".figure")))
	s.accessible(p, "figures of a network on a phone")
	s.ok(p.Size(1280, 800, false))
	s.ok(p.Go("/"))
	s.ok(p.Text("Networks that fill fastest"))
	s.ok(p.Wait(`[...document.querySelectorAll(".overview td")].some(e => /^in \d+ days$/.test(e.innerText))`))
	s.ok(p.Wait(drawn(".overview")))
	s.ok(p.Click(`[...document.querySelectorAll("button")].find(b => b.innerText.trim() === "Cards")`))
	s.ok(p.Wait(`document.querySelector("dialog .card-choice")`))
	s.accessible(p, "choice of cards")
	s.ok(p.Act(`document.querySelector('[aria-label="Move Backups up"]')`, `for (const l of document.querySelectorAll(".card-choice label"))
		if (!/DNS answers|Backups/.test(l.innerText)) l.querySelector("input").click()
		e.click()`))
	s.ok(p.Wait(`document.querySelectorAll(".card-choice input:checked").length === 2`))
	s.ok(p.Click(`[...document.querySelectorAll("dialog button")].find(b => b.innerText.trim() === "Save")`))
	titles := `[...document.querySelectorAll(".overview h2")].map(e => e.innerText).join()`
	s.ok(p.Wait(titles + ` === "DNS answers,Backups"`))
	other := s.open() // the choice follows the user
	s.ok(other.Go("/?wall=1"))
	s.ok(other.Wait(titles + ` === "DNS answers,Backups" && ` + drawn(".overview")))
	s.ok(other.Wait(`getComputedStyle(document.querySelector(".side")).display === "none"`))
	s.accessible(other, "the wall screen")
}
