package term

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
)

// page is the content to show. Live lines are narrower than the terminal, and each line resets its
// own colours.
type page struct {
	scrollback []string // lines to write once, above the live lines
	menu       []string // lines above the live ones; they cover finished lines, if there are enough
	live       []string // lines that replace the previous live lines
	x, y       int      // cursor position within live
	width      int
	height     int
	extra      int  // lines of the menu for which there was room below the live ones
	repaint    bool // clear the terminal and draw everything, with the last finished lines
}

// screen writes pages to the terminal. Bubble Tea's own renderer draws a view and the lines above it
// in separate steps, so that the input line jumps when live lines become finished ones, and it waits
// for a terminal that blocks writes, so that no key works. screen writes both in one step, in a
// goroutine of its own.
type screen struct {
	out     io.Writer
	reflows bool     // the terminal rewraps lines when it becomes narrower
	onRoom  func()   // called when the screen is no longer full
	drawn   page     // the last painted page, without scrollback; menu has only the lines that cover others
	tail    []string // the last finished lines

	mu        sync.Mutex
	top       int // row of the first live line on the terminal, or a smaller number if it is unknown
	next      page
	pending   bool          // next is not painted yet
	number    uint64        // of next
	cursorRow int           // of the last painted page, within live
	painted   uint64        // number of the last page whose painting has begun
	changed   chan struct{} // signals a new page; has capacity 1
	quit      chan struct{} // closed to stop painting; nil while stopped
	ended     chan struct{} // closed when painting has stopped
}

func newScreen(out io.Writer, reflows bool, onRoom func()) *screen {
	return &screen{out: out, reflows: reflows, onRoom: onRoom, changed: make(chan struct{}, 1)}
}

const (
	// maxScrollback is the number of waiting scrollback lines above which the screen is full.
	maxScrollback = 5000
	// paintInterval is the minimum time between two pages, except before the last one.
	paintInterval = 16 * time.Millisecond
)

// Terminal modes of the screen, and their reset. The keyboard mode distinguishes Shift-Enter from
// Enter; terminals without it ignore the request.
const (
	setModes   = ansi.SetModeBracketedPaste + "\x1b[>1u"
	resetModes = ansi.ResetModeBracketedPaste + "\x1b[<1u" + ansi.SetModeTextCursorEnable
)

// eraseBelow erases the row of the cursor and all rows below. tmux takes ansi.EraseScreenBelow in the
// top left corner for a command to clear the screen, and keeps a copy of it.
const eraseBelow = ansi.EraseLineRight + ansi.SaveCursor + "\x1b[B" + ansi.EraseScreenBelow + ansi.RestoreCursor

// publish sets the next page and returns its number. It keeps the scrollback that waits.
func (s *screen) publish(p page) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.scrollback, p.repaint = append(s.next.scrollback, p.scrollback...), p.repaint || s.next.repaint
	s.next, s.pending = p, true
	s.number++
	s.signal()
	return s.number
}

func (s *screen) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// isFull reports whether the model must wait before it adds more lines.
func (s *screen) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.next.scrollback) > maxScrollback
}

// isVisible reports whether the painting of a page has begun. The user may answer as soon as it is
// visible.
func (s *screen) isVisible(number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.painted >= number
}

// paintNext paints the next page, if there is one.
func (s *screen) paintNext() {
	s.mu.Lock()
	p, ok := s.next, s.pending
	s.next.scrollback, s.next.repaint, s.pending = nil, false, false
	if ok {
		s.painted = s.number
	}
	s.mu.Unlock()
	if len(p.scrollback) > maxScrollback {
		s.onRoom()
	}
	if ok {
		s.paint(p)
	}
}

// setCursorRow corrects top by the terminal's answer to paint.
func (s *screen) setCursorRow(row int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.top = max(s.top, row-s.cursorRow)
}

// maxMenu is the number of rows that a menu covers at most.
const maxMenu = 16

// place computes where the lines of a page go. It moves the lines of the menu for which there is room,
// and those that cannot cover others, to the live ones. If there are fewer live lines than before at the bottom of the terminal,
// blank ones fill the space until finished lines do.
func (s *screen) place(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.repaint {
		s.top = len(s.lastRows(p.width))
	} else if p.width != s.drawn.width || p.height != s.drawn.height {
		s.top = 0
	}
	rows := 0
	for _, line := range p.scrollback {
		rows += len(steps.HardWrap(line, p.width))
	}
	s.tail = append(s.tail, p.scrollback...)
	s.tail = slices.Clone(s.tail[max(0, len(s.tail)-maxMenu):])
	p.extra = max(0, min(len(p.menu), p.height-s.top-rows-len(p.live)))
	n := min(len(p.menu)-p.extra, s.top, len(s.lastRows(p.width)))
	p.live, p.y = slices.Concat(p.menu[n:], p.live), p.y+len(p.menu)-n
	p.menu = p.menu[:n]
	before := len(s.drawn.live) - s.drawn.extra
	fill := before - (len(p.live) - p.extra) - rows
	if fill > 0 && len(p.live) > 0 && s.top > 0 && s.top+before >= p.height {
		p.live, p.y = append(make([]string, fill, fill+len(p.live)), p.live...), p.y+fill
	}
	s.top = max(0, min(s.top+rows, p.height-len(p.live)))
	s.cursorRow = p.y
}

