package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// record is a line of a journal.
type record struct {
	kind trajectories.Type
	data any
}

// writeJournal writes the journal of an attempt, with one second between records.
func writeJournal(t *testing.T, dir, id string, attempt int, start time.Time, records ...record) string {
	t.Helper()
	h := record{trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format, InstanceID: id, Attempt: attempt}}
	return writeJournalWith(t, dir, id, attempt, start, append([]record{h}, records...)...)
}

// writeJournalWith is writeJournal with the header among the records.
func writeJournalWith(t *testing.T, dir, id string, attempt int, start time.Time, records ...record) string {
	t.Helper()
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for i, r := range records {
		data, err := json.Marshal(r.data)
		if err != nil {
			t.Fatal(err)
		}
		if err := enc.Encode(trajectories.Record{ID: i + 1, Parent: i, Type: r.kind, Time: start.Add(time.Duration(i) * time.Second), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, id, "attempts", fmt.Sprint(attempt), "journal.jsonl")
	writeFile(t, path, lines.String())
	return path
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// outcome returns the last record of an attempt that started with the others.
func outcome(class trajectories.Class, status string, steps int, change ...func(*trajectories.Outcome)) record {
	o := trajectories.Outcome{
		Class: class, ExitStatus: status, Steps: steps, Cost: model.Cost(steps) / 100,
		Usage: model.Usage{Prompt: int64(steps) * 12_345, Completion: int64(steps) * 321, CacheRead: int64(steps) * 10_000},
		Start: began, End: began.Add(time.Duration(steps) * 7 * time.Second),
	}
	if class.IsResult() {
		o.Submission = []byte("diff")
	}
	for _, f := range change {
		f(&o)
	}
	return record{trajectories.TypeOutcome, o}
}

func failed(text, hint string) func(*trajectories.Outcome) {
	return func(o *trajectories.Outcome) { o.Error, o.Hint = text, hint }
}

func networkProof(text string) func(*trajectories.Outcome) {
	return func(o *trajectories.Outcome) { o.NetworkProof = text }
}

func manifest(t *testing.T, dir string, selected int, class string, sessions ...runs.Session) {
	t.Helper()
	data, err := json.Marshal(runs.Manifest{
		Format: trajectories.Format, MiniVersion: "v1", Sessions: sessions,
		Dataset: runs.Dataset{Name: "verified.jsonl.gz", Selected: selected, Rows: 500},
		Model:   runs.ClassAndName{Class: class, Name: "gpt-5-mini"}, Environment: runs.ClassAndName{Class: "docker"},
	})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "run.json"), string(data))
}

func session(took time.Duration, notStarted int) runs.Session {
	end := began.Add(took)
	return runs.Session{Started: began, Ended: &end, Summary: &runs.Summary{Unstarted: notStarted}}
}

// bigRun writes a run with every kind of outcome, and with untrusted names and errors.
func bigRun(t *testing.T) {
	t.Helper()
	for n := 1; n <= 30; n++ {
		writeJournal(t, "run", fmt.Sprintf("django__django-%d", 10_000+n), 1, began, outcome(trajectories.Submitted, "Submitted", n))
	}
	empty := func(o *trajectories.Outcome) { o.Submission = nil }
	auto := func(o *trajectories.Outcome) { o.Autosubmitted = true }
	free := func(o *trajectories.Outcome) { o.Cost, o.Usage.Unpriced = 0, int64(o.Steps) }
	writeJournal(t, "run", "sympy__sympy-1", 1, began, outcome(trajectories.Submitted, "Submitted", 3, empty))
	writeJournal(t, "run", "sympy__sympy-2", 1, began, outcome(trajectories.Limit, "LimitsExceeded", 250, auto, free))
	writeJournal(t, "run", "sympy__sympy-3", 1, began, outcome(trajectories.Limit, "TimeExceeded", 90, auto))
	for n := 1; n <= 12; n++ {
		id := fmt.Sprintf("astropy__astropy-%d", n)
		text := fmt.Sprintf("pull image docker.io/swebench/sweb.eval.x86_64.astropy_1776_astropy-%d:latest: ImageNotFound: no such image after %ds", n, n)
		writeJournal(t, "run", id, 1, began, outcome(trajectories.Environment, "ImageNotFound", 0, failed(text, "check the name")))
	}
	writeJournal(t, "run", "seaborn__seaborn-77", 1, began, outcome(trajectories.Environment, "HostDiskFull", 0, failed("write /var/lib/docker/a1/b2: no space left on device", "make room")))
	for attempt := 1; attempt <= 3; attempt++ {
		writeJournal(t, "run", "pytest-dev__pytest-5262", attempt, began, outcome(trajectories.Provider, "RateLimited", 40,
			failed("query model: RateLimited: 429 \x1b[31mslow down\u202e 漢字漢字漢字 "+strings.Repeat("very long ", 50), "")))
	}
	writeJournal(t, "run", "an id with spaces and 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字", 1, began,
		outcome(trajectories.Internal, "InternalError", 1, failed("runtime error: index out of range [5] with length 5", "")))
	writeJournal(t, "run", "flask__flask-1", 1, began,
		record{trajectories.TypeCall, trajectories.Call{Cost: 0.5, Usage: model.Usage{Prompt: 100, Completion: 10}}})
	manifest(t, "run", 60, "openai", session(2*time.Hour, 11))
}

func read(t *testing.T, dir string) *runs.Run {
	t.Helper()
	run, err := runs.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// shown returns the text form. It checks that only lines with commands are wider than allowed.
func shown(t *testing.T, d *doc.Doc, width int) string {
	t.Helper()
	out := d.Text(width)
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if ansi.StringWidth(line) > width && !strings.Contains(line, "mini report") && !strings.Contains(line, ".jsonl") {
			t.Errorf("%d wide, %d allowed: %s", ansi.StringWidth(line), width, line)
		}
		if text.Printable(line) != line {
			t.Errorf("not printable: %q", line)
		}
	}
	return out
}

// inTemporary changes to a temporary folder, so that the path of a run is always the same. back
// returns to the folder of the golden files.
func inTemporary(t *testing.T) (back func()) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	return func() { t.Chdir(here) }
}

