//go:build full

package browsertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// View is how a page is shown. Width and Height are pixels; Media is "print" for the
// style of the printed page.
type View struct {
	Width, Height int
	Dark          bool
	Media         string
}

// SetView changes the view. Animations are turned off in every view.
func (tab *Tab) SetView(v View) {
	tab.t.Helper()
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	call(tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(v.Width), Height: int64(cmp.Or(v.Height, 800)), DeviceScaleFactor: 1, Mobile: v.Width < 500,
	})
	call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: v.Media, Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// Picture returns the page as a PNG, from its top to its end or to the given height.
// The window becomes as high as the picture, so that all of it is rendered.
func (tab *Tab) Picture(v View, limit int) []byte {
	tab.t.Helper()
	tab.SetView(v)
	height := Eval[int](tab, `document.documentElement.scrollHeight`)
	v.Height = max(min(height, limit), 1)
	tab.SetView(v)
	Eval[bool](tab, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	shot := call(tab, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	picture, err := reducePNG(shot.Data)
	if err != nil {
		tab.t.Fatalf("make a picture: %v", err)
	}
	return picture
}

// SavePicture writes Picture to NAME.png in the artifacts folder of the test, which
// go test keeps with -artifacts.
func (tab *Tab) SavePicture(name string, v View, limit int) {
	tab.t.Helper()
	file := filepath.Join(tab.t.ArtifactDir(), name+".png")
	if err := os.WriteFile(file, tab.Picture(v, limit), 0o600); err != nil {
		tab.t.Fatal(err)
	}
}

// PDF returns the printed page.
func (tab *Tab) PDF() []byte {
	tab.t.Helper()
	return call(tab, page.PrintToPDF, page.PrintToPDFParams{}).Data
}

// Pages returns the number of pages of a PDF that Chromium made.
func Pages(pdf []byte) int { return bytes.Count(pdf, []byte("/Type /Page\n")) }

// reducePNG writes a PNG with the 256 most frequent colours. Pages have few colours
// besides those of the edges of letters.
func reducePNG(data []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	pixels := image.NewRGBA(full.Bounds())
	draw.Draw(pixels, pixels.Rect, full, pixels.Rect.Min, draw.Src)
	count := map[color.RGBA]int{}
	for p := range slices.Chunk(pixels.Pix, 4) {
		count[color.RGBA{p[0], p[1], p[2], p[3]}]++
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(pixels.Rect, palette)
	for i := range small.Pix {
		p := pixels.Pix[4*i : 4*i+4]
		small.Pix[i] = nearest[color.RGBA{p[0], p[1], p[2], p[3]}]
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}

// quote writes a text as a literal of JavaScript.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
