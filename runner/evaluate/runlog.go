package evaluate

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/minibench/mini/runner/rootdir"
)

// runLog is run_instance.log: what was done in the sandbox, and what it came
// to. Other tools look for some of its messages.
type runLog struct {
	file *os.File
	err  error // the first failure
}

// Messages that other tools know.
const (
	appliedPatch = ">>>>> Applied Patch"
	applyFailed  = ">>>>> Patch Apply Failed"
)

func newRunLog(dir *rootdir.Dir, path string) (*runLog, error) {
	f, err := dir.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	return &runLog{file: f}, nil
}

// say adds a message, which may have several lines.
func (l *runLog) say(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	_, _ = fmt.Fprintf(l, "%s - INFO - %s\n", time.Now().Format(time.DateTime), strings.ToValidUTF8(text, "\ufffd"))
}

// Write adds output as it is. It never fails: what cannot be written is told at
// the end, so that a full disk is noticed once.
func (l *runLog) Write(p []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.file.Write(p)
	}
	return len(p), nil
}

// Close returns the first failure.
func (l *runLog) Close() error {
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}
