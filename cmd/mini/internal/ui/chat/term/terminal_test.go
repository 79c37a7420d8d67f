package term

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// emulator emulates the features of a terminal that the screen uses. Other escape sequences
// fail the test.
type emulator struct {
	t          testing.TB
	w, h       int
	rows       [][]rune // of the screen, top first
	scrollback []string // rows scrolled off
	x, y       int
	modes      map[string]bool

	savedX, savedY int
}

func newEmulator(t testing.TB, w, h int) *emulator {
	return &emulator{t: t, w: w, h: h, rows: make([][]rune, h), modes: map[string]bool{}}
}

// Write implements io.Writer.
func (e *emulator) Write(p []byte) (int, error) {
	rest := string(p)
	for rest != "" {
		seq, width, n, _ := ansi.DecodeSequenceWc(rest, 0, nil)
		rest = rest[n:]
		switch {
		case width > 0:
			e.put(seq, width)
		case seq == "\r":
			e.x = 0
		case seq == "\n":
			e.down()
		case seq == ansi.SaveCursor:
			e.savedX, e.savedY = e.x, e.y
		case seq == ansi.RestoreCursor:
			e.x, e.y = e.savedX, e.savedY
		case strings.HasPrefix(seq, "\x1b["):
			e.control(seq)
		default:
			e.t.Errorf("the terminal got %q", seq)
		}
	}
	return len(p), nil
}

func (e *emulator) put(char string, width int) {
	if e.x+width > e.w { // only in finished lines
		e.x = 0
		e.down()
	}
	row := e.rows[e.y]
	for len(row) < e.x+width {
		row = append(row, ' ')
	}
	row[e.x] = []rune(char)[0]
	for i := 1; i < width; i++ {
		row[e.x+i] = 0
	}
	e.rows[e.y] = row
	e.x += width
}

func (e *emulator) down() {
	if e.y++; e.y < e.h {
		return
	}
	e.scrollback = append(e.scrollback, textOf(e.rows[0]))
	e.rows = append(e.rows[1:], nil)
	e.y = e.h - 1
}

func (e *emulator) control(seq string) {
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
		e.modes[args] = final == 'h'
	case 'n': // asks for the position of the cursor, and gets no answer
	case 'u':
		e.modes["keys"] = args[0] == '>'
	case 'A':
		e.y = max(0, e.y-n)
	case 'B':
		e.y = min(e.h-1, e.y+n)
	case 'C':
		e.x = min(e.w-1, e.x+n)
	case 'H':
		e.x, e.y = 0, 0
	case 'K':
		e.rows[e.y] = e.rows[e.y][:min(e.x, len(e.rows[e.y]))]
	case 'J':
		if args == "2" {
			e.rows = make([][]rune, e.h)
			break
		}
		e.rows[e.y] = e.rows[e.y][:min(e.x, len(e.rows[e.y]))]
		for y := e.y + 1; y < e.h; y++ {
			e.rows[y] = nil
		}
	default:
		e.t.Errorf("the terminal got %q", seq)
	}
}

func textOf(row []rune) string {
	return strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " ")
}

// String returns the scrollback and the screen with a mark at the cursor.
func (e *emulator) String() string {
	var b strings.Builder
	for _, row := range e.scrollback {
		b.WriteString("^" + row + "\n")
	}
	last := 0
	for y, row := range e.rows {
		if len(row) > 0 || y == e.y {
			last = y
		}
	}
	for y, row := range e.rows[:last+1] {
		if y == e.y {
			for len(row) <= e.x {
				row = append(row, ' ')
			}
			row = slices.Clone(row)
			row[e.x] = '█'
		}
		s := textOf(row)
		b.WriteString("|" + s + "\n")
	}
	return b.String()
}
