package web

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
)

// instancePage is the data of the page of an instance.
type instancePage struct {
	Run                  *run
	Number, Position, Of int // Position is from 1, in the order of ids
	Previous, Next       int // numbers of the neighbours; -1 if there is none
	ID                   string
	Cells                []cell
	Attempts             []attemptSummary
	Detail               report.Detail
	Verdicts             []verdictView
	Gold                 string // patch of the dataset; "" if it is not at hand
	Others               []otherRun
	Labels               []string
}

// attemptSummary is an attempt on the page of its instance.
type attemptSummary struct {
	runs.Attempt
	Cell     cell
	Selected bool
	Patch    string
}

// verdictView is a verdict with the end of its log.
type verdictView struct {
	report.VerdictDetail
	Tests   []report.FailedList // failed tests of the run that decides
	LogTail string
}

// otherRun is the same instance in another run of the viewer.
type otherRun struct {
	Run, Instance int
	Name          string
	Cells         []cell
}

// newInstancePage collects the data of an instance.
func (v *Viewer) newInstancePage(r *run, number int) (*instancePage, error) {
	s, err := r.load()
	if err != nil {
		return nil, err
	}
	id, ok := r.instance(number)
	if !ok {
		return nil, errNotFound
	}
	in, ok := s.Run.Find(id)
	if !ok {
		return nil, errNotFound
	}
	p := &instancePage{Run: r, Number: number, ID: id, Previous: -1, Next: -1}
	p.setNeighbours(s)
	p.Labels = s.Labels[id]
	p.Cells = cellsOf(in, s.Run.Manifest.Repetitions())
	for _, a := range in.AllAttempts() {
		p.Attempts = append(p.Attempts, v.summarize(r, in, a))
	}
	p.Detail = report.Detail{Run: r.Dir, Row: report.Row{ID: id}}
	for _, row := range s.Summary.Rows {
		if row.ID == id {
			p.Detail.Row = row
		}
	}
	p.Detail.AddVerdicts(s.Verdicts, s.predictions())
	for _, d := range p.Detail.Verdicts {
		p.Verdicts = append(p.Verdicts, verdictView{
			VerdictDetail: d, Tests: failedLists(d.FailedTests), LogTail: logTail(r.Dir, d.Files),
		})
	}
	if row, ok := r.row(s, id); ok {
		p.Gold = row.Patch
	}
	for _, other := range v.runs {
		if n, ok := other.number(id); ok && other != r {
			if s, err := other.load(); err == nil {
				in, _ := s.Run.Find(id)
				p.Others = append(p.Others, otherRun{other.Number, n, other.Name, cellsOf(in, s.Run.Manifest.Repetitions())})
			}
		}
	}
	return p, nil
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
			p.Previous, _ = p.Run.number(s.Run.Instances[i-1].ID)
		}
		if i+1 < p.Of {
			p.Next, _ = p.Run.number(s.Run.Instances[i+1].ID)
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

// failedLists returns the failed tests of a verdict, complete.
func failedLists(f *verdicts.FailedTests) []report.FailedList {
	if f == nil {
		return nil
	}
	var lists []report.FailedList
	for _, l := range []report.FailedList{
		{Head: "FAIL_TO_PASS: still failing", Tests: f.FailToPass}, {Head: "PASS_TO_PASS: broken", Tests: f.PassToPass},
	} {
		if len(l.Tests) > 0 {
			shown := min(len(l.Tests), maxTests)
			lists = append(lists, report.FailedList{
				Head: fmt.Sprintf("%s (%d)", l.Head, len(l.Tests)), Tests: l.Tests[:shown], More: len(l.Tests) - shown,
			})
		}
	}
	return lists
}

// Limits of what a page shows.
const (
	maxTests    = 500      // names of a list of tests
	maxLogTail  = 8 << 10  // bytes of the end of a log
	maxLogBytes = 64 << 20 // bytes of a log that is read
)

// logTail returns the end of the log of a verdict; "" if there is none.
func logTail(dir, files string) string {
	data := readLog(dir, files, maxLogTail)
	if len(data) == maxLogTail {
		if _, lines, ok := bytes.Cut(data, []byte("\n")); ok { // the first line is not complete
			data = lines
		}
	}
	return string(data)
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
