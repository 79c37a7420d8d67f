package term

import (
	"github.com/charmbracelet/x/ansi"
)

// The ANSI colours of the user's theme. Most text is uncoloured, so that colours stand out.
// colourWriter removes colours if NO_COLOR is set or the terminal has none.
const (
	red     = ansi.Red
	green   = ansi.Green
	yellow  = ansi.Yellow
	blue    = ansi.Blue
	magenta = ansi.Magenta
	cyan    = ansi.Cyan
)

func unstyled(s string) string { return s }
func faint(s string) string    { return styled(ansi.NewStyle().Faint(), s) }
func bold(s string) string     { return styled(ansi.NewStyle().Bold(), s) }

func coloured(c ansi.Color, s string) string {
	return styled(ansi.NewStyle().ForegroundColor(c), s)
}

func boldColoured(c ansi.Color, s string) string {
	return styled(ansi.NewStyle().Bold().ForegroundColor(c), s)
}

func styled(style ansi.Style, s string) string {
	if s == "" {
		return ""
	}
	return style.Styled(s)
}
