// Package browser drives a real browser for the console's tests, screenshots and measurements.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// ErrNone reports that no browser is installed.
var ErrNone = errors.New("there is no Chromium on this machine")

// Patience is the timeout of a page's operations. It is long because other processes may use the processors.
const Patience = time.Minute

// find returns the path of a browser's executable. A headless shell has the engine of the browser without its windows. It takes half of the
// CPU time.
func find() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNone
}

// Browser is a headless browser.
type Browser struct {
	ctx   context.Context
	close []context.CancelFunc
}

// Start starts a browser. It returns ErrNone if none is installed.
func Start(ctx context.Context) (*Browser, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("lang", "en"),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"))
	if os.Geteuid() == 0 { // Chromium's sandbox does not work for root
		options = append(options, chromedp.NoSandbox)
	}
	b := &Browser{}
	allocator, cancel := chromedp.NewExecAllocator(ctx, options...)
	b.close = append(b.close, cancel)
	b.ctx, cancel = chromedp.NewContext(allocator)
	b.close = append(b.close, cancel)
	if err := chromedp.Do(b.ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return b, nil
}

// NewProfile returns the same browser with cookies and storage of its own. Close ends the profile alone.
func (b *Browser) NewProfile() (*Browser, error) {
	p := &Browser{}
	var cancel context.CancelFunc
	p.ctx, cancel = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p.close = append(p.close, cancel)
	if err := chromedp.Do(p.ctx); err != nil {
		p.Close()
		return nil, fmt.Errorf("create a profile: %w", err)
	}
	return p, nil
}

// Close stops the browser.
func (b *Browser) Close() {
	for i := len(b.close) - 1; i >= 0; i-- {
		b.close[i]()
	}
}

// Page is a tab.
type Page struct {
	ctx   context.Context
	close context.CancelFunc
	// Origin is the origin of the console's URL.
	Origin string

	mu     sync.Mutex
	faults []string // guarded by mu
}

// Open opens a tab for the console at an origin.
func (b *Browser) Open(origin string) (*Page, error) {
	p := &Page{Origin: origin}
	p.ctx, p.close = chromedp.NewContext(b.ctx)
	if err := chromedp.Do(p.ctx); err != nil {
		return nil, err
	}
	if _, err := chromedp.Call(p.ctx, log.Enable, struct{}{}); err != nil {
		return nil, err
	}
	go func() {
		for e, err := range chromedp.Events(p.ctx, runtime.ExceptionThrown) {
			if err == nil {
				p.fault("exception: " + e.ExceptionDetails.Text + " " + describe(e.ExceptionDetails.Exception))
			}
		}
	}()
	go func() {
		for e, err := range chromedp.Events(p.ctx, log.EntryAdded) {
			if err == nil && e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "Failed to load resource") {
				p.fault(string(e.Entry.Source) + ": " + e.Entry.Text)
			}
		}
	}()
	return p, nil
}

func describe(o *runtime.RemoteObject) string {
	if o == nil || o.Description == "" {
		return ""
	}
	return o.Description
}

// Close closes the tab.
func (p *Page) Close() { p.close() }

func (p *Page) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

// Faults returns the faults of the page since the last call: exceptions, violations of the content security policy, other errors.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.faults
	p.faults = nil
	return list
}

// runWithTimeout runs an action with the timeout Patience.
func runWithTimeout[T any](p *Page, a chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, a)
}

// Go opens a path of the console, like a URL typed into the browser.
func (p *Page) Go(path string) error {
	_, err := runWithTimeout(p, chromedp.Navigate(p.Origin+path))
	return err
}

// Eval returns the value of an expression, or the result of a promise.
func Eval[T any](p *Page, expression string) (T, error) {
	return runWithTimeout(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// isLoading reports whether the error of an evaluation means that the page is loaded again.
func isLoading(err error) bool {
	return strings.Contains(err.Error(), "context") || strings.Contains(err.Error(), "navigated or closed")
}

// Wait waits until an expression is true, also while the page is loaded again.
func (p *Page) Wait(expression string) error {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ok {
			return nil
		}
		if ctx.Err() != nil {
			text, _ := Eval[string](p, "(document.querySelector('dialog') ?? document.querySelector('#main') ?? document.body)"+
				".innerText.slice(0, 1000)")
			return fmt.Errorf("the page does not come to %s; it says: %s %v", expression, text, p.Faults())
		}
		if err != nil && ctx.Err() == nil && !isLoading(err) {
			return fmt.Errorf("%s: %w", expression, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Act waits until an expression yields an element, and runs an action on it, in which the element is e. Both run in one evaluation, so that
// no other script of the page can remove the element between them.
func (p *Page) Act(element, action string) error {
	return p.Wait("(e => { if (!e) return false; " + action + "; return true })(" + element + ")")
}

// Click waits for an element that is not disabled and clicks it.
func (p *Page) Click(element string) error {
	return p.Act("(e => e && !e.disabled ? e : null)("+element+")", "e.click()")
}

// Enter waits for a field that is not disabled, gives it the focus, and replaces its text or its selected option.
func (p *Page) Enter(field, text string) error {
	quoted, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return p.Act("(e => e && !e.disabled ? e : null)("+field+")", "e.focus(); e.value = "+string(quoted)+
		"; e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}))")
}

// Text waits until the page shows a text.
func (p *Page) Text(text string) error {
	quoted, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return p.Wait("document.body.innerText.includes(" + string(quoted) + ")")
}

// AwaitStill waits until the page has loaded its data and drawn it.
func (p *Page) AwaitStill() error {
	return p.Wait("document.readyState === 'complete' && document.querySelector('#main') && " +
		"!document.querySelector('.loading,.skeleton,[aria-busy=true],canvas:not([data-drawn])')")
}

// Keys types keys.
func (p *Page) Keys(keys string) error {
	_, err := runWithTimeout(p, chromedp.KeyEvent(keys))
	return err
}

// Size sets the size of the page, in CSS pixels, and its colour scheme.
func (p *Page) Size(width, height int64, dark bool) error {
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width,
		Height:            height,
		DeviceScaleFactor: 1, Mobile: width < 600}); err != nil {
		return err
	}
	colours := "light"
	if dark {
		colours = "dark"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: colours}}})
	return err
}

// Shot returns a screenshot of the visible part as PNG.
func (p *Page) Shot() ([]byte, error) { return runWithTimeout(p, chromedp.CaptureScreenshot()) }

// SetUncached disables or enables the browser cache.
func (p *Page) SetUncached(yes bool) error {
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	_, err := chromedp.Call(p.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: yes})
	return err
}

// Heap returns the size of the page's JavaScript heap after garbage collection, in bytes.
func (p *Page) Heap() (float64, error) {
	if _, err := chromedp.Call(p.ctx, heapprofiler.CollectGarbage, struct{}{}); err != nil {
		return 0, err
	}
	used, err := chromedp.Call(p.ctx, runtime.GetHeapUsage, struct{}{})
	if err != nil {
		return 0, err
	}
	return used.UsedSize, nil
}