func indented(t *testing.T, v any) string {
	t.Helper()
	document, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(document) + "\n"
}

func TestSummary(t *testing.T) {
	back := inTemporary(t)
	bigRun(t)
	run := read(t, "run")
	back()
	g := report.NewSummary(run, nil, began)
	golden(t, "glance.txt", shown(t, g.Doc(), 80))
	golden(t, "glance.json", indented(t, g))
	for _, width := range []int{40, 60, 120} {
		shown(t, g.Doc(), width)
	}
	if diff := cmp.Diff(g, report.NewSummary(run, nil, began)); diff != "" {
		t.Errorf("the second summary differs:\n%s", diff)
	}
}

// The summary of a short run lists every instance.
func TestShortSummary(t *testing.T) {
	unpriced := func(o *trajectories.Outcome) { o.Cost, o.Usage.Unpriced = 0, int64(o.Steps) }
	cheap := func(o *trajectories.Outcome) { o.Cost = 0.0004 }
	tests := []struct {
		name, class string
		selected    int
		sessions    []runs.Session
		ids         []string
		make        func(t *testing.T)
	}{
		{"one", "openai", 1, []runs.Session{session(time.Minute, 0)}, nil, func(t *testing.T) {
			writeJournal(t, "run", "a", 1, began, outcome(trajectories.Submitted, "Submitted", 3, cheap))
		}},
		{"none", "openai", 2, []runs.Session{{Started: began}}, nil, func(*testing.T) {}},
		{"unpriced", "openai", 2, []runs.Session{session(time.Minute, 0)}, []string{"a", "b", "never-started"}, func(t *testing.T) {
			writeJournal(t, "run", "a", 1, began, outcome(trajectories.Submitted, "Submitted", 3, unpriced))
			writeJournal(t, "run", "b", 1, began, outcome(trajectories.Environment, "ContainerDied", 2, unpriced, failed("run command: ContainerDied", "")))
			writeJournal(t, "run", "b", 2, began, outcome(trajectories.Environment, "ImageNotFound", 0, unpriced, failed("pull image x: ImageNotFound", "check the name")))
			writeJournal(t, "run", "not-asked-for", 1, began, outcome(trajectories.Submitted, "Submitted", 3))
		}},
		{"unproven", "openai", 2, []runs.Session{session(time.Minute, 0)}, nil, func(t *testing.T) {
			writeJournal(t, "run", "a", 1, began, outcome(trajectories.Environment, "ContainerDied", 2, networkProof("unproven: DNS answers")))
			writeJournal(t, "run", "a", 2, began, outcome(trajectories.Submitted, "Submitted", 3, networkProof("proven: DNS, API server")))
			writeJournal(t, "run", "b", 1, began, outcome(trajectories.Submitted, "Submitted", 3, networkProof("unproven: the probe was killed")))
		}},
		{"scripted", "scripted", 2, []runs.Session{{Started: began}}, nil, func(t *testing.T) {
			writeJournal(t, "run", "a", 1, began, outcome(trajectories.Submitted, "Submitted", 3, unpriced))
			writeJournal(t, "run", "b", 1, began, record{trajectories.TypeCall, trajectories.Call{}}, record{trajectories.TypeCall, trajectories.Call{}})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			back := inTemporary(t)
			manifest(t, "run", tt.selected, tt.class, tt.sessions...)
			tt.make(t)
			g := report.NewSummary(read(t, "run"), tt.ids, began)
			back()
			golden(t, "glance-"+tt.name+".txt", shown(t, g.Doc(), 80))
		})
	}
}

