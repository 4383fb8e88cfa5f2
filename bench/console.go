package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"portolan/client"
	"portolan/console/browser"
	"portolan/internal/servicepoint"

	"github.com/chromedp/chromedp/kb"
)

// console measures (E): the console in a real browser with a million addresses. The limits are thresholds of human perception, in
// milliseconds and bytes.
func (b *bench) console() error {
	dir, network, err := b.data(1_000_000)
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	defer m.stop()
	c, err := browser.Start(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.Open("http://" + m.addr)
	if err != nil {
		return err
	}
	if err := p.Size(1280, 800, false); err != nil {
		return err
	}
	s := &screens{b: b, p: p, m: m, network: network}
	if err := s.signIn(); err != nil {
		return err
	}
	for _, measure := range []func() error{s.coldLoad, s.routes, s.searches, s.keys, s.mapOfAll, s.scrolling, s.pasted, s.live,
		s.fleetState, s.frozen} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// screens is a browser that is signed in.
type screens struct {
	b       *bench
	p       *browser.Page
	m       *child
	network string
}

func (s *screens) signIn() error {
	if err := s.p.Go("/"); err != nil {
		return err
	}
	status, err := browser.Eval[int](s.p, fmt.Sprintf(`fetch("/api/v2/sessions", {method: "POST", headers: {"Content-Type": "application/json",
		"x-portolan-session": "cookie"}, body: JSON.stringify({username: "admin", password: %q})}).then(r => r.status)`, password))
	if err == nil && status != 201 {
		err = fmt.Errorf("sign in: %d", status)
	}
	return err
}

// limit adds a result with a maximum.
func (s *screens) limit(what string, seen, maximum float64, unit string) {
	s.b.add("(E) "+what, fmt.Sprintf("%.0f %s", seen, unit), fmt.Sprintf("%.0f %s", maximum, unit), seen/maximum, "at most 1", seen <= maximum)
}

// quantile returns the value at a share of the sorted values.
func quantile(values []float64, share float64) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

// still is a JavaScript expression. It resolves to the milliseconds from the click until the page has loaded and was painted.
const still = `new Promise(done => { const began = performance.now(); CLICK; const look = () => requestAnimationFrame(() => {
	if (document.querySelector("#main") && !document.querySelector("#main .loading, #main .skeleton") &&
		(READY)) setTimeout(() => done(performance.now() - began)); else look() });
	look() })`

func timed(click, ready string) string {
	return strings.NewReplacer("CLICK", click, "READY", ready).Replace(still)
}

func (s *screens) coldLoad() error {
	if err := s.p.SetUncached(true); err != nil {
		return err
	}
	if err := s.p.Go("/"); err != nil {
		return err
	}
	if err := s.p.AwaitStill(); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // the browser reports the largest paint with a delay
	text, err := browser.Eval[string](s.p, `new Promise(done => new PerformanceObserver(l => done(JSON.stringify({lcp: l.getEntries().at(-1).startTime,
		own: performance.getEntriesByType("resource").filter(e => e.name.includes("/ui/")).length + 1,
			all: performance.getEntriesByType("resource").length + 1,
		bytes: [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")].reduce((n,
			e) => n + e.transferSize, 0)})))
		.observe({type: "largest-contentful-paint", buffered: true}))`)
	if err != nil {
		return err
	}
	var seen struct{ Lcp, Own, All, Bytes float64 }
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		return err
	}
	s.limit("cold load of the console, compressed", seen.Bytes/1000, 100, "kB")
	s.limit("requests of it for the console itself", seen.Own, 5, "")
	s.b.addResult("(E) requests of it in all, with the overview's data", fmt.Sprintf("%.0f", seen.All))
	s.limit("largest contentful paint of it", seen.Lcp, 1000, "ms")
	return s.p.SetUncached(false)
}

// routes follows links from screen to screen.
func (s *screens) routes() error {
	var times []float64
	to := func(path, ready string) error {
		ms, err := browser.Eval[float64](s.p, timed(fmt.Sprintf(`{ const a = document.createElement("a"); a.href = %q; document.body.append(a); a.click(); a.remove() }`, path), ready))
		times = append(times, ms)
		return err
	}
	for range 20 {
		for _, route := range [][2]string{{"/ui/space", `document.querySelector("h1").innerText === "Space" && document.querySelector(".grid-body .row")`},
			{"/ui/networks/" + s.network, `document.querySelector("h1").innerText.includes("/") && document.querySelectorAll(".grid-body .row").length > 10`},
			{"/ui/names", `document.querySelector("h1").innerText === "Names"`}, {"/ui/transactions", `document.querySelector("h1").innerText === "Changes" && document.querySelector(".grid-body .row")`},
			{"/", `document.querySelector(".overview .card")`}} {
			if err := to(route[0], route[1]); err != nil {
				return fmt.Errorf("%s: %w", route[0], err)
			}
		}
	}
	s.limit("from screen to screen, to painted data, 95 of 100", quantile(times, .95), 150, "ms")
	before, err := s.p.Heap()
	if err != nil {
		return err
	}
	for range 80 { // 500 changes in total
		for _, path := range []string{"/ui/space", "/ui/names", "/ui/fleet", "/ui/staged", "/"} {
			if err := to(path, "true"); err != nil {
				return err
			}
		}
	}
	after, err := s.p.Heap()
	s.limit("memory that 400 changes of screen leave behind", max(after-before, 0)/1e6, 20, "MB")
	return err
}

func (s *screens) searches() error {
	if err := s.p.Keys("/"); err != nil {
		return err
	}
	if err := s.p.Wait(`document.querySelector(".search input")`); err != nil {
		return err
	}
	var times []float64
	for _, word := range []string{"10.3.7.12", "host-99", "host-123456", "10.15.0.0/24", "ost-77777"} {
		for n := 2; n <= len(word); n++ {
			text := strconv.Quote(word[:n])
			ms, err := browser.Eval[float64](s.p, `new Promise(done => { const i = document.querySelector(".search input"), began = performance.now(); i.value = `+text+`;
				i.dispatchEvent(new Event("input", {bubbles: true})); const look = () => requestAnimationFrame(() => document.querySelector("#hits")?.dataset.for === `+text+
				` ? setTimeout(() => done(performance.now() - began)) : look()); look() })`)
			if err != nil {
				return fmt.Errorf("search %s: %w", text, err)
			}
			times = append(times, ms)
		}
	}
	s.limit("search, from a key to its hits painted, 95 of 100", quantile(times, .95), 100, "ms")
	return s.p.Keys("\x1b")
}

// keys presses keys in a table of a million rows and in the search. It measures the time until each is painted (Event Timing, W3C).
func (s *screens) keys() error {
	if err := s.p.Go("/ui/networks/" + s.network); err != nil {
		return err
	}
	if err := s.p.AwaitStill(); err != nil {
		return err
	}
	if _, err := browser.Eval[any](s.p, `globalThis.seen = []; new PerformanceObserver(l => { for (const e of l.getEntries()) if (e.interactionId) seen.push(e.duration) })
		.observe({type: "event", durationThreshold: 16, buffered: false}); document.querySelector(".grid").focus(); 0`); err != nil {
		return err
	}
	pressed := 0
	for _, key := range []string{kb.ArrowDown, kb.PageDown, kb.ArrowUp, kb.End, kb.Home} {
		for range 12 {
			pressed++
			if err := s.p.Keys(key); err != nil {
				return err
			}
		}
	}
	if err := s.p.Keys("/"); err != nil {
		return err
	}
	if err := s.p.Wait(`document.querySelector(".search input")`); err != nil {
		return err
	}
	for _, c := range "host-4711 10.3.7.1" {
		pressed++
		if err := s.p.Keys(string(c)); err != nil {
			return err
		}
	}
	text, err := browser.Eval[string](s.p, `new Promise(done => setTimeout(() => done(JSON.stringify(seen)), 300))`)
	if err != nil {
		return err
	}
	var slow []float64 // the browser reports only durations of at least 16 ms
	if err := json.Unmarshal([]byte(text), &slow); err != nil {
		return err
	}
	for len(slow) < pressed {
		slow = append(slow, 8)
	}
	s.limit("from a key press to the next frame, 98 of 100", quantile(slow, .98), 100, "ms")
	return s.p.Keys("\x1b")
}

func (s *screens) mapOfAll() error {
	path := "/ui/networks/" + s.network + "/map?cells=65536"
	if err := s.p.Go("/ui/space"); err != nil {
		return err
	}
	if err := s.p.AwaitStill(); err != nil {
		return err
	}
	ms, err := browser.Eval[float64](s.p, timed(fmt.Sprintf(`{ const a = document.createElement("a"); a.href = %q; document.body.append(a); a.click(); a.remove() }`, path),
		`document.querySelector("canvas")?.dataset.drawn === "65536"`))
	if err != nil {
		return err
	}
	s.limit("map of a /8 in 65,536 cells", ms, 300, "ms")
	longest, err := browser.Eval[float64](s.p, `new Promise(async done => { let most = 0; const o = new PerformanceObserver(l => { for (const e of l.getEntries()) most = Math.max(most, e.duration) });
		o.observe({type: "longtask"}); const c = document.querySelector("canvas"), b = c.getBoundingClientRect();
		for (let i = 0; i < 120; i++) { c.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: b.left + i * 3,
			clientY: b.top + i * 2})); await new Promise(requestAnimationFrame) }
		setTimeout(() => { o.disconnect(); done(most) }, 100) })`)
	s.limit("longest task while pointing over it", longest, 50, "ms")
	if err != nil {
		return err
	}
	panned, err := browser.Eval[float64](s.p, `new Promise(async done => { const zoomIn = () => [...document.querySelectorAll("button")].find(b => b.innerText === "Zoom in").click();
		zoomIn(); await new Promise(requestAnimationFrame); zoomIn(); await new Promise(requestAnimationFrame);
		let most = 0; const o = new PerformanceObserver(l => { for (const e of l.getEntries()) most = Math.max(most,
			e.duration) }); o.observe({type: "longtask"});
		const c = document.querySelector("canvas"), b = c.getBoundingClientRect(), at = (type, i) => c.dispatchEvent(new PointerEvent(type,
			{bubbles: true, pointerId: 1,
			button: 0, clientX: b.left + 400 - i * 2, clientY: b.top + 300 - i}));
		c.setPointerCapture = () => {}; at("pointerdown", 0);
		for (let i = 0; i < 120; i++) { at("pointermove", i); await new Promise(requestAnimationFrame) }
		at("pointerup", 120);
		setTimeout(() => { o.disconnect(); done(new URLSearchParams(location.search).get("view")?.startsWith("4,") ? most : NaN) }, 100) })`)
	s.limit("longest task while dragging it, four times larger", panned, 50, "ms")
	return err
}

func (s *screens) scrolling() error {
	if err := s.p.Go("/ui/networks/" + s.network); err != nil {
		return err
	}
	if err := s.p.AwaitStill(); err != nil {
		return err
	}
	text, err := browser.Eval[string](s.p, `new Promise(async done => { const m = document.querySelector("#main"); let nodes = 0, blank = 0, since = 0;
		for (let i = 0; i < 240; i++) { m.scrollTop += 320; await new Promise(requestAnimationFrame); nodes = Math.max(nodes,
			document.querySelectorAll("*").length);
			const now = performance.now(),
				empty = document.querySelector(".grid-body .skeleton");
			if (empty) { since ||= now; blank = Math.max(blank, now - since) } else since = 0 }
		done(JSON.stringify({nodes, blank})) })`)
	if err != nil {
		return err
	}
	var seen struct{ Nodes, Blank float64 }
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		return err
	}
	s.limit("elements while a million addresses scroll", seen.Nodes, 2500, "")
	s.limit("longest that a row was blank meanwhile", seen.Blank, 100, "ms")
	return nil
}

