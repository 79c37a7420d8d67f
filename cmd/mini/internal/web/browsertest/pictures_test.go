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

// pictured are the pages that scripts/screenshots.sh takes pictures of. The second
// instance of the demo is the one whose scripted replies are wrong in one run.
var pictured = []struct{ name, path string }{
	{"runs", "/"},
	{"run", "/r/1"},
	{"instance", "/r/1/i/1"},
	{"attempt", "/r/1/i/1/a/1"},
	{"compare", "/compare"},
	{"compare-instance", "/compare/1/i/1"},
}

// TestPictures takes pictures of the pages of the viewer at the address in
// MINI_VIEW_URL: wide and as on a telephone, light and dark. No page may be wider than
// the window.
func TestPictures(t *testing.T) {
	address, token, _ := strings.Cut(os.Getenv("MINI_VIEW_URL"), "/?token=")
	if address == "" {
		t.Skip("MINI_VIEW_URL is not set; scripts/screenshots.sh starts a viewer and sets it")
	}
	for _, page := range pictured {
		t.Run(page.name, func(t *testing.T) {
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
				tab.Open(web.AddParameter(address+page.path, "token", token))
				if n := tab.Overflow(); n > 0 {
					t.Errorf("width %d: the page is %d pixels wider than the window", v.Width, n)
				}
				tab.SavePicture(fmt.Sprintf("%s-%d-%s", page.name, v.Width, theme), v, 3*v.Height)
			}
		})
	}
}
