//go:build full && unix

package logs_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/logs"
)

// cpuTime returns the processor time of this process. Unlike wall time, it does not depend on
// other processes of the machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestLongHostileLogs parses hostile texts. A parser with quadratic time would take hours.
func TestLongHostileLogs(t *testing.T) {
	const size = 1 << 17
	const limit = 10 * time.Second // of processor time; a tenth of a second is needed
	for _, h := range hostile(size) {
		text := h.text(size)
		for _, name := range logs.Names() {
			begin := cpuTime(t)
			tests, err := logs.Parse(name, text, subjects[0])
			if d := cpuTime(t) - begin; d > limit {
				t.Errorf("%s takes %v for %v", name, d, h)
			} else if d > time.Second {
				t.Logf("%s takes %v for %v", name, d, h)
			}
			if err == nil && tests == nil {
				t.Errorf("%s gives neither tests nor an error", name)
			}
		}
		for _, of := range subjects[1:] {
			for _, name := range []string{"parse_log_jekyll", "parse_log_immutable_js", "parse_log_next", "parse_log_lighthouse"} {
				begin := cpuTime(t)
				_, _ = logs.Parse(name, text, of) // an error is fine too
				if d := cpuTime(t) - begin; d > limit {
					t.Errorf("%s takes %v for %v", name, d, h)
				}
			}
		}
	}
}

// TestNamesAreBounded parses a log with a long heading above many tests, whose names would need
// a terabyte.
func TestNamesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(strings.Repeat("S", 1<<20) + " (x)\n")
	for i := range 1 << 13 {
		b.WriteString(" ✔ " + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "\n")
	}
	_, err := logs.Parse("parse_log_phpunit", b.String(), logs.InstanceInfo{})
	assert.Error(t, err, "a log makes any length of names")
}
