package browser

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		write(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update rewrites it:\n%s", path, got)
	}
}

func printText(t *testing.T, p Options) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := Print(t.Context(), &b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A file without trajectories gives one error. The rows of a file are listed in order, also
// rows that cannot be opened.
func TestFilesWithSeveralTrajectories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	write(t, path, "{\"a\":1}\n{\"b\":1}\n{\"c\":1}\n")
	var b bytes.Buffer
	_, err := Print(t.Context(), &b, Options{Path: path})
	if notFound, ok := errors.AsType[*NotFoundError](err); !ok || !strings.Contains(notFound.Reason, "line 1: not a trajectory") || b.Len() > 0 {
		t.Errorf("%v, and printed %q", err, b.String())
	}
	var entries []*Entry
	for _, row := range []int{-3, 12, 1, 2} {
		entries = append(entries, &Entry{ID: "x", Path: path, Row: row})
	}
	SortOrder{By: "cost"}.sort(entries)
	for i, want := range []int{1, 2, -3, 12} {
		if entries[i].Row != want {
			t.Errorf("row %d is the %dth", entries[i].Row, i+1)
		}
	}
}

// writeVerdict writes a verdict on the submission of a-1, and its log.
func writeVerdict(t *testing.T, dir, patch string) {
	t.Helper()
	sum := sha256.Sum256([]byte(patch))
	write(t, filepath.Join(dir, "verdicts", "e", "m", "a-1.json"), fmt.Sprintf(`{"format":"mini-verdict-1","instance_id":"a-1",
"model_name_or_path":"m","run_id":"e","class":"unresolved","reason":"1 of 2 tests fail","basis":{"patch_bytes":%d,"patch_sha256":%q},
"flags":[{"flag":"test_files"}],"runs":[{"purpose":"verdict","class":"unresolved","dir":"logs/e/m/a-1"}]}`, len(patch), hex.EncodeToString(sum[:])))
	write(t, filepath.Join(dir, "logs", "e", "m", "a-1", "report.json"), `{"a-1":{"tests_status":{"FAIL_TO_PASS":{"success":[],"failure":["test_x\u001b[2J"]}}}}`)
	write(t, filepath.Join(dir, "logs", "e", "m", "a-1", "test_output.txt"), strings.Repeat("earlier\n", maxLog/8)+"FAILED test_x\x1b]0;owned\x07\n")
}

const submittedPatch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-hay\n+needle\n"

// The log page shows the verdict on the submission, its flags and the end of its log. It marks
// verdicts on earlier submissions.
func TestVerdictAndLog(t *testing.T) {
	dir := run(t)
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "results.json"), strings.ReplaceAll(string(text), `"patch_bytes":59`, fmt.Sprintf(`"patch_bytes":%d`, len(submittedPatch))))
	writeVerdict(t, dir, submittedPatch)
	m := browse(t, dir, 120, 30)
	has(t, m, "unresolved", "test_files")
	press(m, "enter", "t")
	has(t, m, "verdict: unresolved, 1 of 2 tests fail", "1 test of FAIL_TO_PASS still fails:", "  test_x\ufffd[2J", "earlier", "bytes are omitted")
	press(m, "G")
	has(t, m, "FAILED test_x")
	hasNot(t, m, "owned")

	writeVerdict(t, dir, submittedPatch+"x")
	press(m, "t", "t")
	has(t, m, "this verdict is for an earlier submission")
}

func TestPrintGolden(t *testing.T) {
	t.Setenv("TZ", "UTC")
	dir := run(t)
	list := printText(t, Options{Path: dir})
	golden(t, "list.txt", regexp.MustCompile(` [ \d]\d?ms`).ReplaceAllString(list, "  1ms")) // of the journal that has just been written
	file := filepath.Join(dir, "b-3", "attempts", "1", "journal.jsonl")
	text := printText(t, Options{Path: file, Reasoning: true})
	for _, line := range strings.Split(text, "\n") { // the times of day vary
		if i := strings.LastIndex(line, " · "); i > 0 && strings.Count(line[i:], ":") == 2 {
			text = strings.Replace(text, line, line[:i]+" · TIME", 1)
		}
	}
	golden(t, "trajectory.txt", text)
	two := 2
	if got := printText(t, Options{Path: file, Step: &two}); !strings.Contains(got, "no command") || strings.Contains(got, "I try.") {
		t.Errorf("step 2 is %q", got)
	}
	nine := 9
	var notFound *NotFoundError
	if _, err := Print(t.Context(), &bytes.Buffer{}, Options{Path: file, Step: &nine}); !errors.As(err, &notFound) {
		t.Errorf("step 9: %v", err)
	}
}

