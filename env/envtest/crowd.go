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

// crowd: many commands at once lose no byte. The output that is most easily lost
// is that of a shell which ends while another process still holds its pipe.
func crowd(t *testing.T, s suite) {
	const sandboxes, askers = 32, 200
	commands := int64(1000)
	if Long() {
		commands = 10_000
	}
	boxes := make([]box, sandboxes)
	var opening sync.WaitGroup
	for i := range boxes {
		opening.Go(func() { boxes[i].Environment = s.open(t) })
	}
	opening.Wait()
	for i := range boxes {
		if boxes[i].Environment == nil {
			t.FailNow() // open has said why
		}
		boxes[i] = up(t, func(*testing.T) env.Environment { return boxes[i].Environment })
	}
	began := time.Now()
	var next atomic.Int64
	var asking sync.WaitGroup
	for i := range askers {
		asking.Go(func() {
			for n := next.Add(1); n <= commands && !t.Failed(); n = next.Add(1) {
				script, want := task(n)
				r, err := boxes[i%sandboxes].Execute(t.Context(), env.Command{Script: script, Timeout: 2 * time.Minute})
				if err != nil || r.ExitCode != 0 || string(r.Output) != want || r.Bytes != int64(len(want)) {
					t.Errorf("command %d: %d of %d bytes (%d counted), exit code %d, error %v", n, len(r.Output), len(want), r.Bytes, r.ExitCode, err)
				}
			}
		})
	}
	asking.Wait()
	t.Logf("%d commands by %d askers in %d sandboxes took %v", commands, askers, sandboxes, time.Since(began).Round(time.Millisecond))
}

// task is a command and what it prints.
func task(n int64) (script, output string) {
	const line = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch n % 4 {
	case 0: // the smallest
		return fmt.Sprintf("echo %d", n), fmt.Sprintf("%d\n", n)
	case 1: // a pipe full, and somebody who holds it
		return fmt.Sprintf("sleep 0.3 & printf '%s\\n%%.0s' {1..900}; echo %d", line, n), strings.Repeat(line+"\n", 900) + fmt.Sprintf("%d\n", n)
	case 2: // more than a pipe holds
		return fmt.Sprintf("printf '%s\\n%%.0s' {1..3000}; echo %d >&2", line, n), strings.Repeat(line+"\n", 3000) + fmt.Sprintf("%d\n", n)
	default: // written by what the shell leaves behind it
		return fmt.Sprintf("(sleep 0.3 &) ; echo %d; exec echo end", n), fmt.Sprintf("%d\nend\n", n)
	}
}