// lastRows returns the last rows above the live lines.
func (s *screen) lastRows(width int) []string {
	var rows []string
	for _, line := range s.tail {
		rows = append(rows, steps.HardWrap(line, width)...)
	}
	return rows[max(0, len(rows)-maxMenu):]
}

// paint writes the differences between a page and the last one, in one write. Finished lines that are
// longer than a row are wrapped by the terminal.
func (s *screen) paint(p page) {
	covered := s.lastRows(p.width)
	if !p.repaint {
		covered = covered[max(0, len(covered)-len(s.drawn.menu)):]
	}
	s.place(&p)
	sameMenu, sameSize := slices.Equal(p.menu, s.drawn.menu), p.width == s.drawn.width && p.height == s.drawn.height
	full := p.repaint || len(p.scrollback) > 0 || len(p.live) != len(s.drawn.live) || !sameMenu || p.width != s.drawn.width
	if !full && sameSize && slices.Equal(p.live, s.drawn.live) && p.x == s.drawn.x && p.y == s.drawn.y {
		return
	}
	var b strings.Builder
	b.WriteString("\r")
	switch {
	case p.repaint:
		b.WriteString(ansi.CursorHomePosition + eraseBelow)
	case full:
		moveUp(&b, s.rowsAbove(p.width)+len(covered))
		b.WriteString(eraseBelow)
	default:
		moveUp(&b, s.rowsAbove(p.width))
		covered = nil
	}
	for _, line := range append(covered, p.scrollback...) {
		b.WriteString(line + "\r\n")
	}
	for i, line := range p.live {
		if i > 0 {
			b.WriteString("\r\n")
		}
		// A terminal that rewraps lines takes cells erased after a text for a part of it.
		if full || line != s.drawn.live[i] {
			b.WriteString(ansi.EraseLineRight + line)
		}
	}
	b.WriteString("\r")
	if len(p.menu) > 0 && full {
		moveUp(&b, len(p.live)-1+len(p.menu))
		for _, line := range p.menu {
			b.WriteString(ansi.EraseLineRight + line + "\r\n")
		}
		moveUp(&b, 1-len(p.live))
	}
	if p.scrollback = nil; len(p.live) == 0 {
		p.x, p.y = 0, 0
	} else {
		moveUp(&b, len(p.live)-1-p.y)
	}
	if p.x > 0 {
		b.WriteString(ansi.CursorForward(p.x))
	}
	if len(p.live) > 0 && !sameSize {
		b.WriteString(ansi.RequestCursorPositionReport)
	}
	s.drawn = p
	s.write(ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable + b.String() +
		ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
}

func (s *screen) write(text string) {
	_, _ = io.WriteString(s.out, text) // errors are ignored: terminal.Screen detects a lost terminal
}

// rowsAbove returns how many rows the drawn live lines take above the cursor, on a terminal that now
// has width columns.
func (s *screen) rowsAbove(width int) int {
	rows := s.drawn.y
	if width <= 0 || width >= s.drawn.width || !s.reflows {
		return rows
	}
	for _, line := range s.drawn.live[:min(s.drawn.y, len(s.drawn.live))] {
		rows += max(0, tty.Width(line)-1) / width
	}
	return rows + s.drawn.x/width
}

// moveUp moves the cursor up, or down if rows is negative.
func moveUp(b *strings.Builder, rows int) {
	if rows > 0 {
		b.WriteString(ansi.CursorUp(rows))
	} else if rows < 0 {
		b.WriteString(ansi.CursorDown(-rows))
	}
}

// start paints pages until stop, beginning with the last one.
func (s *screen) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending, s.quit, s.ended = true, make(chan struct{}), make(chan struct{})
	s.signal()
	go func(quit <-chan struct{}, ended chan<- struct{}) { // stop waits for it
		defer close(ended)
		s.write(setModes)
		s.run(quit)
		s.mu.Lock()
		s.next.menu, s.next.live, s.pending = nil, nil, true
		s.mu.Unlock()
		s.paintNext() // only the last scrollback
		s.drawn, s.tail = page{}, nil
		s.write(ansi.ResetStyle + resetModes)
	}(s.quit, s.ended)
}

func (s *screen) run(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-s.changed:
		}
		s.paintNext()
		select {
		case <-quit:
			return
		case <-time.After(paintInterval):
		}
	}
}

// stop stops painting and restores the terminal. It returns false if that takes longer than
// closeTimeout, because the terminal blocks writes; later calls return true.
func (s *screen) stop() bool {
	s.mu.Lock()
	quit, ended := s.quit, s.ended
	s.quit = nil
	s.mu.Unlock()
	if quit == nil {
		return true
	}
	close(quit)
	select {
	case <-ended:
		return true
	case <-time.After(closeTimeout):
		return false
	}
}

// openPager shows a text in the user's pager. Painting stops until the pager exits.
func (s *screen) openPager(ctx context.Context, c Config, text string) tea.Cmd {
	if !s.stop() {
		return func() tea.Msg { return pagerClosedMsg{errTerminalBlocked} }
	}
	return tty.ExecPager(ctx, strings.NewReader(sanitize.Text(text)+"\n"), c.Terminal, func(err error) tea.Msg {
		s.start()
		return pagerClosedMsg{err}
	})
}
