package envtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// timeoutDurations: commands are killed at their timeout, and not earlier.
func timeoutDurations(t *testing.T, s suite) {
	b := s.start(t)
	for name, script := range map[string]string{
		"shell that ignores signals":  `trap '' TERM INT HUP QUIT; while :; do sleep 1; done`,
		"shell that handles signals":  `trap 'echo no' TERM INT HUP; while :; do sleep 1; done`,
		"exec":                        `exec sleep 300`,
		"busy loop":                   `while :; do :; done`,
		"stopped shell":               `kill -STOP $$; sleep 300`,
		"unopened named pipe":         `mkfifo $(mktemp -u) && cat <(sleep 300)`,
		"output closed":               `exec >&- 2>&-; sleep 300`,
		"a pipeline":                  `sleep 300 | sleep 300 | sleep 300`,
		"a command in its background": `sleep 300 & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			b := sandbox{b, t}
			const timeout = 150 * time.Millisecond
			started := time.Now()
			r := b.run(env.Command{Script: script, Timeout: timeout})
			checkTimeout(t, r)
			if took := time.Since(started); r.Duration < timeout || took < timeout {
				t.Errorf("it took %v, and %v in all; want %v", r.Duration, took, timeout)
			}
		})
	}
	t.Run("ended in time", func(t *testing.T) {
		b := sandbox{b, t}
		for name, script := range map[string]string{
			"signals ignored": `trap '' TERM; kill -TERM $$; echo on`,
			"exec":            `exec echo on`,
			"output closed":   `echo on; exec >&- 2>&-; sleep 0.05`,
		} {
			if r := b.run(env.Command{Script: script}); r.ExitCode != 0 || string(r.Output) != "on\n" || r.TimedOut {
				t.Errorf("%s: exit code %d, output %q, timed out %v", name, r.ExitCode, r.Output, r.TimedOut)
			}
		}
	})
	t.Run("partial output beyond the limit", func(t *testing.T) {
		b := sandbox{b, t}
		const size = 400_000
		script := fmt.Sprintf("rm -f $F; seq -f %%07.0f 0 %d; echo written >$F; sleep 300", size/8-1)
		r := b.runUntilTimeout(script, b.tempDir()+"/written")
		checkTimeout(t, r)
		if r.Bytes != size || !r.Truncated || len(r.Output) != env.DefaultOutputLimit {
			t.Fatalf("kept %d of %d bytes", len(r.Output), r.Bytes)
		}
		checkNumbers(t, "head", r.Output[:r.Head], 0)
		checkNumbers(t, "tail", r.Output[r.Head:], size-len(r.Output)+r.Head)
	})
	t.Run("nothing survives", func(t *testing.T) {
		s.needs(t, OwnProcesses)
		if n := (sandbox{b, t}).otherProcesses(); n != "0" {
			t.Errorf("%s processes of timed-out commands are left", n)
		}
	})
}
