package screen

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/safe"
	"github.com/minibench/mini/env/local"
)

// brush has the painter paint while the screen is taken, and not while a pager
// has it.
type brush struct {
	ctx     context.Context //nolint:containedctx // of the time in which the screen is taken
	config  Config
	painter painter

	mu     sync.Mutex
	canvas *canvas
	quit   chan struct{} // closed for the painter to end
	ended  chan struct{} // closed when it has
}

func newBrush(ctx context.Context, c Config) *brush {
	return &brush{ctx: ctx, config: c, painter: painter{w: colours(c), reflows: reflows(c.Environ)}}
}

// reflows says whether a terminal wraps the lines that are on it anew when it
// becomes narrower, as all do but a few.
func reflows(environ []string) bool {
	for _, v := range environ {
		if strings.HasPrefix(v, "XTERM_VERSION=") || strings.HasPrefix(v, "STY=") || v == "TERM=linux" {
			return false
		}
	}
	return true
}

func (b *brush) start(c *canvas) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.canvas, b.quit, b.ended = c, make(chan struct{}), make(chan struct{})
	c.redo()
	go func(quit <-chan struct{}, ended chan<- struct{}) { // stop waits for it
		defer close(ended)
		b.painter.run(c, quit)
	}(b.quit, b.ended)
}

// stop gives the terminal back; false where that takes nothing.
func (b *brush) stop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.quit)
	select {
	case <-b.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// pager opens a text in the person's pager, else shows it in ours.
func (b *brush) pager(text string) tea.Cmd {
	return tea.Exec(&pager{brush: b, text: text}, func(err error) tea.Msg { return back{err} })
}

// pager is a program that has the terminal for a while.
type pager struct {
	brush *brush
	text  string
	in    io.Reader
}

// SetStdin implements tea.ExecCommand.
func (p *pager) SetStdin(r io.Reader) { p.in = r }

// SetStdout implements tea.ExecCommand: the pager gets the terminal itself.
func (p *pager) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (p *pager) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (p *pager) Run() error {
	if !p.brush.stop() {
		return errStuck
	}
	defer p.brush.start(p.brush.canvas)
	command := os.Getenv("PAGER")
	if command == "" {
		command = "less -R"
	}
	cmd := exec.CommandContext(p.brush.ctx, "sh", "-c", "exec "+command)     //nolint:gosec // the person's own command
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it has to give the terminal back
	cmd.WaitDelay = time.Second
	cmd.Env = local.WithoutSecrets(p.brush.config.Environ, nil)
	cmd.Stdin = strings.NewReader(safe.Text(p.text) + "\n")
	cmd.Stdout, cmd.Stderr = p.brush.config.Terminal, p.brush.config.Terminal
	return cmd.Run()
}
