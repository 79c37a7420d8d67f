package term

import (
	"fmt"
	"strconv"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/trajectories/timeline"
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

// formatDuration formats the duration of a command, with tenths of a second below ten seconds.
func formatDuration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return "0.0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return timeline.FormatDuration(d)
}

// count formats a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return formatThousands(int64(n)) + " " + noun + "s"
}

// formatThousands formats a number with thousands separators.
func formatThousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
