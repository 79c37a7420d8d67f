package safe

import (
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// style is how a sign looks: all that is let through of a sequence's wishes.
// What blinks, hides or strikes out is not.
type style = uv.Style

// render changes a style as the parameters of an SGR sequence say.
func render(s *style, args string) {
	var params ansi.Params
	for last := false; !last; {
		arg := args
		i := strings.IndexAny(args, ";:")
		if last = i < 0; !last {
			arg = args[:i]
		}
		n, ok := number(arg)
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

// number is a parameter; one that is left out is zero.
func number(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// sequence turns to a style from another one.
func sequence(s, from *style) string {
	switch {
	case s.IsZero(), from.IsZero():
		return s.String()
	}
	return ansi.ResetStyle + s.String()
}
