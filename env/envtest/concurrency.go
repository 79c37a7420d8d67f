package envtest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// concurrency: many concurrent commands lose no output. The most critical case is a
// shell that ends while another process holds its output pipe.
func concurrency(t *testing.T, s suite) {
	const sandboxCount, callers, commands = 4, 24, 60
	sandboxes := make([]sandbox, sandboxCount)
	var opening sync.WaitGroup
	for i := range sandboxes {
		opening.Go(func() { sandboxes[i].Environment = s.open(t) })
	}
	opening.Wait()
	for i := range sandboxes {
		if sandboxes[i].Environment == nil {
			t.FailNow() // open has reported the error
		}
		sandboxes[i] = startWith(t, func(*testing.T) env.Environment { return sandboxes[i].Environment })
	}
	var next atomic.Int64
	var calling sync.WaitGroup
	for i := range callers {
		calling.Go(func() {
			for n := next.Add(1); n <= commands && !t.Failed(); n = next.Add(1) {
				script, want := numberedTask(n)
				r, err := sandboxes[i%sandboxCount].Execute(t.Context(), env.Command{Script: script, Timeout: 2 * time.Minute})
				if err != nil || r.ExitCode != 0 || string(r.Output) != want || r.Bytes != int64(len(want)) {
					t.Errorf("command %d: %d of %d bytes (%d counted), exit code %d, error %v", n, len(r.Output), len(want), r.Bytes, r.ExitCode, err)
				}
			}
		})
	}
	calling.Wait()
}

// numberedTask returns a command and its expected output.
func numberedTask(n int64) (script, output string) {
	const line = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch n % 4 {
	case 0: // the smallest
		return fmt.Sprintf("echo %d", n), fmt.Sprintf("%d\n", n)
	case 1: // fills the pipe, which a background process holds
		return fmt.Sprintf("sleep 0.3 & printf '%s\\n%%.0s' {1..900}; echo %d", line, n), strings.Repeat(line+"\n", 900) + fmt.Sprintf("%d\n", n)
	case 2: // more than the capacity of a pipe
		return fmt.Sprintf("printf '%s\\n%%.0s' {1..3000}; echo %d >&2", line, n), strings.Repeat(line+"\n", 3000) + fmt.Sprintf("%d\n", n)
	default: // written by a process that replaces the shell
		return fmt.Sprintf("(sleep 0.3 &) ; echo %d; exec echo end", n), fmt.Sprintf("%d\nend\n", n)
	}
}
