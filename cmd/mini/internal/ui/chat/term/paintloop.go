package term

import (
	"context"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
)

// paintLoop runs the painter while the terminal is taken, except while a pager has it.
type paintLoop struct {
	ctx     context.Context //nolint:containedctx // ends when the terminal is released
	config  Config
	painter painter

	mu     sync.Mutex
	canvas *canvas
	quit   chan struct{} // closed to stop the painter
	ended  chan struct{} // closed when the painter has stopped
}

func newPaintLoop(ctx context.Context, c Config) *paintLoop {
	return &paintLoop{ctx: ctx, config: c, painter: painter{w: colourWriter(c), reflows: reflowsLines(c.Environ)}}
}

// reflowsLines reports whether the terminal rewraps existing lines when it becomes narrower.
// Most terminals do.
func reflowsLines(environ []string) bool {
	for _, v := range environ {
		if strings.HasPrefix(v, "XTERM_VERSION=") || strings.HasPrefix(v, "STY=") || v == "TERM=linux" {
			return false
		}
	}
	return true
}

func (b *paintLoop) start(c *canvas) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.canvas, b.quit, b.ended = c, make(chan struct{}), make(chan struct{})
	c.republish()
	go func(quit <-chan struct{}, ended chan<- struct{}) { // stop waits for it
		defer close(ended)
		b.painter.run(c, quit)
	}(b.quit, b.ended)
}

// stop stops the painter and restores the terminal; false if the terminal blocks writes.
func (b *paintLoop) stop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.quit == nil {
		return true
	}
	close(b.quit)
	b.quit = nil
	select {
	case <-b.ended:
		return true
	case <-time.After(closeTimeout):
		return false
	}
}

// openPager opens a text in the user's pager, which has the terminal until it exits.
func (b *paintLoop) openPager(text string) tea.Cmd {
	if !b.stop() {
		return func() tea.Msg { return pagerClosedMsg{errTerminalBlocked} }
	}
	cmd := tty.PagerCommand(b.ctx, strings.NewReader(sanitize.Text(text)+"\n"))
	cmd.Stdout, cmd.Stderr = b.config.Terminal, b.config.Terminal
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		b.start(b.canvas)
		return pagerClosedMsg{err}
	})
}
