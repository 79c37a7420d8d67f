package evaluate

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/minibench/mini/internal/rootdir"
)

// runLog writes run_instance.log, which lists the steps in the sandbox and their
// results.
type runLog struct {
	file *os.File
	err  error // the first failed write
}

// Messages that other tools search for in run_instance.log.
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

// logf writes a message, which may have several lines.
func (l *runLog) logf(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	_, _ = fmt.Fprintf(l, "%s - INFO - %s\n", time.Now().Format(time.DateTime), strings.ToValidUTF8(text, "\ufffd"))
}

// Write adds raw output. It never returns an error; Close returns the first one,
// so that a full disk is reported once.
func (l *runLog) Write(p []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.file.Write(p)
	}
	return len(p), nil
}

// Close closes the file and returns the first error of a write or of closing.
func (l *runLog) Close() error {
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}
