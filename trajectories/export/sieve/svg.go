package sieve

import (
	"fmt"
	"io"
	"strings"
)

// Measures of the picture.
const (
	pictureWide, pictureHigh = 760, 400
	plotLeft, plotRight      = 72, 740
	plotTop, plotBottom      = 74, 334
	plotWide, plotHigh       = plotRight - plotLeft, plotBottom - plotTop
	mostLines                = 5 // across the plot
	widestBar                = 120
	labelRoom                = 64 // of a number below the plot

	// Colours are plain, and said anew for the dark: many viewers know no variables.
	style = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #59636e }
  .title { font-size: 16px; font-weight: 600; fill: #1f2328 }
  .page { fill: #ffffff }
  .bar { fill: #2f6fd0 }
  .line { stroke: #d1d9e0 }
  .axis { stroke: #59636e }
  .halo { stroke: #ffffff; stroke-width: 4 }
  .mark { stroke: #b35900; stroke-width: 1.5; stroke-dasharray: 5 3 }
  .named { fill: #b35900 }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 }
    .title { fill: #f0f6fc }
    .page { fill: #0d1117 }
    .bar { fill: #4f8fe8 }
    .line { stroke: #2f353d }
    .axis { stroke: #9198a1 }
    .halo { stroke: #0d1117 }
    .mark { stroke: #f0a050 }
    .named { fill: #f0a050 }
  }
`
)

// WriteSVG draws the histogram of tokens: a picture that needs no other file, in
// the colours of the reader's screen, dark or light.
func (r *Report) WriteSVG(w io.Writer) error {
	h := r.Tokens
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title about">`, pictureWide, pictureHigh)
	fmt.Fprintf(&b, "\n<title id=\"title\">Tokens of an attempt</title>\n<desc id=\"about\">%s</desc>\n<style>%s</style>\n", h.about(), style)
	fmt.Fprintf(&b, "<rect class=\"page\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", pictureWide, pictureHigh)
	fmt.Fprintf(&b, "<text class=\"title\" x=\"%d\" y=\"30\">%s</text>\n<text x=\"%[1]d\" y=\"50\">%[3]s</text>\n", plotLeft, h.heading(), h.about())
	if len(h.Bins) == 0 {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">no attempt whose length is known</text>\n", (plotLeft+plotRight)/2, (plotTop+plotBottom)/2)
	} else {
		h.plot(&b)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (h Histogram) heading() string {
	if h.Tokenizer == "" {
		return "Tokens of an attempt, as the providers counted"
	}
	return "Tokens of an attempt, by " + h.Tokenizer
}

func (h Histogram) about() string {
	text := plural(h.Attempts, "attempt")
	if h.Attempts > 0 {
		text += fmt.Sprintf(": median %s, 90%% up to %s, most %s", grouped(h.Median), grouped(h.P90), grouped(h.Most))
	}
	if h.Unknown > 0 {
		text += fmt.Sprintf("; %s of unknown length", plural(h.Unknown, "more attempt"))
	}
	return text
}

// plot draws axes, bars, and the median.
func (h Histogram) plot(b *strings.Builder) {
	most := int64(1)
	for _, bin := range h.Bins {
		most = max(most, int64(bin.Count))
	}
	step := roundWidth((most + mostLines - 1) / mostLines)
	top := (most + step - 1) / step * step
	up := func(n int64) float64 { return plotBottom - float64(n)*plotHigh/float64(top) }
	for n := int64(0); n <= top; n += step {
		class := "line"
		if n == 0 {
			class = "axis"
		}
		fmt.Fprintf(b, "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1[4]f\"/>", class, plotLeft, plotRight, up(n))
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", plotLeft-8, up(n)+4, grouped(n))
	}
	wide := min(float64(plotWide)/float64(len(h.Bins)), widestBar)
	for i, bin := range h.Bins {
		name := grouped(bin.From) + " to " + grouped(bin.To)
		if bin.To == 0 {
			name = grouped(bin.From) + " and more"
		}
		fmt.Fprintf(b, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"1.5\"><title>%s tokens: %s</title></rect>\n",
			plotLeft+float64(i)*wide+1, up(int64(bin.Count)), max(1, wide-2), plotBottom-up(int64(bin.Count)), name, plural(bin.Count, "attempt"))
	}
	h.numbers(b, wide)
	h.median(b, wide)
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">tokens of an attempt</text>\n", (plotLeft+plotRight)/2, plotBottom+46)
	fmt.Fprintf(b, "<text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"middle\">attempts</text>\n", (plotTop+plotBottom)/2)
}

// numbers stand below the beginnings of bins, as many as have room.
func (h Histogram) numbers(b *strings.Builder, wide float64) {
	every := 1
	for float64(every)*wide < labelRoom {
		every++
	}
	for i := 0; i <= len(h.Bins); i += every {
		var n int64
		switch {
		case i < len(h.Bins):
			n = h.Bins[i].From
		case h.Bins[i-1].To == 0: // has no end
			continue
		default:
			n = h.Bins[i-1].To
		}
		at := plotLeft + float64(i)*wide
		fmt.Fprintf(b, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%d\" y2=\"%d\"/>", at, plotBottom, plotBottom+5)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", at, plotBottom+20, grouped(n))
	}
}

// median draws a line where half of the attempts are shorter.
func (h Histogram) median(b *strings.Builder, wide float64) {
	first := h.Bins[0]
	if first.To == 0 {
		return
	}
	at := float64(plotLeft) + min(float64(h.Median-first.From)/float64(first.To-first.From), float64(len(h.Bins)))*wide
	anchor, aside := "start", 6.0
	if at > plotLeft+plotWide*3/4 {
		anchor, aside = "end", -6
	}
	fmt.Fprintf(b, "<line class=\"halo\" x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%d\" y2=\"%d\"/>\n", at, plotTop-8, plotBottom)
	fmt.Fprintf(b, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%d\" y2=\"%d\"/>", at, plotTop-8, plotBottom)
	fmt.Fprintf(b, "<text class=\"named\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">median %s</text>\n", at+aside, plotTop-2, anchor, grouped(h.Median))
}
