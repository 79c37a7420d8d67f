package sanitize

import (
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// style is the supported text style; blinking, hidden and struck-out text is not supported.
type style = uv.Style

// applySGR applies the parameters of an SGR sequence to a style.
func applySGR(s *style, args string) {
	var params ansi.Params
	for last := false; !last; {
		arg := args
		i := strings.IndexAny(args, ";:")
		if last = i < 0; !last {
			arg = args[:i]
		}
		n, ok := parseNumber(arg)
		if !ok {
			return
		}
		if !last && args[i] == ':' {
			n |= parser.HasMoreFlag
		}
		params, args = append(params, ansi.Param(n)), args[i+1:]
	}
	uv.ReadStyle(params, s)
	s.Attrs &= uv.AttrBold | uv.AttrFaint | uv.AttrItalic | uv.AttrReverse
	s.UnderlineColor = nil
	if s.Underline != uv.UnderlineNone {
		s.Underline = uv.UnderlineSingle
	}
}

// parseNumber parses a parameter; an empty one is 0.
func parseNumber(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// styleSequence returns the sequence that changes from one style to another.
func styleSequence(s, from *style) string {
	switch {
	case s.IsZero(), from.IsZero():
		return s.String()
	}
	return ansi.ResetStyle + s.String()
}
