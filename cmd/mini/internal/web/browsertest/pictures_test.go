//go:build full

package browsertest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/web"
	"github.com/minibench/mini/cmd/mini/internal/web/browsertest"
)

// pictured returns the names and paths of the pages that scripts/screenshots.sh takes pictures of:
// of the run that is last in the list, and of an instance that it has not resolved.
func pictured(tab *browsertest.Tab, address, token string) [][2]string {
	tab.Open(web.AddParameter(address+"/", "token", token))
	run := browsertest.Eval[string](tab, `[...document.querySelectorAll(".runs tbody td a")].at(-1).pathname`)
	tab.Open(address + run)
	attempt := browsertest.Eval[string](tab, `(document.querySelector("td a.U") ?? document.querySelector("td a[href*='/a/']")).pathname`)
	instance, _, _ := strings.Cut(attempt, "/a/")
	_, id, _ := strings.Cut(instance, "/i/")
	return [][2]string{
		{"runs", "/"},
		{"run", run},
		{"instance", instance},
		{"attempt", attempt},
		{"compare", "/compare"},
		{"compare-instance", "/compare/i/" + id},
	}
}

// TestPictures takes pictures of the pages of the viewer at the address in
// MINI_VIEW_URL: wide and as on a telephone, light and dark. No page may be wider than
// the window.
func TestPictures(t *testing.T) {
	address, token, _ := strings.Cut(os.Getenv("MINI_VIEW_URL"), "/?token=")
	if address == "" {
		t.Skip("MINI_VIEW_URL is not set; scripts/screenshots.sh starts a viewer and sets it")
	}
	for _, page := range pictured(chromium.Tab(t), address, token) {
		name, path := page[0], page[1]
		t.Run(name, func(t *testing.T) {
			tab := chromium.Tab(t)
			for _, v := range []browsertest.View{
				{Width: 1280, Height: 800},
				{Width: 1280, Height: 800, Dark: true},
				{Width: 390, Height: 844},
				{Width: 390, Height: 844, Dark: true},
			} {
				theme := "light"
				if v.Dark {
					theme = "dark"
				}
				tab.SetView(v)
				tab.Open(web.AddParameter(address+path, "token", token))
				if n := tab.Overflow(); n > 0 {
					t.Errorf("width %d: the page is %d pixels wider than the window", v.Width, n)
				}
				tab.SavePicture(fmt.Sprintf("%s-%d-%s", name, v.Width, theme), v, 5*v.Height/2)
			}
		})
	}
}
