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

// paintLoop runs the painter in a goroutine. It stops the painter while a pager uses the
// terminal.
type paintLoop struct {
	ctx     context.Context //nolint:containedctx // ends pagers when Frontend.show returns
	config  Config
	painter painter

	mu     sync.Mutex
	canvas *canvas
	quit   chan struct{} // closed to stop the painter; nil while it is stopped
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

func (l *paintLoop) start(c *canvas) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.canvas, l.quit, l.ended = c, make(chan struct{}), make(chan struct{})
	c.republish()
	go func(quit <-chan struct{}, ended chan<- struct{}) { // stop waits for it
		defer close(ended)
		l.painter.run(c, quit)
	}(l.quit, l.ended)
}

// stop stops the painter, which restores the terminal. It returns false if the painter does
// not stop within closeTimeout, because the terminal blocks writes; later calls return true.
func (l *paintLoop) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quit == nil {
		return true
	}
	close(l.quit)
	l.quit = nil
	select {
	case <-l.ended:
		return true
	case <-time.After(closeTimeout):
		return false
	}
}

// openPager shows a text in the user's pager. The painter is stopped until the pager exits.
func (l *paintLoop) openPager(text string) tea.Cmd {
	if !l.stop() {
		return func() tea.Msg { return pagerClosedMsg{errTerminalBlocked} }
	}
	cmd := tty.PagerCommand(l.ctx, strings.NewReader(sanitize.Text(text)+"\n"))
	cmd.Stdout, cmd.Stderr = l.config.Terminal, l.config.Terminal
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		l.start(l.canvas)
		return pagerClosedMsg{err}
	})
}
