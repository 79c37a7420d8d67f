package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/timeline"
)

// maxLog is the maximum size of the part that is read at the end of a log, in bytes.
const maxLog = 2 << 20

func noteItem(text string) *timeline.Item { return &timeline.Item{Kind: timeline.Note, Text: text} }

func problemItem(text string) *timeline.Item {
	return &timeline.Item{Kind: timeline.Problem, Text: text}
}

// testLog returns the items of the log page: the newest verdict on a trajectory's submission (or,
// if it has none, on another submission of its repetition), the failed tests and the end of the
// log. If there is no log, an item says why.
func testLog(t *Trajectory) []*timeline.Item {
	run := t.Entry.Run
	if run == "" {
		return []*timeline.Item{noteItem("no test log: the file is not in a run of mini; " +
			"import it with mini import and evaluate it with mini eval -p RUN")}
	}
	if t.Outcome == nil || !t.Outcome.Class.IsResult() {
		return []*timeline.Item{noteItem("no test log: there is no submission")}
	}
	recorded, err := verdicts.Read(run)
	if err != nil {
		return []*timeline.Item{problemItem(err.Error())}
	}
	sum := sha256.Sum256(t.Outcome.Submission)
	patchSHA256 := hex.EncodeToString(sum[:])
	sameInstance := func(v verdicts.Verdict) bool { return v.Instance == t.Entry.ID && v.Model == t.Header.ModelName }
	v := newestVerdict(recorded.Verdicts, func(v verdicts.Verdict) bool {
		return sameInstance(v) && v.Basis.PatchSHA256 == patchSHA256
	})
	var items []*timeline.Item
	if v == nil {
		repetition := max(1, t.Header.Repetition)
		v = newestVerdict(recorded.Verdicts, func(v verdicts.Verdict) bool {
			return sameInstance(v) && max(1, v.Repetition) == repetition
		})
		if v == nil {
			text := "no test log: the submission has not been evaluated; run mini eval -p " + run
			return []*timeline.Item{noteItem(text)}
		}
		items = append(items, problemItem("this verdict is for an earlier submission of the instance"))
	}
	verdictItem := noteItem("verdict: " + string(v.Class))
	if v.Reason != "" {
		verdictItem.Text += ", " + v.Reason
	}
	if v.Class != verdicts.Resolved {
		verdictItem.Kind = timeline.Problem
	}
	dir := ""
	for _, r := range v.Runs {
		if r.Purpose == verdicts.ForVerdict {
			dir = r.Dir
		}
	}
	items = append(append(items, verdictItem), failedTests(run, dir, t.Entry.ID)...)
	return append(items, logItems(run, dir)...)
}

// failedTests returns items that list the first failed tests of an evaluation.
func failedTests(run, dir, id string) (items []*timeline.Item) {
	tests, err := verdicts.ReadFailedTests(run, dir, id)
	if err != nil {
		items = append(items, noteItem(err.Error()))
	}
	for _, l := range report.FailedLists(tests) {
		line := l.Head
		for _, name := range l.Tests {
			line += "\n  " + text.Printable(name)
		}
		if l.More > 0 {
			line += fmt.Sprintf("\n  ... and %d more; mini report %s -i %s --json lists all", l.More, run, id)
		}
		items = append(items, problemItem(line))
	}
	return items
}

// logItems returns the end of the log in a folder of the run.
func logItems(run, dir string) []*timeline.Item {
	if dir == "" || !filepath.IsLocal(filepath.FromSlash(dir)) {
		return []*timeline.Item{noteItem("no test log: no tests were run for this verdict")}
	}
	path := filepath.Join(run, filepath.FromSlash(dir), "test_output.txt")
	text, omitted, err := readTail(path)
	if err != nil {
		return []*timeline.Item{noteItem("no test log: " + err.Error())}
	}
	items := []*timeline.Item{noteItem(path)}
	if omitted > 0 {
		items = append(items, noteItem(fmt.Sprintf("... the first %s bytes are omitted", unit.Count(omitted))))
	}
	return append(items, &timeline.Item{Kind: timeline.Output, Label: "test log", Text: text})
}

// readTail returns the end of a regular file, from the start of a line if there is one, and the
// number of bytes before it.
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
	if omitted > 0 {
		if _, complete, ok := strings.Cut(string(data), "\n"); ok {
			return complete, omitted + int64(len(data)-len(complete)), err
		}
	}
	return string(data), omitted, err
}
