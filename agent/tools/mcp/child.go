package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/minibench/mini/agent/tools/family"
)

// farewell is how long a program has to end when its input does.
const farewell = time.Second

// maxSaid bounds what is kept of a program's standard error, in bytes.
const maxSaid = 2 << 10

// child is a server that is a program of this machine.
type child struct {
	cmd    *exec.Cmd
	family *family.Family
	in     io.Closer
	out    *os.File // its end of the pipe
	said   *said
	ended  chan struct{}
}

// start runs the program and begins a session with it.
func (s *Server) start(ctx context.Context) (*link, error) {
	path, err := exec.LookPath(s.config.Command[0])
	if err != nil {
		return nil, fmt.Errorf("there is no program %.80q here that could be run", s.config.Command[0])
	}
	// It outlives the call that began it, so that no context ends it.
	cmd := exec.Command(path, s.config.Command[1:]...) //nolint:gosec,noctx // the user's own program; as the comment says
	c := &child{cmd: cmd, family: family.New(cmd, s.config.Env), said: &said{}, ended: make(chan struct{})}
	cmd.Stderr, cmd.WaitDelay = c.said, farewell
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	// A file, not StdoutPipe: Wait closes that while somebody reads.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	cmd.Stdout, c.in, c.out = theirs, in, out
	err = c.family.Start()
	theirs.Close() //nolint:errcheck // the program has its own
	if err != nil {
		out.Close() //nolint:errcheck // nothing was read
		return nil, fmt.Errorf("start it: %w", err)
	}
	go func() {
		defer close(c.ended)
		_ = c.family.Wait() // it is over, one way or another
	}()
	l := &link{end: c.end, after: func() { out.Close() }, last: c.last} //nolint:errcheck // read only
	return s.handshake(ctx, &sdk.IOTransport{Reader: io.NopCloser(out), Writer: in, MaxLineLength: maxFrame}, l)
}

// lastWords is how long a program that may be ending is given to say why.
const lastWords = 300 * time.Millisecond

// last is what it said last on its standard error.
func (c *child) last() string {
	patience := time.NewTimer(lastWords)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
	}
	return c.said.last()
}

// end has the program end, and kills what is left.
func (c *child) end() {
	c.in.Close() //nolint:errcheck // by which it is told to end
	patience := time.NewTimer(farewell)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
	}
	_ = c.family.Kill() // also what has left its group
	<-c.ended
}

// said is the end of what a program wrote to its standard error.
type said struct {
	mu   sync.Mutex
	data []byte
}

func (w *said) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data = append(w.data, p[max(0, len(p)-maxSaid):]...)
	if over := len(w.data) - maxSaid; over > 0 {
		w.data = append(w.data[:0], w.data[over:]...)
	}
	return len(p), nil
}

func (w *said) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(w.data), ""))
}
