package browser

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/timeline"
)

// maxLog is the maximum size of the part that is read at the end of a log, in bytes.
const maxLog = 2 << 20

// testLog returns the items of the log page: the newest verdict on a submission (or, if it has
// none, on another submission of its repetition), the failed tests and the end of the log. If there
// is no log, an item says why.
func testLog(e *Entry, t *Trajectory) (items []*timeline.Item) {
	add := func(kind timeline.Kind, format string, args ...any) []*timeline.Item {
		items = append(items, &timeline.Item{Kind: kind, Text: fmt.Sprintf(format, args...)})
		return items
	}
	if e.Run == "" {
		return add(timeline.Note, "no test log: the file is not in a run of mini; "+
			"import it with mini import and evaluate it with mini eval -p RUN")
	}
	if t.Outcome == nil || !t.Outcome.Class.IsResult() {
		return add(timeline.Note, "no test log: there is no submission")
	}
	recorded, err := verdicts.Read(e.Run)
	if err != nil {
		return add(timeline.Problem, "%v", err)
	}
	index := recorded.Index()
	v := index.Find(e.ID, e.Repetition, len(t.Outcome.Submission), "")
	for _, other := range index.Newest() {
		if v == nil && other.Instance == e.ID && max(1, other.Repetition) == max(1, e.Repetition) {
			v = &other
			add(timeline.Problem, "this verdict is for an earlier submission of the instance")
		}
	}
	if v == nil {
		return add(timeline.Note, "no test log: the submission has not been evaluated; run mini eval -p %s", e.Run)
	}
	kind := timeline.Problem
	if v.Class == verdicts.Resolved {
		kind = timeline.Note
	}
	add(kind, "%s", strings.TrimSuffix("verdict: "+string(v.Class)+", "+v.Reason, ", "))
	dir := ""
	for _, r := range v.Runs {
		if r.Purpose == verdicts.ForVerdict {
			dir = r.Dir
		}
	}
	if dir == "" || !filepath.IsLocal(filepath.FromSlash(dir)) {
		return add(timeline.Note, "no test log: no tests were run for this verdict")
	}
	tests, err := verdicts.ReadFailedTests(e.Run, dir, e.ID)
	if err != nil {
		add(timeline.Note, "%v", err)
	}
	for _, l := range report.FailedLists(tests) {
		line := l.Head
		for _, name := range l.Tests {
			line += "\n  " + text.Printable(name)
		}
		if l.More > 0 {
			line += fmt.Sprintf("\n  ... and %d more; mini report %s -i %s --json lists all", l.More, e.Run, e.ID)
		}
		add(timeline.Problem, "%s", line)
	}
	path := grade.FilesIn(filepath.Join(e.Run, filepath.FromSlash(dir))).TestOutput
	log, omitted, err := readTail(path)
	if err != nil {
		return add(timeline.Note, "no test log: %v", err)
	}
	add(timeline.Note, "%s", path)
	if omitted > 0 {
		add(timeline.Note, "... the first %s bytes are omitted", unit.Count(omitted))
	}
	return append(items, &timeline.Item{Kind: timeline.Output, Label: logPage, Text: log})
}

// readTail returns the end of a regular file, and the number of bytes before it.
func readTail(path string) (text string, omitted int64, err error) {
	f, err := rootdir.OpenRegular(path, syscall.O_NOFOLLOW)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	omitted = max(0, info.Size()-maxLog)
	data, err := io.ReadAll(io.NewSectionReader(f, omitted, maxLog))
	return string(data), omitted, err
}
