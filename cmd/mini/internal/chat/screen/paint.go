package screen

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	tty "github.com/minibench/mini/cmd/mini/internal/screen"
)

// page is what the terminal is to show. Lines are narrower than the terminal,
// and each is by itself: it ends what colours it.
type page struct {
	above         []string // to be written once, above what is live
	live          []string // drawn where the last ones were
	x, y          int      // of the cursor, in live
	width, height int
	number        uint64
	anew          bool // the terminal may show anything
}

// canvas is where the model leaves pages for the painter. What is to be written
// above is kept until it is, as far as that is bounded.
type canvas struct {
	mu      sync.Mutex
	page    page
	bytes   int // of above
	missed  int // lines that had no room there
	due     bool
	anew    bool
	urgent  bool
	number  uint64        // of the page
	done    uint64        // of the last one that the terminal has
	changed chan struct{} // of one
}

func newCanvas() *canvas { return &canvas{changed: make(chan struct{}, 1)} }

// maxAbove bounds what waits for a terminal that takes nothing, in bytes.
const maxAbove = 4 << 20

// show takes a page, and says its number. An urgent one answers a key.
func (c *canvas) show(p page, urgent bool) uint64 {
	c.mu.Lock()
	defer c.wake()
	defer c.mu.Unlock()
	above := c.page.above
	for _, line := range p.above {
		above = append(above, line)
		c.bytes += len(line)
	}
	for c.bytes > maxAbove && len(above) > 1 {
		c.bytes -= len(above[0])
		above = above[1:]
		c.missed++
	}
	p.above = above
	c.page, c.due, c.urgent = p, true, c.urgent || urgent
	c.number++
	return c.number
}

func (c *canvas) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// again has everything drawn anew, whatever the terminal shows.
func (c *canvas) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.anew = true
}

// redo has the last page drawn by a painter that begins.
func (c *canvas) redo() {
	c.mu.Lock()
	c.due = true
	c.mu.Unlock()
	c.wake()
}

// paintedUpTo says what the terminal has.
func (c *canvas) paintedUpTo(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = number
}

// painted is the number of the last page that the terminal has.
func (c *canvas) painted() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// take is the newest page, if it was not taken yet.
func (c *canvas) take() (p page, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok = c.page, c.due
	p.number, p.anew = c.number, c.anew
	c.anew = false
	if c.missed > 0 {
		p.above = append([]string{faint("… " + count(c.missed, "line") + " were not shown: the terminal took no output …")}, p.above...)
	}
	c.page.above, c.bytes, c.missed, c.due, c.urgent = nil, 0, 0, false, false
	return p, ok
}

func (c *canvas) isUrgent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.urgent
}

// The terminal is written to so often at most: after keys, and otherwise.
const (
	keyEvery  = 16 * time.Millisecond
	drawEvery = 80 * time.Millisecond
)

// painter writes pages to a terminal. It is for one goroutine.
type painter struct {
	w       io.Writer
	reflows bool // the terminal wraps lines anew when it becomes narrower
	drawn   page // without what is above
}

// modes of the terminal while the painter has it, and what gives them back. The
// keyboard's are asked for, and are the same where a terminal does not have them:
// with them Shift-Enter is not Enter.
const (
	takeModes = ansi.SetModeBracketedPaste + "\x1b[>1u"
	giveModes = ansi.ResetModeBracketedPaste + "\x1b[<1u" + ansi.SetModeTextCursorEnable
)

// run paints what comes to the canvas until stop is closed, and then once more.
// It leaves the terminal with the cursor beneath what is above.
func (p *painter) run(c *canvas, stop <-chan struct{}) {
	p.write(takeModes)
	var last time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			if page, ok := c.take(); ok {
				page.live = nil
				p.paint(page)
			}
			p.leave()
			return
		case <-c.changed:
		case <-timer.C:
		}
		gap := drawEvery
		if c.isUrgent() {
			gap = keyEvery
		}
		if wait := gap - time.Since(last); wait > 0 {
			timer.Reset(wait)
			continue
		}
		if page, ok := c.take(); ok {
			c.paintedUpTo(page.number) // before anybody can have seen it
			p.paint(page)
			last = time.Now()
		}
	}
}

func (p *painter) write(s string) {
	if s != "" {
		_, _ = io.WriteString(p.w, s) // a terminal that is gone is seen by who holds it
	}
}

// paint writes what is new of a page, as one piece.
func (p *painter) paint(page page) {
	var b strings.Builder
	same := !page.anew && len(page.above) == 0 && len(page.live) == len(p.drawn.live) && page.width == p.drawn.width
	if same {
		p.touchUp(&b, page)
	} else {
		p.redraw(&b, page)
	}
	page.above = nil
	if len(page.live) == 0 { // the cursor is beneath what is above
		page.x, page.y = 0, 0
	}
	p.drawn = page
	if b.Len() == 0 {
		return
	}
	p.write(ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable + b.String() +
		ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
}

// redraw writes everything from the first live line on. Lines are emptied before
// they are written: a terminal that wraps them anew counts what is erased behind a
// text as a part of it.
func (p *painter) redraw(b *strings.Builder, page page) {
	b.WriteString("\r")
	if page.anew {
		b.WriteString(ansi.CursorHomePosition + ansi.EraseEntireScreen)
	} else {
		up(b, p.rowsAbove(page.width))
	}
	if page.width != p.drawn.width { // lines may have been wrapped by the terminal
		b.WriteString(ansi.EraseScreenBelow)
	}
	for _, line := range page.above {
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
	up(b, len(page.live)-1-page.y)
	right(b, page.x)
}

// touchUp writes only the lines that are not as they were.
func (p *painter) touchUp(b *strings.Builder, page page) {
	at := p.drawn.y
	for i, line := range page.live {
		if line == p.drawn.live[i] {
			continue
		}
		b.WriteString("\r")
		vertically(b, i-at)
		at = i
		b.WriteString(ansi.EraseLineRight + line)
	}
	if b.Len() == 0 && page.x == p.drawn.x && page.y == p.drawn.y {
		return
	}
	b.WriteString("\r")
	vertically(b, page.y-at)
	right(b, page.x)
}

// rowsAbove is how many rows of the terminal are live above the cursor's, once it
// has width columns.
func (p *painter) rowsAbove(width int) int {
	rows := p.drawn.y
	if width <= 0 || width >= p.drawn.width || !p.reflows {
		return rows
	}
	for _, line := range p.drawn.live[:min(p.drawn.y, len(p.drawn.live))] {
		rows += max(0, tty.Width(line)-1) / width
	}
	return rows + p.drawn.x/width
}

// leave takes the live lines off and gives the modes back.
func (p *painter) leave() {
	var b strings.Builder
	b.WriteString("\r")
	up(&b, p.drawn.y)
	p.write(b.String() + ansi.EraseScreenBelow + ansi.ResetStyle + giveModes)
	p.drawn = page{}
}

func up(b *strings.Builder, n int) { vertically(b, -n) }

func vertically(b *strings.Builder, n int) {
	switch {
	case n < 0:
		b.WriteString(ansi.CursorUp(-n))
	case n > 0:
		b.WriteString(ansi.CursorDown(n))
	}
}

func right(b *strings.Builder, n int) {
	if n > 0 {
		b.WriteString(ansi.CursorForward(n))
	}
}
