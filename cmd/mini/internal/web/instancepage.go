package web

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories/timeline"
)

// instancePage is the data of the page of an instance.
type instancePage struct {
	Run                *run
	ID                 string
	Position, Of       int    // Position is from 1, in the order of ids
	Previous, Next     string // ids of the neighbours; "" if there is none
	Issue, IssueSource string // what the agent was asked to solve
	Cells              []cell
	Why                reason
	Attempts           []attemptSummary
	Main               int // index of the attempt that counts and is compared with the gold patch
	Detail             report.Detail
	Verdicts           []verdictView
	Gold               string // patch of the dataset; "" if it is not at hand
	Difference         string // of the gold patch and that of the attempt that counts; "" if one lacks
	Others             []otherRun
	Labels             []string
	Note               string
	Form               *instanceForm // that changes them; nil if nothing can be changed
}

// attemptSummary is an attempt on the page of its instance.
type attemptSummary struct {
	runs.Attempt
	Cell     cell
	Selected bool
	Patch    string
}

// verdictView is a verdict with the log of its tests.
type verdictView struct {
	report.VerdictDetail
	Lists   []failedList // failed tests of the run that decides
	LogTail string
}

// failedList is a list of failed tests.
type failedList struct {
	Head  string
	Tests []failedTest
	More  int
}

// failedTest is a failed test with its part of the log; "" if the log does not show it.
type failedTest struct {
	Name, Log string
}

// otherRun is the same instance in another run of the viewer.
type otherRun struct {
	Run   *run
	Cells []cell
}

// newInstancePage collects the data of an instance.
func (v *Viewer) newInstancePage(r *run, id string) (*instancePage, error) {
	s, in, err := r.find(id)
	if err != nil {
		return nil, err
	}
	p := &instancePage{Run: r, ID: id}
	p.setNeighbours(s)
	p.Labels, p.Note = s.Labels[id], s.Notes[id]
	p.Cells, p.Why = cellsOf(in, s.Run.Manifest.Repetitions()), s.why(in)
	for _, a := range in.AllAttempts() {
		p.Attempts = append(p.Attempts, v.summarize(r, in, a))
	}
	p.Main = max(0, slices.IndexFunc(p.Attempts, func(a attemptSummary) bool { return a.Selected }))
	p.Detail = report.Detail{Run: r.Dir, Row: report.Row{ID: id}}
	for _, row := range s.Summary.Rows {
		if row.ID == id {
			p.Detail.Row = row
		}
	}
	p.Detail.AddVerdicts(s.Verdicts, s.predictions())
	for _, d := range p.Detail.Verdicts {
		p.Verdicts = append(p.Verdicts, newVerdictView(r.Dir, d))
	}
	row, hasRow := r.row(s, id)
	if hasRow {
		p.Gold = row.Patch
		if len(p.Attempts) > 0 && p.Attempts[p.Main].Patch != "" {
			p.Difference = patchDifference(row.Patch, p.Attempts[p.Main].Patch)
		}
	}
	if p.Issue, p.IssueSource = row.ProblemStatement, "from the dataset"; p.Issue == "" {
		p.Issue, p.IssueSource = v.prompt(r, in), "from the prompt: the dataset is not on this machine"
	}
	for _, other := range v.all() {
		if other == r {
			continue
		}
		if s, in, err := other.find(id); err == nil {
			p.Others = append(p.Others, otherRun{other, cellsOf(in, s.Run.Manifest.Repetitions())})
		}
	}
	return p, nil
}

// prompt returns the last prompt before the first reply of an attempt.
func (v *Viewer) prompt(r *run, in runs.Instance) (prompt string) {
	for _, a := range in.Attempts {
		if a.Journal == "" {
			continue
		}
		if t, err := v.attempts.get(r.Dir, a.Journal); err == nil {
			for _, item := range t.Steps[0].Items {
				if item.Kind == timeline.Message {
					prompt = item.Text
				}
			}
			return prompt
		}
	}
	return ""
}

// setNeighbours sets the position of the instance in the order of ids.
func (p *instancePage) setNeighbours(s *snapshot) {
	p.Of = len(s.Run.Instances)
	for i, in := range s.Run.Instances {
		if in.ID != p.ID {
			continue
		}
		p.Position = i + 1
		if i > 0 {
			p.Previous = s.Run.Instances[i-1].ID
		}
		if i+1 < p.Of {
			p.Next = s.Run.Instances[i+1].ID
		}
	}
}

