//go:build full

package browsertest

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// timeLimit is how long one action in a tab may take.
const timeLimit = 2 * time.Minute

// Tab is one page of the browser. It shares no cookies and no storage with others.
// Its methods fail the test if the browser reports an error.
type Tab struct {
	t         testing.TB
	ctx       context.Context
	close     context.CancelFunc
	noScripts bool
	dialogs   sync.WaitGroup

	mu       sync.Mutex
	origins  []string // that were opened, and may be requested
	requests []Request
	messages []string
	problems []string
	dropped  bool // requests, because the machine's network has changed
}

// Tab opens a tab and starts Chromium if it does not run. The tab closes at the end
// of the test, which fails if the tab has problems that the test did not take. Start
// the server first, so that it ends after the tab: a request that fails is a problem.
func (b *Browser) Tab(t testing.TB) *Tab {
	t.Helper()
	b.once.Do(func() { b.err = b.start() })
	switch {
	case errors.Is(b.err, errNoChromium) && os.Getenv("MINI_BROWSER") != "required":
		t.Skip(b.err)
	case b.err != nil:
		t.Fatal(b.err)
	}
	tab := &Tab{t: t}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.record))
	tab.ctx = ctx
	tab.close = cancel
	t.Cleanup(func() {
		if ctx.Err() == nil {
			tab.Close()
		}
	})
	// The first action opens the tab, and a deadline of its context would close it.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	call(tab, audits.Enable, cdp.Empty{})
	return tab
}

// Close closes the tab before the end of the test.
func (tab *Tab) Close() {
	tab.t.Helper()
	for _, p := range tab.Problems() {
		tab.Report(p)
	}
	tab.dialogs.Wait()
	tab.close()
}

// Before runs a script at the start of each page that is opened from now on.
func (tab *Tab) Before(script string) {
	tab.t.Helper()
	call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// DisableScripts turns JavaScript off for the pages that are opened from now on.
func (tab *Tab) DisableScripts() {
	tab.t.Helper()
	tab.noScripts = true
	call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// Open opens the page of an address and waits until its script has set the attribute
// data-ready of the html element or, with scripts turned off, until it has loaded.
func (tab *Tab) Open(address string) {
	tab.t.Helper()
	tab.Load(address)
	tab.WaitReady()
}

// Load opens an address and waits for the load event only.
func (tab *Tab) Load(address string) {
	tab.t.Helper()
	tab.mu.Lock()
	tab.origins = append(tab.origins, origin(address))
	tab.mu.Unlock()
	for {
		ctx, cancel := context.WithTimeout(tab.ctx, timeLimit)
		err := chromedp.Do(ctx, chromedp.Navigate(address))
		cancel()
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), networkChanged) {
			tab.t.Fatalf("open %s: %v", address, err)
		}
	}
}

// WaitReady waits as Open does, after a click on a link, for example.
func (tab *Tab) WaitReady() {
	tab.t.Helper()
	ready := `document.readyState === "complete"`
	if !tab.noScripts {
		ready += ` && "ready" in document.documentElement.dataset`
	}
	tab.Wait(ready)
}

// Back goes back in the history and waits for the page.
func (tab *Tab) Back() {
	tab.t.Helper()
	tab.travel(-1)
}

// Forward goes forward in the history and waits for the page.
func (tab *Tab) Forward() {
	tab.t.Helper()
	tab.travel(1)
}

// travel does not wait for the load event, which a page that the browser kept in
// memory does not have.
func (tab *Tab) travel(by int64) {
	tab.t.Helper()
	history := call(tab, page.GetNavigationHistory, cdp.Empty{})
	to := history.CurrentIndex + by
	if to < 0 || to >= int64(len(history.Entries)) {
		tab.t.Fatalf("go %+d in the history: it has %d pages, and this is number %d", by, len(history.Entries), history.CurrentIndex)
	}
	entry := history.Entries[to]
	call(tab, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: entry.ID})
	tab.Wait("location.href === " + quote(entry.URL))
	tab.WaitReady()
}

// Reload loads the page again and waits for it.
func (tab *Tab) Reload() {
	tab.t.Helper()
	tab.Do("reload", chromedp.Reload())
	tab.WaitReady()
}

// Press presses keys one after another: characters, and those of the package kb.
// Ctrl and the like are options, such as chromedp.KeyModifiers(chromedp.ModifierCtrl).
func (tab *Tab) Press(keys string, options ...chromedp.KeyOption) {
	tab.t.Helper()
	for _, r := range keys {
		for _, event := range keyEvents(r, options) {
			call(tab, input.DispatchKeyEvent, *event)
		}
	}
}

// keyEvents returns the events of a key. A character is part of the event of the key going down, so
// that a page that handles the key keeps the character out of a field, as with a keyboard.
func keyEvents(r rune, options []chromedp.KeyOption) (events []*input.DispatchKeyEventParams) {
	for _, event := range kb.Encode(r) {
		for _, option := range options {
			option(event)
		}
		if event.Type != kb.KeyChar {
			events = append(events, event)
		} else if event.Modifiers&^int64(chromedp.ModifierShift) == 0 {
			events[0].Text, events[0].UnmodifiedText = event.Text, event.UnmodifiedText
		}
	}
	return events
}

// Click clicks on the first visible element of a CSS selector, once it has stopped moving.
// Otherwise the click may miss it.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.Wait(`(() => {
		const shown = [...document.querySelectorAll(` + quote(selector) + `)].find(e => e.getClientRects().length)
		const at = shown && JSON.stringify(shown.getBoundingClientRect())
		const still = at && at === window.browsertestAt
		window.browsertestAt = still ? null : at
		return still
	})()`)
	tab.Do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Type replaces the text of a field and presses Enter.
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	css := chromedp.CSS(selector)
	tab.Do("type into "+selector, chromedp.Clear(css), chromedp.SendKeys(css, text+"\r"))
}

// Text returns the visible text of an element.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	return Eval[string](tab, `document.querySelector(`+quote(selector)+`)?.innerText ?? "(no such element)"`)
}

// Wait waits until an expression of JavaScript is true. It works whatever the page's
// content security policy says. If the browser has dropped requests of the page because the
// machine's network changed, the page is loaded again.
func (tab *Tab) Wait(expression string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, timeLimit)
	defer cancel()
	var last error
	for {
		// An error may be a navigation in between, so it is not final.
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ok {
			return
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		if tab.hasDropped() {
			_ = chromedp.Do(ctx, chromedp.Reload()) // if it fails, the wait does
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			tab.t.Fatalf("wait until %s: not within %s (last error: %v); problems of the page:\n%s",
				expression, timeLimit, last, strings.Join(tab.Problems(), "\n"))
		}
	}
}

// Eval returns the value of an expression of JavaScript; a promise is awaited. T is
// what encoding/json makes of the value.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	await := true
	return do(tab, "evaluate "+expression, chromedp.Evaluate[T](expression,
		func(p *runtime.EvaluateParams) { p.AwaitPromise = &await }))
}

// Do runs actions of chromedp that have no method here.
func (tab *Tab) Do(what string, actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	do(tab, what, chromedp.Steps(actions...))
}

func do[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, timeLimit)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.t.Fatalf("%.200s: %v", what, err)
	}
	return v
}

// call runs a command of the DevTools protocol.
func call[P, R any](tab *Tab, command cdp.Command[P, R], params P) R {
	tab.t.Helper()
	return do(tab, command.Method, func(ctx context.Context, t *chromedp.Target) (R, error) {
		return cdp.Call(ctx, t, command, params)
	})
}
