package term

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// terminal emulates the terminal features that the painter uses; others fail the test.
type terminal struct {
	t        testing.TB
	w, h     int
	rows     [][]rune // of the screen, top first
	scrolled []string // rows scrolled off
	x, y     int
	modes    map[string]bool
}

func newTerminal(t testing.TB, w, h int) *terminal {
	return &terminal{t: t, w: w, h: h, rows: make([][]rune, h), modes: map[string]bool{}}
}

// Write implements io.Writer.
func (v *terminal) Write(p []byte) (int, error) {
	rest := string(p)
	for rest != "" {
		seq, wide, n, _ := ansi.DecodeSequenceWc(rest, 0, nil)
		rest = rest[n:]
		switch {
		case wide > 0:
			v.put(seq, wide)
		case seq == "\r":
			v.x = 0
		case seq == "\n":
			v.down()
		case strings.HasPrefix(seq, "\x1b["):
			v.control(seq)
		default:
			v.t.Errorf("the terminal got %q", seq)
		}
	}
	return len(p), nil
}

func (v *terminal) put(sign string, wide int) {
	if v.x+wide > v.w {
		v.t.Errorf("%q is written beyond the last column", sign)
		return
	}
	if v.x+wide == v.w {
		v.t.Errorf("%q is written into the last column", sign)
	}
	row := v.rows[v.y]
	for len(row) < v.x+wide {
		row = append(row, ' ')
	}
	row[v.x] = []rune(sign)[0]
	for i := 1; i < wide; i++ {
		row[v.x+i] = 0
	}
	v.rows[v.y] = row
	v.x += wide
}

func (v *terminal) down() {
	if v.y++; v.y < v.h {
		return
	}
	v.scrolled = append(v.scrolled, textOf(v.rows[0]))
	v.rows = append(v.rows[1:], nil)
	v.y = v.h - 1
}

func (v *terminal) control(seq string) {
	final := seq[len(seq)-1]
	args := seq[2 : len(seq)-1]
	n := 0
	for _, c := range args {
		if c >= '0' && c <= '9' {
			n = 10*n + int(c-'0')
		}
	}
	n = max(n, 1)
	switch final {
	case 'm':
	case 'h', 'l':
		v.modes[args] = final == 'h'
	case 'u':
		v.modes["keys"] = args[0] == '>'
	case 'A':
		v.y = max(0, v.y-n)
	case 'B':
		v.y = min(v.h-1, v.y+n)
	case 'C':
		v.x = min(v.w-1, v.x+n)
	case 'H':
		v.x, v.y = 0, 0
	case 'K':
		v.rows[v.y] = v.rows[v.y][:min(v.x, len(v.rows[v.y]))]
	case 'J':
		if args == "2" {
			v.rows = make([][]rune, v.h)
			break
		}
		v.rows[v.y] = v.rows[v.y][:min(v.x, len(v.rows[v.y]))]
		for y := v.y + 1; y < v.h; y++ {
			v.rows[y] = nil
		}
	default:
		v.t.Errorf("the terminal got %q", seq)
	}
}

func textOf(row []rune) string {
	return strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " ")
}

// String returns the scrollback and the screen with a mark at the cursor.
func (v *terminal) String() string {
	var b strings.Builder
	for _, row := range v.scrolled {
		b.WriteString("^" + row + "\n")
	}
	last := 0
	for y, row := range v.rows {
		if len(row) > 0 || y == v.y {
			last = y
		}
	}
	for y, row := range v.rows[:last+1] {
		if y == v.y {
			for len(row) <= v.x {
				row = append(row, ' ')
			}
			row = slices.Clone(row)
			row[v.x] = '█'
		}
		s := textOf(row)
		b.WriteString("|" + s + "\n")
	}
	return b.String()
}