// The time of a running attempt grows even if its journal has no new records. That of an attempt
// of a killed session does not.
func TestTimeOfRunningAttempt(t *testing.T) {
	for worker, want := range map[int]float64{0: 2, 4711: 60} {
		run := &runs.Run{
			WorkerPID: worker,
			Manifest:  runs.Manifest{Sessions: []runs.Session{{Started: began.Add(-time.Second)}}},
			Instances: []runs.Instance{{ID: "a", Attempts: []runs.Attempt{
				{Number: 1, Progress: runs.Totals{Start: began.Add(-time.Hour), End: began.Add(-time.Hour + time.Second)}},
				{Number: 2, Progress: runs.Totals{Start: began, End: began.Add(time.Second)}},
			}}},
		}
		if worker > 0 {
			want++ // the attempt of the killed session
		}
		g := report.NewSummary(run, nil, began.Add(time.Minute))
		if g.Totals.Seconds != want {
			t.Errorf("worker %d: %v seconds, want %v", worker, g.Totals.Seconds, want)
		}
	}
}

// On a narrow terminal, truncated ids of a project stay distinguishable.
func TestNarrowSummary(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{12907, 13033, 13236, 13398, 13453, 13579} {
		writeJournal(t, dir, fmt.Sprintf("astropy__astropy-%d", n), 1, began, outcome(trajectories.Submitted, "Submitted", 3))
	}
	g := report.NewSummary(read(t, dir), nil, began)
	text := shown(t, g.Doc(), 40)
	for _, want := range []string{"13033 ", "13579 "} {
		if strings.Count(text, want) != 2 { // in both rankings
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestMiddle(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"django__django-11099", 20, "django__django-11099"},
		{"django__django-11099", 19, "django__dj…go-11099"},
		{"django__django-11099", 12, "djang…-11099"},
		{"django__django-11099", 8, "dj…11099"},
		{"django__django-11099", 7, "django…"},
		{"django__django-11099", 1, "…"},
		{"django__django-11099", 0, ""},
		{"日本語の名前-1234", 12, "日本…前-1234"},
	} {
		got := table.TruncateMiddle(tt.text, tt.width)
		if got != tt.want || ansi.StringWidthWc(got) > tt.width {
			t.Errorf("Middle(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// Instances that the user interrupted are counted but not listed.
func TestInterruptedSummary(t *testing.T) {
	for _, n := range []int{3, 12} {
		dir := t.TempDir()
		writeJournal(t, dir, "lost", 1, began, outcome(trajectories.Environment, "ContainerDied", 3))
		for i := range n {
			writeJournal(t, dir, fmt.Sprintf("a__b-%d", i), 1, began, outcome(trajectories.Interrupted, "Interrupted", 3))
		}
		g := report.NewSummary(read(t, dir), nil, began)
		text := shown(t, g.Doc(), 80)
		for what, want := range map[string]int{
			"mini report ": 1, "-i lost\n": 1, " more; ": 0, "to continue": 1, fmt.Sprintf("%d interrupted", n): 1,
		} {
			if got := strings.Count(text, what); got != want {
				t.Errorf("%d times %q, want %d:\n%s", got, what, want, text)
			}
		}
		g.HideNextStep = true
		if text := shown(t, g.Doc(), 80); strings.Contains(text, "to continue") {
			t.Errorf("the next step is printed twice:\n%s", text)
		}
	}
}

// A session with fewer instances does not make the run smaller.
func TestNarrowerSession(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		writeJournal(t, dir, fmt.Sprint("a-", n), 1, began, outcome(trajectories.Submitted, "Submitted", 1))
	}
	narrow := session(time.Minute, 0)
	for name, wide := range map[string]runs.Session{
		"killed": {Started: began, InstanceCount: 300},
		"ended":  {Started: began, InstanceCount: 300, Summary: &runs.Summary{Instances: 300, Unstarted: 298}},
		"old":    {Started: began, Summary: &runs.Summary{Instances: 300, Unstarted: 298}},
	} {
		manifest(t, dir, 2, "openai", wide, narrow)
		if g := report.NewSummary(read(t, dir), nil, began); g.Instances != 300 || g.NotStarted != 297 {
			t.Errorf("%s: %d of %d not started", name, g.NotStarted, g.Instances)
		}
	}
	manifest(t, dir, 2, "openai", session(time.Minute, 0), narrow) // as in the first mini-1 files
	if g := report.NewSummary(read(t, dir), nil, began); g.Instances != 3 || g.NotStarted != 0 {
		t.Errorf("%d of %d not started", g.NotStarted, g.Instances)
	}
}

// Similar errors are grouped; different ones are not.
func TestReasons(t *testing.T) {
	id := "django__django-11099"
	tests := []struct{ error, pattern string }{
		{"pull image swebench/sweb.eval.x86_64.django_1776_django-11099:latest: ImageNotFound", "pull image swebench/sweb.eval.x<n>_<n>.<instance>:latest: ImageNotFound"},
		{"start Django__Django-11099: no", "start <instance>: no"},
		{"429 after 3 tries, waited 1m2.5s", "<n> after <n> tries, waited <time>"},
		{"open /tmp/mini-a/b.yaml: denied", "open <path>: denied"},
		{"open /data/other/place/c.json: denied", "open <path>: denied"},
		{"container 4f5e6a7b8c9d died", "container <id> died"},
		{"digest sha256:00ff", "digest <id>"},
		{"request 123e4567-e89b-12d3-a456-426614174000", "request <id>"},
		{"two\n  lines\tand more", "two lines and more"},
		{"dial tcp 10.1.2.3:443: refused", "dial tcp <n>:<n>: refused"},
		{"connection refused", "connection refused"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		for n, text := range []string{tt.error, tt.error, "something else"} {
			name := id
			if n > 0 {
				name = fmt.Sprintf("other__one-%d", n)
			}
			text = strings.NewReplacer(id, name, "django_1776_django-11099", strings.ReplaceAll(name, "__", "_1776_"), "Django__Django-11099", name).Replace(text)
			writeJournal(t, dir, name, 1, began, outcome(trajectories.Internal, "InternalError", 1, failed(text, "")))
		}
		reasons := report.NewSummary(read(t, dir), nil, began).Classes[0].Statuses[0].Reasons
		if len(reasons) != 2 || reasons[0].Count != 2 || reasons[0].Pattern != tt.pattern {
			t.Errorf("%q: %+v, want two of %q", tt.error, reasons, tt.pattern)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one", []string{"one"}},
		{"one two three", []string{"one two", "three"}},
		{"try --subset FILE", []string{"try", "--subset", "FILE"}},
		{"abcdefghijklmnop q", []string{"abcdefgh", "ijklmnop", "q"}},
		{"漢字漢字漢字 x", []string{"漢字漢字", "漢字 x"}},
		{"a\n\x1bb", []string{"a \ufffdb"}},
	} {
		if diff := cmp.Diff(tt.want, table.Wrap(tt.text, 8)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
	if got := table.Wrap("漢字", 1); len(got) != 1 {
		t.Errorf("no room: %q", got)
	}
}
