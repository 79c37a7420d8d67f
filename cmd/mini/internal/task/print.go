package task

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/headless"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
)

// checkPrint checks the flags of the print mode and sets the task.
func (o *Options) checkPrint() error {
	switch {
	case !slices.Contains(headless.Formats, o.format):
		return usage.Errorf("--output-format %.40q: it is %s", o.format, strings.Join(headless.Formats, ", "))
	case !o.print && o.format != string(headless.Text):
		return usage.Errorf("--output-format is for -p, which is not given")
	case o.argument != "" && o.HasTask:
		return usage.Errorf("-t and the argument of -p are both the task; leave one out")
	case o.argument != "":
		o.task, o.HasTask = o.argument, true
	}
	return nil
}

// maxTask is the maximum length of a task on stdin, in bytes.
const maxTask = 10 << 20

// readAll reads a task from stdin, until ctx ends.
func readAll(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // it may wait for input when ctx ends
		text, err := io.ReadAll(io.LimitReader(in, maxTask+1))
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", fmt.Errorf("read task: %w", r.err)
		}
		if len(r.text) > maxTask {
			return "", usage.Errorf("the task on stdin is longer than %d MB", maxTask>>20)
		}
		return string(r.text), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// stdinNoteAfter is when readPiped says that it waits.
const stdinNoteAfter = 3 * time.Second

// readPiped reads the text on stdin unless that is a terminal. A process that starts mini may leave a pipe
// open that it never writes to, so mini says what it waits for.
func readPiped(ctx context.Context, a *app.App) (string, error) {
	if f, ok := a.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return "", nil
	}
	note := time.AfterFunc(stdinNoteAfter, func() {
		_, _ = fmt.Fprintln(a.Err, "mini: reading more of the task from stdin; </dev/null means that there is none")
	})
	defer note.Stop()
	return readAll(ctx, a.In)
}

// newHeadless returns the frontend of the print mode.
func (t *session) newHeadless() *headless.Frontend {
	redact := envopen.Redact(t.cfg)
	return headless.New(headless.Config{
		Print: func(text string) error { return t.PrintText(string(redact([]byte(text)))) },
		Err:   t.Err, Format: headless.Format(t.options.format), IsYolo: t.mode == chat.Yolo, OnBrokenOutput: t.inbox.Abort,
	})
}

// approval returns the mode of the chat, and its answer if a rule asks about a command. Without a user, the
// print mode runs the commands that no rule asks about.
func (t *session) approval() (chat.Mode, agent.DecisionAction) {
	unattended := agent.DecisionAction(t.cfg.Policy.Unattended)
	if t.options.print && t.mode == chat.Confirm {
		return chat.Yolo, cmp.Or(unattended, agent.Deny)
	}
	return t.mode, unattended
}