// pasted tries a thousand rows, one of them outside of its network.
func (s *screens) pasted() error {
	if err := s.p.Go("/ui/bulk"); err != nil {
		return err
	}
	if err := s.p.AwaitStill(); err != nil {
		return err
	}
	rows := "type,name,address,state\n"
	for i := range 1000 {
		second := 200
		if i == 700 {
			second = 0 // an address in use
		}
		rows += fmt.Sprintf("IPv4Address,row-%d,10.%d.%d.%d,STATIC\n", i, second, 1+i/200, 1+i%200)
	}
	fill := func(selector, text string) error {
		_, err := browser.Eval[any](s.p, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %s; e.dispatchEvent(new Event("input", {bubbles: true})) })()`,
			selector, strconv.Quote(text)))
		return err
	}
	if err := fill(".field input.mono", "networks/"+s.network+"/addresses"); err != nil {
		return err
	}
	if err := fill("#rows", rows); err != nil {
		return err
	}
	const try = `[...document.querySelectorAll("#main button")].find(b => b.innerText.startsWith("Preview all"))`
	if err := s.p.Wait(try); err != nil {
		return err
	}
	ms, err := browser.Eval[float64](s.p, timed(try+".click()", `document.querySelector(".sheet td.faulty") || document.body.innerText.includes("Nothing will be applied")`))
	s.limit("a thousand pasted rows, every fault at its cell", ms, 2000, "ms")
	return err
}

// live changes a resource by the API and waits until the page shows it.
func (s *screens) live() error {
	if err := s.p.Go("/ui/networks/" + s.network); err != nil {
		return err
	}
	if err := s.p.Wait(`document.querySelector(".live.live") && document.querySelectorAll(".grid-body .row").length > 10`); err != nil {
		return err
	}
	var times []float64
	for n := range 10 {
		name := fmt.Sprintf("seen-%d", n)
		ms, err := browser.Eval[float64](s.p, `fetch("/api/v2/networks/`+s.network+`/addresses?limit=1&orderBy=address").then(r => r.json()).then(async l => { const began = performance.now();
			await fetch("/api/v2/addresses/" + l.data[0].id, {method: "PATCH", headers: {"Content-Type": "application/merge-patch+json"}, body: JSON.stringify({name: "`+name+`"})});
			return new Promise(done => { const look = () => requestAnimationFrame(() => document.querySelector(".grid-body").innerText.includes("`+name+
			`") ? done(performance.now() - began) : look()); look() }) })`)
		if err != nil {
			return err
		}
		times = append(times, ms)
	}
	s.limit("a change by the API, until it is seen, the slowest of ten", slices.Max(times), 1000, "ms")
	return nil
}

// fleetState measures how long the page takes to show a status change of the fleet. Service points enrol one by one and turn from
// NOT_CONNECTED to HEALTHY.
func (s *screens) fleetState() error {
	if err := s.p.Go("/ui/fleet"); err != nil {
		return err
	}
	api := &client.Client{Base: "http://" + s.m.addr, Token: s.m.token}
	var times []float64
	for n := range 5 {
		name := fmt.Sprintf("seen-%d", n)
		ctx, cancel := context.WithCancel(context.Background())
		simulation := &servicepoint.Crowd{Size: 1, Hands: 1, Version: "1.0", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Enrol: func(ctx context.Context, _ int) (string, string, error) {
				created, err := api.CreateInstance(ctx, name, "", 1)
				if err == nil {
					err = s.p.Text(name) // so that only the next status is measured
				}
				return created.RegistrationEndpoint, created.RegistrationKey, err
			}}
		ended := make(chan error, 1)
		go func() { ended <- simulation.Run(ctx) }()
		stop := func() { cancel(); <-ended }
		for deadline := time.Now().Add(browser.Patience); simulation.Held.Load() == 0; {
			if time.Now().After(deadline) {
				stop()
				return errors.New("a service point did not enrol")
			}
			time.Sleep(time.Millisecond) // poll interval
		}
		start := time.Now()
		err := s.p.Wait(`[...document.querySelectorAll(".grid-body .row")].some(r => r.innerText.includes("` + name + `") && /\bhealthy/i.test(r.innerText))`)
		times = append(times, float64(time.Since(start).Milliseconds()))
		stop()
		if err != nil {
			return err
		}
	}
	s.limit("a state of the fleet, until it is seen, the slowest of five", slices.Max(times), 2000, "ms")
	return nil
}

// frozen measures how long the page takes to report that the manager does not respond. The manager is stopped and keeps its connections
// open.
func (s *screens) frozen() error {
	if err := s.p.Wait("document.querySelector('.live.live')"); err != nil {
		return err
	}
	if err := s.m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	start := time.Now()
	err := s.p.Wait("document.querySelector('.live.stale')")
	took := time.Since(start)
	if e := s.m.cmd.Process.Signal(syscall.SIGCONT); e != nil || err != nil {
		return errors.Join(err, e)
	}
	s.limit("a manager that has stopped, until the page says so", float64(took.Milliseconds()), 10_000, "ms")
	return s.p.Wait("document.querySelector('.live.live')")
}
