package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/timeline"
)

// maxLog is how much of the end of a log is read, in bytes.
const maxLog = 2 << 20

func noteItem(text string) *timeline.Item { return &timeline.Item{Kind: timeline.Note, Text: text} }

func alarmItem(text string) *timeline.Item { return &timeline.Item{Kind: timeline.Problem, Text: text} }

// testLog returns the newest evaluation of a trajectory's submission and the end of its log,
// or an explanation of why there is none.
func testLog(t *Trajectory) []*timeline.Item {
	run := t.Entry.Run
	if run == "" {
		return []*timeline.Item{noteItem("no test log: the file is not in a run of mini; " +
			"import it with mini import and evaluate it with mini eval -p RUN")}
	}
	if t.Outcome == nil || !t.Outcome.Class.Counts() {
		return []*timeline.Item{noteItem("no test log: there is no submission")}
	}
	found, err := verdicts.Read(run)
	if err != nil {
		return []*timeline.Item{alarmItem(err.Error())}
	}
	sum := sha256.Sum256(t.Outcome.Submission)
	submitted := hex.EncodeToString(sum[:])
	sameInstance := func(v verdicts.Verdict) bool { return v.Instance == t.Entry.ID && v.Model == t.Header.ModelName }
	v := newestVerdict(found.Verdicts, func(v verdicts.Verdict) bool { return sameInstance(v) && v.Basis.PatchSHA256 == submitted })
	var items []*timeline.Item
	if v == nil {
		repetition := max(1, t.Header.Repetition)
		v = newestVerdict(found.Verdicts, func(v verdicts.Verdict) bool { return sameInstance(v) && max(1, v.Repetition) == repetition })
		if v == nil {
			text := "no test log: the submission has not been evaluated; run mini eval -p " + run
			return []*timeline.Item{noteItem(text)}
		}
		items = append(items, alarmItem("this verdict is for an earlier submission of the instance"))
	}
	head := noteItem("verdict: " + string(v.Class))
	if v.Reason != "" {
		head.Text += ", " + v.Reason
	}
	if v.Class != verdicts.Resolved {
		head.Kind = timeline.Problem
	}
	dir := ""
	for _, r := range v.Runs {
		if r.Purpose == verdicts.ForVerdict {
			dir = r.Dir
		}
	}
	items = append(append(items, head), failedTests(run, dir, t.Entry.ID)...)
	return append(items, logItems(run, dir)...)
}

// failedTests lists the first failed tests.
func failedTests(run, dir, id string) (items []*timeline.Item) {
	tests, err := verdicts.ReadFailedTests(run, dir, id)
	if err != nil {
		items = append(items, noteItem(err.Error()))
	}
	for _, list := range report.FailedLists(tests) {
		line := list.Head
		for _, name := range list.Tests {
			line += "\n  " + text.Printable(name)
		}
		if list.More > 0 {
			line += fmt.Sprintf("\n  ... and %d more; mini report %s -i %s --json lists all", list.More, run, id)
		}
		items = append(items, alarmItem(line))
	}
	return items
}

func logItems(run, dir string) []*timeline.Item {
	if dir == "" || !filepath.IsLocal(filepath.FromSlash(dir)) {
		return []*timeline.Item{noteItem("no test log: no tests were run for this verdict")}
	}
	path := filepath.Join(run, filepath.FromSlash(dir), "test_output.txt")
	text, left, err := readTail(path)
	if err != nil {
		return []*timeline.Item{noteItem("no test log: " + err.Error())}
	}
	items := []*timeline.Item{noteItem(path)}
	if left > 0 {
		items = append(items, noteItem(fmt.Sprintf("... the first %s bytes are omitted", timeline.FormatCount(left))))
	}
	return append(items, &timeline.Item{Kind: timeline.Output, Label: "test log", Text: text})
}

// readTail returns the end of a regular file and the number of bytes before it.
func readTail(path string) (text string, left int64, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is not a regular file", path)
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
