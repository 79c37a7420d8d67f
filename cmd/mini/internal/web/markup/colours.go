package markup

import (
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// readColours returns the text of a line of sanitize.Output without its SGR sequences, and their
// styles. Other sequences stay, for the writer to show.
func readColours(s string) (plain string, styles []style) {
	const start = "\x1b["
	if !strings.Contains(s, start) {
		return s, nil
	}
	var b strings.Builder
	var pen uv.Style
	for {
		before, rest, found := strings.Cut(s, start)
		b.WriteString(before)
		if !found {
			return b.String(), styles
		}
		args := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789;"))]
		if !strings.HasPrefix(rest[len(args):], "m") || len(args) > maxArgs {
			b.WriteString(start)
			s = rest
			continue
		}
		uv.ReadStyle(parseArgs(args), &pen)
		styles = append(styles, style{at: b.Len(), tag: styleTag(&pen)})
		s = rest[len(args)+1:]
	}
}

// maxArgs is the length of the longest sequence that sanitize.Output writes, and some more.
const maxArgs = 100

func parseArgs(args string) (params ansi.Params) {
	for arg := range strings.SplitSeq(args, ";") {
		n, _ := strconv.ParseUint(arg, 10, 16) // an empty argument is 0
		params = append(params, ansi.Param(n))
	}
	return params
}

// styleTag returns the tag of a style, "" for that of plain text.
func styleTag(s *uv.Style) string {
	var classes []string
	fg, bg := "", ""
	if s.Fg != nil {
		fg = strconv.Itoa(int(ansi.Convert16(s.Fg)))
	}
	if s.Bg != nil {
		bg = strconv.Itoa(int(ansi.Convert16(s.Bg)))
	}
	if s.Attrs&uv.AttrReverse != 0 {
		// The letter stands for the default colour of the other.
		fg, bg = bg, fg
		if fg == "" {
			fg = "r"
		}
		if bg == "" {
			bg = "r"
		}
	}
	if fg != "" {
		classes = append(classes, "fg"+fg)
	}
	if bg != "" {
		classes = append(classes, "bg"+bg)
	}
	for _, attr := range []struct {
		isSet bool
		class string
	}{
		{s.Attrs&uv.AttrBold != 0, "bold"},
		{s.Attrs&uv.AttrFaint != 0, "dim"},
		{s.Attrs&uv.AttrItalic != 0, "italic"},
		{s.Underline != uv.UnderlineNone, "underline"},
	} {
		if attr.isSet {
			classes = append(classes, attr.class)
		}
	}
	if len(classes) == 0 {
		return ""
	}
	return spanTag(strings.Join(classes, " "))
}

// spanTag returns the tag of a span with classes of this package.
func spanTag(classes string) string { return `<span class="` + classes + `">` }