// The list of a folder has the attempts of runs, imported files and broken files, but no other
// files.
func TestFolder(t *testing.T) {
	dir := run(t)
	top := filepath.Dir(dir)
	write(t, filepath.Join(top, "theirs", "x.traj.json"), `{"trajectory_format":"mini-swe-agent-1.1","instance_id":"x-1","info":{"exit_status":"LimitsExceeded","submission":"","model_stats":{"instance_cost":1.5,"api_calls":1}},
"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"hi there","extra":{"actions":[{"command":"ls"}]}},{"role":"user","content":"out","extra":{"raw_output":"out","returncode":1}},{"role":"exit","content":"LimitsExceeded","extra":{"exit_status":"LimitsExceeded","submission":""}}]}`)
	write(t, filepath.Join(top, "theirs", "list.jsonl"), `{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"first"}]}
{"messages":[{"role":"user","content":"two"},{"role":"assistant","content":"second"}]}
`)
	write(t, filepath.Join(top, "theirs", "torn.traj.json"), `{"trajectory_format":"mini-swe-agent-1.1","messages":[`)
	write(t, filepath.Join(top, "package.json"), `{"name":"no trajectory"}`)
	m := browse(t, top, 140, 30)
	has(t, m, "7 trajectories", "a-1", "b-3", "x-1", "LimitsExceeded", "$1.50", "torn", "invalid or truncated JSON")
	entries := map[string]*Entry{}
	for _, e := range m.list.found.entries {
		entries[fmt.Sprint(filepath.Base(e.Path), e.Row)] = e
	}
	tr, err := OpenTrajectory(entries["list.jsonl2"])
	if err != nil || tr.ReplyCount() != 1 || tr.Steps[1].Items[0].Text != "second" {
		t.Fatalf("row 2 is %+v, %v", tr, err)
	}
	if _, err := OpenTrajectory(entries["torn.traj.json-1"]); err == nil {
		t.Error("a truncated file is opened without an error")
	}
	// A second walk adds no duplicates.
	drive(m, m.walk())
	has(t, m, "7 trajectories")
	enterText(m, "f", "text:second")
	has(t, m, "1 of 7 trajectories")
}

func TestPartsOfRun(t *testing.T) {
	dir := run(t)
	for path, want := range map[string]string{
		dir: "a-1 a-2 b-3", filepath.Join(dir, "a-2"): "a-2", filepath.Join(dir, "a-2", "attempts", "1"): "a-2",
		filepath.Join(dir, "a-2", "attempts", "1", "journal.jsonl"): "a-2",
	} {
		m := browse(t, path, 80, 24)
		var ids []string
		for _, e := range m.list.visible {
			if ids = append(ids, e.ID); e.Run != dir {
				t.Errorf("%s: the run is %s", path, e.Run)
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s has %s, want %s", path, got, want)
		}
	}
	if _, err := Print(t.Context(), &bytes.Buffer{}, Options{Path: filepath.Join(dir, "nowhere")}); err == nil {
		t.Error("a missing path is opened")
	}
	var notFound *NotFoundError
	if _, err := Print(t.Context(), &bytes.Buffer{}, Options{Path: t.TempDir()}); !errors.As(err, &notFound) {
		t.Errorf("an empty folder: %v", err)
	}
}

// All attempts can be opened, and a damaged journal shows its beginning.
func TestAttempts(t *testing.T) {
	dir := run(t)
	good, err := os.ReadFile(filepath.Join(dir, "a-1", "attempts", "1", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "b-3", "attempts", "2", "journal.jsonl"), string(good))
	lines := bytes.SplitAfter(good, []byte("\n"))
	write(t, filepath.Join(dir, "a-2", "attempts", "1", "journal.jsonl"), string(bytes.Join(lines[:8], nil))+"damaged\n"+string(lines[8]))
	m := browse(t, dir, 100, 30)
	has(t, m, "3 trajectories (a: 1 more attempt)")
	press(m, "a")
	has(t, m, "4 trajectories", "b-3 attempt 1", "b-3 attempt 2")
	press(m, "j", "enter", "$")
	has(t, m, "a-2", "the rest of the file is damaged")
	if e := m.reader.entry; e.Class != trajectories.Submitted {
		t.Errorf("the entry does not have the result in results.json: %+v", e)
	}
	// A running attempt is listed beside the one that counts.
	write(t, filepath.Join(dir, "a-1", "attempts", "2", "journal.jsonl"), string(bytes.Join(lines[:4], nil)))
	m = browse(t, dir, 100, 30)
	has(t, m, "4 trajectories", "a-1 attempt 1", "a-1 attempt 2")
	hasNot(t, m, "a-2 attempt")
}
