package console_test

import (
	"testing"

	"portolan/console/browser"

	"github.com/chromedp/chromedp/kb"
)

// focused returns the text or the label of the element with the focus.
func (s *stage) focused(p *browser.Page) string {
	s.Helper()
	text, err := browser.Eval[string](p, `(e => e.innerText?.trim() || e.ariaLabel || e.name || "")(document.activeElement)`)
	s.ok(err)
	return text
}

// tabToField presses Tab until the field with a label has the focus.
func (s *stage) tabToField(p *browser.Page, label string) {
	s.Helper()
	for range 80 {
		s.press(p, kb.Tab)
		at, err := browser.Eval[string](p, `[...(document.activeElement.labels ?? [])].map(l => l.innerText.trim()).join()`)
		s.ok(err)
		if at == label {
			return
		}
	}
	s.Fatalf("Tab does not lead to the field %s", label)
}

// clear selects the text of the focused field, so that keys replace it.
func (s *stage) clear(p *browser.Page) {
	s.Helper()
	_, err := browser.Eval[any](p, "document.activeElement.select()")
	s.ok(err)
}

// TestDayByKeyboard does the tasks of a day with keys only: it assigns a range of addresses, undoes that, deletes selected rows, moves in
// the map, and creates blocks where Find space found them. Windows hold the focus, and return it when they close.
func TestDayByKeyboard(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.AwaitStill())
	// A range of addresses, as a drag over the strip assigns it.
	s.press(p, "/")
	s.ok(p.Wait("document.activeElement.getAttribute('role') === 'combobox'"))
	s.press(p, "10.0.3.0/24")
	s.ok(p.Wait("document.querySelector('.hit.chosen')?.innerText.includes('10.0.3.0/24')"))
	s.press(p, kb.Enter)
	s.ok(p.Wait("document.querySelector('h1')?.innerText === '10.0.3.0/24'"))
	s.ok(p.AwaitStill())
	s.tabTo(p, "Assign address", ".head")
	s.press(p, kb.Enter)
	s.ok(p.Wait("document.querySelector('dialog')?.contains(document.activeElement)"))
	s.press(p, "pump-[1-3]")
	s.tabToField(p, "First address")
	s.clear(p)
	s.press(p, "10.0.3.100")
	s.ok(p.Text("3 resources will be created"))
	for range 30 { // the window holds the focus
		s.press(p, kb.Tab)
		if inside, err := browser.Eval[bool](p,
			"document.activeElement === document.body || !!document.activeElement.closest('dialog')"); err != nil ||
			!inside {
			t.Fatalf("Tab leaves the window to %q (%v)", s.focused(p), err)
		}
	}
	s.tabTo(p, "Apply now", "dialog")
	s.press(p, kb.Enter)
	s.ok(p.Wait("!document.querySelector('dialog') && document.querySelector('.toast button')?.innerText.includes('Undo')"))
	s.id("addresses", "name:'pump-3'")
	if at := s.focused(p); at != "Assign address" {
		t.Errorf("after the window the focus is at %q", at)
	}
	s.press(p, "u")
	s.ok(p.Wait("document.activeElement.closest('.toasts')"))
	s.press(p, kb.Enter)
	s.ok(p.Text("Undone."))

	// Several rows of a table.
	s.ok(p.Wait("document.querySelector('#row-0') && !document.querySelector('[role=grid]').innerText.includes('pump-')"))
	tabToGrid := func() {
		t.Helper()
		for range 80 {
			s.press(p, kb.Tab)
			if at, err := browser.Eval[bool](p, "document.activeElement.getAttribute('role') === 'grid'"); err != nil || at {
				s.ok(err)
				return
			}
		}
		t.Fatal("Tab does not lead to the table")
	}
	tabToGrid()
	s.press(p, kb.End, " ", kb.ArrowUp, " ")
	s.ok(p.Text("2 rows selected"))
	s.tabTo(p, "Delete", ".selection")
	s.press(p, kb.Enter)
	s.ok(p.Text("2 resources will be deleted"))
	s.press(p, kb.Escape)
	s.ok(p.Wait("!document.querySelector('dialog')"))
	if at := s.focused(p); at != "Delete" {
		t.Errorf("after the window the focus is at %q", at)
	}

	// The map: cells by arrow keys, Enter opens one.
	s.ok(p.Go("/ui/blocks/" + s.id("blocks", "range:'10.0.0.0/16'") + "/map"))
	s.ok(p.AwaitStill())
	for range 80 {
		s.press(p, kb.Tab)
		if at, err := browser.Eval[bool](p, "!!document.activeElement.closest('.canvas-box')"); err != nil || at {
			s.ok(err)
			break
		}
	}
	s.press(p, kb.ArrowRight, kb.ArrowRight)
	s.ok(p.Wait("document.querySelector('.cell-line')?.innerText.includes('10.0.0.128/26')"))
	s.press(p, "+")
	s.ok(p.Text("2 times enlarged"))

	// Blocks where Find space found them.
	s.ok(p.Go("/ui/find?in=" + s.id("blocks", "range:'10.0.0.0/8'")))
	s.ok(p.AwaitStill())
	s.tabToField(p, "Create")
	s.press(p, "b") // blocks
	s.ok(p.Text("Number of blocks"))
	s.tabToField(p, "Number of blocks")
	s.clear(p)
	s.press(p, "2")
	s.tabToField(p, "Prefix length")
	s.press(p, "/20")
	s.ok(p.Wait("new URLSearchParams(location.search).get('length') === '20'"))
	s.ok(p.Text("Create"))
	s.ok(p.AwaitStill())
	s.tabTo(p, "Create", ".options")
	s.press(p, kb.Enter)
	s.ok(p.Wait("document.querySelector('dialog')?.contains(document.activeElement)"))
	s.press(p, "yard-[1-2]")
	s.ok(p.Text("2 resources will be created"))
	s.press(p, kb.Enter)
	s.ok(p.Wait("!document.querySelector('dialog') && document.querySelector('.toast')"))
	s.id("blocks", "name:'yard-2'")
}

// TestTablesOnAPhone checks that a table of all objects has all columns on a phone, and scrolls sideways next to its first column. It also
// checks that a page names an unknown tab of its URL.
func TestTablesOnAPhone(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Size(390, 800, false))
	s.ok(p.Go("/ui/addresses"))
	s.ok(p.Wait(`document.querySelector(".sideways #row-0 a")?.innerText === "10.0.0.1"`))
	s.ok(p.Wait(`document.querySelector(".sideways .headrow").innerText.includes("Location")`))
	s.ok(p.Wait(`document.documentElement.scrollWidth <= 390`))
	s.ok(p.Act(`document.querySelector(".sideways")`, "e.scrollLeft = 300"))
	s.ok(p.Wait(`document.querySelector(".sideways").scrollLeft > 100`))
	s.ok(p.Wait(`(a => a.left >= 0 && a.right <= 390)(document.querySelector("#row-1 a").getBoundingClientRect())`))
	s.ok(p.Go("/ui/zones/" + s.id("zones", "absoluteName:'harbour.example'") + "?tab=odd"))
	s.ok(p.Text("This page has no tab “odd”."))
}
