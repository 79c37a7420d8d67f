package term

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// page is the content to show. Lines are narrower than the terminal, and each line resets its
// own colours.
type page struct {
	scrollback    []string // lines to write once, above the live lines
	live          []string // lines that replace the previous live lines
	x, y          int      // cursor position within live
	width, height int
	number        uint64
	repaint       bool // clear the screen and draw everything
}

// canvas passes pages from the model to the painter. It accumulates scrollback lines until
// they are painted.
type canvas struct {
	mu          sync.Mutex
	page        page
	pending     bool          // the painter has not taken page yet
	repaint     bool          // page must be drawn completely
	number      uint64        // sequence number of page
	lastPainted uint64        // number of the last page that the painter has begun to paint
	changed     chan struct{} // signals a new page; has capacity 1
	onDrained   func()        // called when the canvas is no longer full
}

func newCanvas(onDrained func()) *canvas {
	return &canvas{changed: make(chan struct{}, 1), onDrained: onDrained}
}

// maxScrollback is the number of waiting scrollback lines above which the canvas is full.
const maxScrollback = 5000

// isFull reports whether the model must wait for the painter before it adds more lines.
func (c *canvas) isFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.page.scrollback) > maxScrollback
}

// publish sets the next page and returns its number.
func (c *canvas) publish(p page) uint64 {
	c.mu.Lock()
	defer c.signal()
	defer c.mu.Unlock()
	p.scrollback = append(c.page.scrollback, p.scrollback...)
	c.page, c.pending = p, true
	c.number++
	return c.number
}

func (c *canvas) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// forceRepaint makes the next paint redraw everything.
func (c *canvas) forceRepaint() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.repaint = true
}

// republish makes a new painter draw the last page.
func (c *canvas) republish() {
	c.mu.Lock()
	c.pending = true
	c.mu.Unlock()
	c.signal()
}

// setPainted records the number of the page that the painter begins to paint.
func (c *canvas) setPainted(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastPainted = number
}

// painted returns the number of the last page that the painter has begun to paint.
func (c *canvas) painted() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastPainted
}

// take returns the newest page for painting. It returns false if there is no new page.
func (c *canvas) take() (p page, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok = c.page, c.pending
	p.number, p.repaint = c.number, c.repaint
	c.page.scrollback, c.pending, c.repaint = nil, false, false
	if len(p.scrollback) > maxScrollback {
		c.onDrained()
	}
	return p, ok
}

// paintInterval is the minimum time between painting two pages, except before the last page.
const paintInterval = 16 * time.Millisecond

// painter writes pages to a terminal. It is not safe for concurrent use.
type painter struct {
	w       io.Writer
	reflows bool // the terminal rewraps lines when it becomes narrower
	drawn   page // the last painted page, without scrollback
}

// Terminal modes while the painter runs, and their reset. The keyboard mode distinguishes
// Shift-Enter from Enter; terminals without it ignore the request.
const (
	setModes   = ansi.SetModeBracketedPaste + "\x1b[>1u"
	resetModes = ansi.ResetModeBracketedPaste + "\x1b[<1u" + ansi.SetModeTextCursorEnable
)

// run paints the pages of a canvas until stop is closed. It then writes the remaining scrollback
// and restores the terminal, with the cursor below the scrollback.
func (p *painter) run(c *canvas, stop <-chan struct{}) {
	p.write(setModes)
	var lastPaint time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			if page, ok := c.take(); ok {
				page.live = nil
				p.paint(page)
			}
			p.restore()
			return
		case <-c.changed:
		case <-timer.C:
		}
		if wait := paintInterval - time.Since(lastPaint); wait > 0 {
			timer.Reset(wait)
			continue
		}
		if page, ok := c.take(); ok {
			c.setPainted(page.number) // before painting: the user may answer as soon as the page is visible
			p.paint(page)
			lastPaint = time.Now()
		}
	}
}

func (p *painter) write(s string) {
	if s != "" {
		_, _ = io.WriteString(p.w, s) // errors are ignored: terminal.Screen detects a lost terminal
	}
}

// paint writes the differences between page and the last page to the terminal, in one write.
func (p *painter) paint(page page) {
	var b strings.Builder
	sameSize := len(page.live) == len(p.drawn.live) && page.width == p.drawn.width
	if sameSize && !page.repaint && len(page.scrollback) == 0 {
		p.updateLines(&b, page)
	} else {
		p.redraw(&b, page)
	}
	page.scrollback = nil
	if len(page.live) == 0 { // the cursor is below the scrollback
		page.x, page.y = 0, 0
	}
	p.drawn = page
	if b.Len() == 0 {
		return
	}
	p.write(ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable + b.String() +
		ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
}

// redraw writes the scrollback and all live lines, from the first drawn live line on or, for
// page.repaint, on a cleared screen. It erases each line before writing it, not after: a terminal
// that rewraps lines treats erased cells after a text as part of the text.
func (p *painter) redraw(b *strings.Builder, page page) {
	b.WriteString("\r")
	if page.repaint {
		b.WriteString(ansi.CursorHomePosition + ansi.EraseEntireScreen)
	} else {
		moveUp(b, p.liveRowsAbove(page.width))
	}
	if page.width != p.drawn.width { // the terminal may have rewrapped lines
		b.WriteString(ansi.EraseScreenBelow)
	}
	for _, line := range page.scrollback {
		b.WriteString(ansi.EraseLineRight + line + "\r\n")
	}
	for i, line := range page.live {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(ansi.EraseLineRight + line)
	}
	b.WriteString(ansi.EraseScreenBelow)
	if len(page.live) == 0 {
		return
	}
	b.WriteString("\r")
	moveUp(b, len(page.live)-1-page.y)
	moveRight(b, page.x)
}

// updateLines writes only the live lines that have changed.
func (p *painter) updateLines(b *strings.Builder, page page) {
	row := p.drawn.y
	for i, line := range page.live {
		if line == p.drawn.live[i] {
			continue
		}
		b.WriteString("\r")
		moveRows(b, i-row)
		row = i
		b.WriteString(ansi.EraseLineRight + line)
	}
	if b.Len() == 0 && page.x == p.drawn.x && page.y == p.drawn.y {
		return
	}
	b.WriteString("\r")
	moveRows(b, page.y-row)
	moveRight(b, page.x)
}

// liveRowsAbove returns how many rows the drawn live lines take above the cursor, on a terminal
// that now has width columns.
func (p *painter) liveRowsAbove(width int) int {
	rows := p.drawn.y
	if width <= 0 || width >= p.drawn.width || !p.reflows {
		return rows
	}
	for _, line := range p.drawn.live[:min(p.drawn.y, len(p.drawn.live))] {
		rows += max(0, tty.Width(line)-1) / width
	}
	return rows + p.drawn.x/width
}

// restore erases the live lines and resets the terminal modes.
func (p *painter) restore() {
	var b strings.Builder
	b.WriteString("\r")
	moveUp(&b, p.drawn.y)
	p.write(b.String() + ansi.EraseScreenBelow + ansi.ResetStyle + resetModes)
	p.drawn = page{}
}

func moveUp(b *strings.Builder, n int) { moveRows(b, -n) }

func moveRows(b *strings.Builder, n int) {
	switch {
	case n < 0:
		b.WriteString(ansi.CursorUp(-n))
	case n > 0:
		b.WriteString(ansi.CursorDown(n))
	}
}

func moveRight(b *strings.Builder, n int) {
	if n > 0 {
		b.WriteString(ansi.CursorForward(n))
	}
}
