//go:build full

package browsertest

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Request is a request that a page made, whether or not it was answered.
type Request struct{ Method, URL string }

// Requests returns the requests since the tab was opened.
func (tab *Tab) Requests() []Request {
	tab.settle()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.requests)
}

// Messages returns what the pages wrote to the console.
func (tab *Tab) Messages() []string {
	tab.settle()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.messages)
}

// Problems returns what the pages did and must not do since the last call.
func (tab *Tab) Problems() []string {
	tab.settle()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	all := tab.problems
	tab.problems = nil
	return all
}

// Report fails the test for a problem.
func (tab *Tab) Report(problem string) {
	tab.t.Helper()
	tab.t.Error("page: " + problem)
}

// networkChanged is in the error of requests that Chromium drops when an interface of the
// machine's network appears or goes, as for each container that another test starts.
const networkChanged = "net::ERR_NETWORK_CHANGED"

// hasDropped reports whether Chromium has dropped requests since the last call.
func (tab *Tab) hasDropped() bool {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	dropped := tab.dropped
	tab.dropped = false
	return dropped
}

// settle waits for the events of what the page has done. The browser sends them
// before it answers.
func (tab *Tab) settle() {
	ctx, cancel := context.WithTimeout(tab.ctx, timeLimit)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[int]("1")(ctx, t)
		return err
	})); err != nil && tab.ctx.Err() == nil {
		tab.problem("the page does not answer: %v", err)
	}
}

func (tab *Tab) problem(format string, args ...any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.problems = append(tab.problems, fmt.Sprintf(format, args...))
}

// origin returns the part of an address that requests of its page may have: scheme
// and host, or the file itself.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if u.Scheme == "file" {
		return u.Scheme + "://" + u.Path
	}
	return u.Scheme + "://" + u.Host
}

// requested records a request. A page may use nothing but its own origin; data: is
// foreign too, because the content security policy of the viewer allows no such image.
func (tab *Tab) requested(method, address string) {
	tab.mu.Lock()
	tab.requests = append(tab.requests, Request{method, address})
	known := slices.Contains(tab.origins, origin(address))
	tab.mu.Unlock()
	if !known && address != "about:blank" && !strings.HasPrefix(address, "blob:") {
		tab.problem("foreign request: %s %.200s", method, address)
	}
}

// record is called for every event of the tab, in order. It must not wait.
func (tab *Tab) record(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		// The page that says that another could not be loaded has images of its own.
		if !strings.HasPrefix(e.DocumentURL, "chrome-error:") {
			tab.requested(e.Request.Method, e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		tab.requested("websocket", e.URL)
	case *network.EventWebTransportCreated:
		tab.requested("webtransport", e.URL)
	case *runtime.EventConsoleAPICalled:
		tab.consoleCalled(e)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		tab.problem("exception: %s", text)
	case *log.EventEntryAdded:
		if strings.Contains(e.Entry.Text, networkChanged) {
			tab.mu.Lock()
			tab.dropped = true
			tab.mu.Unlock()
		} else if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			tab.problem("browser %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if c := e.Issue.Details.ContentSecurityPolicyIssueDetails; c != nil {
			tab.problem("content security policy: %s %s %s",
				c.ViolatedDirective, c.ContentSecurityPolicyViolationType, c.BlockedURL)
		}
	case *page.EventJavascriptDialogOpening:
		tab.problem("dialog: %s: %s", e.Type, e.Message)
		// A page stands still while a dialog is open.
		tab.dialogs.Go(func() {
			_, _ = chromedp.Call(tab.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		})
	case *page.EventWindowOpen:
		tab.problem("window opened: %s", e.URL)
	case *inspector.EventTargetCrashed:
		tab.problem("the page crashed")
	}
}

func (tab *Tab) consoleCalled(e *runtime.EventConsoleAPICalled) {
	words := []string{string(e.Type) + ":"}
	for _, a := range e.Args {
		words = append(words, cmp.Or(a.Description, strings.Trim(string(a.Value), `"`)))
	}
	text := strings.Join(words, " ")
	tab.mu.Lock()
	tab.messages = append(tab.messages, text)
	tab.mu.Unlock()
	switch e.Type {
	case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
		tab.problem("console %s", text)
	}
}
