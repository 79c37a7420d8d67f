package inspect

import (
	"fmt"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/safe"
)

// amount is a number in at most five columns.
func amount(n int64) string {
	switch {
	case n >= 10e9:
		return fmt.Sprintf("%dG", n/1e9)
	case n >= 10e6:
		return fmt.Sprintf("%dM", n/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10e3:
		return fmt.Sprintf("%dk", n/1e3)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func dollars(c float64) string {
	switch {
	case c < 0.01 && c > 0:
		return "<$0.01"
	case c >= 1000:
		return fmt.Sprintf("$%.0f", c)
	}
	return fmt.Sprintf("$%.2f", c)
}

func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return clock(d)
}

// clock is a time as 0:07, 59:59 or 1:02:03.
func clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// maxWord bounds what is shown of a name, a status, a label, in bytes.
const maxWord = 1 << 10

// oneLine is the beginning of a text of others, on one line.
func oneLine(s string) string {
	if len(s) > maxWord {
		s = s[:maxWord] // a character that is cut is shown as one that cannot be read
	}
	return safe.Line(s)
}
