//go:build full

package browsertest

import (
	"context"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// Elements returns how many elements of each name the page has. "on*" counts the
// attributes that hold scripts, "style=" those that hold styles, and "script:" the
// addresses that a click would run or show as a page of their own.
func (tab *Tab) Elements() map[string]int {
	tab.t.Helper()
	return Eval[map[string]int](tab, `(() => {
	const n = {}, add = k => n[k] = (n[k] ?? 0) + 1
	for (const e of document.querySelectorAll("*")) {
		add(e.localName)
		for (const a of e.attributes) {
			if (/^on/i.test(a.name)) add("on*")
			if (a.name === "style") add("style=")
			const address = a.value.replace(/[\0-\x20]/g, "")
			if (/(href|src|action|data)$/i.test(a.name) && /^(javascript|data|vbscript):/i.test(address)) add("script:")
		}
	}
	return n
})()`)
}

// Node is a node of the accessibility tree: what a screen reader announces.
type Node struct{ Role, Name string }

// getFullAXTree has results of its own, because those of cdproto fail at properties
// that are newer than it.
var getFullAXTree = cdp.Command[cdp.Empty, struct {
	Nodes []struct {
		Ignored bool `json:"ignored"`
		Role    struct {
			Value string `json:"value"`
		} `json:"role"`
		Name struct {
			Value string `json:"value"`
		} `json:"name"`
	} `json:"nodes"`
}]{Method: "Accessibility.getFullAXTree"}

// Accessible returns the nodes of the accessibility tree with the given role, such as
// "button", "link" or "textbox", in the order of the page.
func (tab *Tab) Accessible(role string) (found []Node) {
	tab.t.Helper()
	for _, n := range call(tab, getFullAXTree, cdp.Empty{}).Nodes {
		if !n.Ignored && n.Role.Value == role {
			found = append(found, Node{n.Role.Value, n.Name.Value})
		}
	}
	return found
}

// InView reports whether the first element of a CSS selector is shown and, in part,
// inside the window.
func (tab *Tab) InView(selector string) bool {
	tab.t.Helper()
	return Eval[bool](tab, `(e => {
	const r = e?.getBoundingClientRect()
	return !!r && e.checkVisibility() && r.height > 0 && r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth
})(document.querySelector(`+quote(selector)+`))`)
}

// Overflow returns by how many pixels the page is wider than the window.
func (tab *Tab) Overflow() int {
	tab.t.Helper()
	return Eval[int](tab, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
}

// Clipboard returns the text that the page copied last.
func (tab *Tab) Clipboard() string {
	tab.t.Helper()
	do(tab, "allow to read the clipboard", func(ctx context.Context, _ *chromedp.Target) (cdp.Empty, error) {
		return chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission:       &browser.PermissionDescriptor{Name: "clipboard-read"},
			Setting:          browser.PermissionSettingGranted,
			BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
		})
	})
	return Eval[string](tab, `navigator.clipboard.readText()`)
}