// summarize describes an attempt with its patch, for which it opens the journal.
func (v *Viewer) summarize(r *run, in runs.Instance, a runs.Attempt) attemptSummary {
	s := attemptSummary{Attempt: a, Cell: newCell(a.Number, a.Result)}
	s.Selected = in.Selects(a.Number)
	if a.Journal != "" {
		if t, err := v.attempts.get(r.Dir, a.Journal); err == nil {
			s.Patch, _ = t.Patch()
		}
	}
	return s
}

// Limits of what a page shows.
const (
	maxTests    = 500      // names of a list of tests
	maxLogTail  = 8 << 10  // bytes of the end of a log
	maxSearched = 4 << 20  // bytes of a log that is searched for failed tests
	maxLogBytes = 64 << 20 // bytes of a log that is read
)

// newVerdictView adds the failed tests and the log to a verdict.
func newVerdictView(dir string, d report.VerdictDetail) verdictView {
	v := verdictView{VerdictDetail: d}
	log := readLog(dir, d.Files, maxSearched)
	v.LogTail = tailOf(log)
	if d.FailedTests == nil {
		return v
	}
	parts := newLogParts(string(log))
	for _, l := range []struct {
		head  string
		tests []string
	}{{"tests that must pass still fail", d.FailedTests.FailToPass}, {"tests that passed before fail", d.FailedTests.PassToPass}} {
		if len(l.tests) == 0 {
			continue
		}
		shown := min(len(l.tests), maxTests)
		list := failedList{Head: fmt.Sprintf("%d %s", len(l.tests), l.head), More: len(l.tests) - shown}
		for _, name := range l.tests[:shown] {
			list.Tests = append(list.Tests, failedTest{name, parts.of(name)})
		}
		v.Lists = append(v.Lists, list)
	}
	return v
}

// Tests returns how many tests failed, in words; "" if that is not known.
func (v verdictView) Tests() string {
	if v.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s failed", v.Failed, text.Count(v.Failed+v.Passed, "test"))
}

// tailOf returns the end of a log.
func tailOf(log []byte) string {
	if len(log) <= maxLogTail {
		return string(log)
	}
	log = log[len(log)-maxLogTail:]
	if _, lines, ok := bytes.Cut(log, []byte("\n")); ok { // the first line is not complete
		log = lines
	}
	return string(log)
}

// readLog returns the last bytes of the log of a verdict, up to a limit; nil if it cannot be read.
func readLog(dir, files string, limit int64) []byte {
	if files == "" {
		return nil
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // only read
	f, err := root.Open(filepath.Join(dir, filepath.FromSlash(path.Join(files, logFile))))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-limit), limit))
	if err != nil {
		return nil
	}
	return data
}

// logFile is the name of the log of a test run.
const logFile = "test_output.txt"

// logParts finds the parts of a log that are about tests: what pytest, unittest and go test write
// below a heading with the name of a failed test.
type logParts struct {
	headings []int // line numbers
	lines    []string
	rest     int // bytes that may still be shown
}

// Limits of the parts.
const (
	maxPartLines = 60
	maxParts     = 64 << 10 // bytes of all parts of a log
	maxHeadings  = 2000
)

func newLogParts(log string) *logParts {
	p := &logParts{lines: strings.Split(log, "\n"), rest: maxParts}
	for i, line := range p.lines {
		if isHeading(line) && len(p.headings) < maxHeadings {
			p.headings = append(p.headings, i)
		}
	}
	return p
}

// isHeading reports whether a line begins the part of a test: "____ test_a ____" of pytest,
// "FAIL: test_a (x.Y)" of unittest, "--- FAIL: TestA" of go test.
func isHeading(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "___") && strings.HasSuffix(line, "___") || strings.HasPrefix(line, "FAIL: ") ||
		strings.HasPrefix(line, "ERROR: ") || strings.HasPrefix(line, "--- FAIL: ")
}

// of returns the part of a test; "" if there is none, or enough has been shown.
func (p *logParts) of(test string) string {
	functions, _ := testNames([]string{test})
	if len(functions) == 0 {
		return ""
	}
	for n, start := range p.headings {
		if !strings.Contains(p.lines[start], functions[0]) {
			continue
		}
		end := len(p.lines)
		if n+1 < len(p.headings) {
			end = p.headings[n+1]
		}
		for i := start + 1; i < end; i++ {
			if strings.HasPrefix(p.lines[i], "=====") { // the next part, or the summary
				end = i
			}
		}
		part := strings.TrimRight(strings.Join(p.lines[start:min(end, start+maxPartLines)], "\n"), "\n")
		if p.rest -= len(part); p.rest < 0 {
			return ""
		}
		return part
	}
	return ""
}
