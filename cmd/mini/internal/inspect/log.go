package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/timeline"
)

// maxLog is how much of a log is read, from its end, in bytes.
const maxLog = 2 << 20

func note(text string) *timeline.Item  { return &timeline.Item{Kind: timeline.Note, Text: text} }
func alarm(text string) *timeline.Item { return &timeline.Item{Kind: timeline.Alarm, Text: text} }

// testLog is the newest evaluation of what a trajectory submitted, and the end of
// its log. There is always something to show.
func testLog(t *Trajectory) []*timeline.Item {
	run := t.Item.Run
	if run == "" {
		return []*timeline.Item{note("no test log: this file is not in a run of mini's; " +
			"mini import makes one of it, and mini eval -p RUN judges it")}
	}
	if t.Outcome == nil || !t.Outcome.Class.Counts() {
		return []*timeline.Item{note("no test log: there is no submission to be judged")}
	}
	found, err := verdicts.Read(run)
	if err != nil {
		return []*timeline.Item{alarm(err.Error())}
	}
	sum := sha256.Sum256(t.Outcome.Submission)
	submitted := hex.EncodeToString(sum[:])
	of := func(v verdicts.Verdict) bool { return v.Instance == t.Item.ID && v.Model == t.Header.ModelName }
	v := newest(found.Verdicts, func(v verdicts.Verdict) bool { return of(v) && v.Basis.PatchSHA256 == submitted })
	var items []*timeline.Item
	if v == nil {
		sample := max(1, t.Header.Sample)
		v = newest(found.Verdicts, func(v verdicts.Verdict) bool { return of(v) && max(1, v.Sample) == sample })
		if v == nil {
			text := "no test log: this submission was not evaluated; mini eval -p " + run + " does"
			return []*timeline.Item{note(text)}
		}
		items = append(items, alarm("this verdict is on an earlier submission of the instance"))
	}
	head := note("verdict: " + string(v.Class))
	if v.Reason != "" {
		head.Text += ", " + v.Reason
	}
	if v.Class != verdicts.Resolved {
		head.Kind = timeline.Alarm
	}
	dir := ""
	for _, r := range v.Runs {
		if r.Purpose == verdicts.ForVerdict {
			dir = r.Dir
		}
	}
	items = append(append(items, head), failedTests(run, dir, t.Item.ID)...)
	return append(items, logItems(run, dir)...)
}

// failedTests names the first of the tests that failed.
func failedTests(run, dir, id string) (items []*timeline.Item) {
	tests, err := verdicts.ReadFailed(run, dir, id)
	if err != nil {
		items = append(items, note(err.Error()))
	}
	for _, list := range report.FailedLists(tests) {
		text := list.Head
		for _, name := range list.Tests {
			text += "\n  " + report.Printable(name)
		}
		if list.More > 0 {
			text += fmt.Sprintf("\n  ... and %d more; mini report %s -i %s --json has all", list.More, run, id)
		}
		items = append(items, alarm(text))
	}
	return items
}

func logItems(run, dir string) []*timeline.Item {
	if dir == "" || !filepath.IsLocal(filepath.FromSlash(dir)) {
		return []*timeline.Item{note("no test log: nothing was run for this verdict")}
	}
	path := filepath.Join(run, filepath.FromSlash(dir), "test_output.txt")
	text, left, err := tailOf(path)
	if err != nil {
		return []*timeline.Item{note("no test log: " + err.Error())}
	}
	items := []*timeline.Item{note(path)}
	if left > 0 {
		items = append(items, note(fmt.Sprintf("... the first %s bytes of it are not shown", timeline.Amount(left))))
	}
	return append(items, &timeline.Item{Kind: timeline.Output, Label: "test log", Text: text})
}

// tailOf is the end of a file that may be anybody's, and how much is before it.
func tailOf(path string) (text string, left int64, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is not a plain file", path)
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the log of the named run is the purpose
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	left = max(0, info.Size()-maxLog)
	data, err := io.ReadAll(io.NewSectionReader(f, left, maxLog))
	if left > 0 {
		if _, rest, ok := strings.Cut(string(data), "\n"); ok {
			return rest, left + int64(len(data)-len(rest)), err
		}
	}
	return string(data), left, err
}
