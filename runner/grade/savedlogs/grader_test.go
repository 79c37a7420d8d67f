package savedlogs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/logfile"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/savedlogs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	good   = "+ : '>>>>> Start Test Output'\nPASSED t::a\nPASSED t::b\n+ : '>>>>> End Test Output'\n"
	broken = "+ : '>>>>> Start Test Output'\nPASSED t::a\nFAILED t::b\n+ : '>>>>> End Test Output'\n"
)

var pytest = grade.TestSpec{
	InstanceID: "a", Parser: "parse_log_pytest", EvalType: grade.PassAndFail,
	FailToPass: []string{"t::a"}, PassToPass: []string{"t::b"},
}

// rubrics returns the same TestSpec for every folder, with the folder's id.
func rubrics(found savedlogs.SearchResult, like grade.TestSpec) map[string]grade.TestSpec {
	all := map[string]grade.TestSpec{}
	for _, id := range found.IDs() {
		like.InstanceID = id
		all[id] = like
	}
	return all
}

func put(t testing.TB, text string, elements ...string) {
	t.Helper()
	path := filepath.Join(elements...)
	if strings.HasSuffix(path, ".gz") {
		text = packed(t, text)
	}
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

func packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func find(t testing.TB, dir string) savedlogs.SearchResult {
	t.Helper()
	found, err := savedlogs.FindLogs([]string{dir})
	require.NoError(t, err)
	return found
}

func TestGrade(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		like  grade.TestSpec
		class savedlogs.Class
		want  string // of the line
	}{
		"resolved":        {map[string]string{"test_output.txt": good}, pytest, savedlogs.Resolved, `"resolved":true,"applied":true`},
		"packed":          {map[string]string{"test_output.txt.gz": good}, pytest, savedlogs.Resolved, `"resolution":"RESOLVED_FULL"`},
		"line ends":       {map[string]string{"test_output.txt": strings.ReplaceAll(good, "\n", "\r\n")}, pytest, savedlogs.Resolved, `"fail_to_pass":{"success":1,"failure":0,"total":1}`},
		"with a patch":    {map[string]string{"test_output.txt": good, "patch.diff": "x"}, pytest, savedlogs.Resolved, `"error":null`},
		"without a patch": {map[string]string{"test_output.txt": good, "patch.diff": ""}, pytest, savedlogs.Empty, `"resolved":false,"applied":false`},
		"unresolved":      {map[string]string{"test_output.txt": broken}, pytest, savedlogs.Unresolved, `"pass_to_pass":{"success":0,"failure":1,"total":1}`},
		"silent":          {map[string]string{"test_output.txt": "ModuleNotFoundError"}, pytest, savedlogs.Unresolved, `"infra_failure":false,"infra_failure_reason":"missing_module"`},
		"empty":           {map[string]string{"test_output.txt": ""}, pytest, savedlogs.Unresolved, `"infra_failure_reason":null`},
		"no memory":       {map[string]string{"test_output.txt": "Killed"}, pytest, savedlogs.Infrastructure, `"infra_failure":true,"infra_failure_reason":"out_of_memory"`},
		"exit code":       {map[string]string{"test_output.txt": broken + ">>>>> Test Exit Code: 1"}, pytest, savedlogs.Unresolved, `"exit_code":1`},
		"a crash": {
			map[string]string{"test_output.txt": strings.ReplaceAll(good, "PASSED t::a", "FAIL:")},
			grade.TestSpec{Parser: "parse_log_django", EvalType: grade.PassAndFail, FailToPass: []string{"t"}},
			savedlogs.Errored, `"resolved":null,"applied":false`,
		},
		"not UTF-8":  {map[string]string{"test_output.txt": good + "\xff"}, pytest, savedlogs.Errored, `UTF-8`},
		"not packed": {map[string]string{"test_output.txt.gz/x": good}, pytest, savedlogs.Errored, `not a regular file`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tt.files {
				put(t, text, dir, "a", filepath.FromSlash(file))
			}
			if name == "not packed" { // a folder instead of the log
				put(t, "x", dir, "a", "test_output.txt")
				require.NoError(t, os.Remove(filepath.Join(dir, "a", "test_output.txt")))
				if err := os.Symlink("test_output.txt.gz", filepath.Join(dir, "a", "test_output.txt")); err != nil {
					t.Skip(err)
				}
			}
			found := find(t, dir)
			rows := savedlogs.Rows{TestSpecs: rubrics(found, tt.like)}
			n := 0
			for r := range (savedlogs.Grader{}).Grade(t.Context(), found.Folders, rows.TestSpecs) {
				n++
				data, err := json.Marshal(r.Line(rows))
				require.NoError(t, err)
				if r.Class() != tt.class || !strings.Contains(string(data), tt.want) {
					t.Errorf("%s, want %s with %s", data, tt.class, tt.want)
				}
			}
			assert.Equal(t, 1, n, "results")
		})
	}
}

// many creates a tree of logs in which every third one is unresolved.
func many(t testing.TB, n int) savedlogs.SearchResult {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		text := good
		if i%3 == 0 {
			text = broken
		}
		put(t, text+strings.Repeat("noise\n", i%7*1000), dir, fmt.Sprintf("a-%d", i), "test_output.txt")
	}
	return find(t, dir)
}

func TestGradeKeepsTheOrder(t *testing.T) {
	found := many(t, 500)
	i := 0
	for r := range (savedlogs.Grader{Workers: 8}).Grade(t.Context(), found.Folders, rubrics(found, pytest)) {
		if want := fmt.Sprintf("a-%d", i); r.InstanceID != want || r.Verdict.InstanceID != want {
			t.Fatalf("result %d is of %s, with the verdict on %s", i, r.InstanceID, r.Verdict.InstanceID)
		}
		assert.Equal(t, i%3 != 0, r.Verdict.Report.Resolved, "%s: resolved", r.InstanceID)
		i++
	}
	assert.Equal(t, 500, i, "results")
}

// If the caller stops the iteration or ctx ends, no goroutine is left, which goleak checks at the
// end.
func TestGradeStops(t *testing.T) {
	found := many(t, 300)
	for range (savedlogs.Grader{Workers: 4}).Grade(t.Context(), found.Folders, rubrics(found, pytest)) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for range (savedlogs.Grader{Workers: 1}).Grade(ctx, found.Folders, rubrics(found, pytest)) {
		n++
		cancel()
	}
	if n == 300 {
		t.Error("all logs were read after the end")
	}
}

// Logs wait for free memory. A log larger than MaxMemory is graded too.
func TestGradeBoundsMemory(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		put(t, good+strings.Repeat("x", 1000*i), dir, fmt.Sprintf("a-%d", i), "test_output.txt.gz")
	}
	found := find(t, dir)
	n := 0
	for r := range (savedlogs.Grader{Workers: 4, MaxMemory: 4000, MaxLogSize: 15_000}).Grade(t.Context(), found.Folders, rubrics(found, pytest)) {
		assert.Equal(t, errors.Is(r.Err, logfile.ErrTooLong), len(good)+1000*n > 15_000, "%s: error %v", r.InstanceID, r.Err)
		n++
	}
	assert.Equal(t, 20, n, "results")
}

func TestTotals(t *testing.T) {
	yes, no, memory, module := true, false, "out_of_memory", "missing_module"
	var totals savedlogs.Totals
	for _, l := range []savedlogs.Line{
		{Class: savedlogs.Resolved, Resolved: &yes, Applied: true, Resolution: grade.ResolvedFull},
		{Class: savedlogs.Unresolved, Resolved: &no, Applied: true, Resolution: grade.ResolvedPartial},
		{Class: savedlogs.Unresolved, Resolved: &no, InfraReason: &module},
		{Class: savedlogs.Infrastructure, Resolved: &no, InfraReason: &memory},
		{Class: savedlogs.Errored},
		{Class: savedlogs.Empty, Resolved: &no},
	} {
		totals.Add(l, 10)
	}
	want := savedlogs.Totals{
		Logs: 6, Bytes: 60, Partial: 1, WithoutResults: 1,
		Classes: map[savedlogs.Class]int{savedlogs.Resolved: 1, savedlogs.Unresolved: 2, savedlogs.Infrastructure: 1, savedlogs.Errored: 1, savedlogs.Empty: 1},
		Reasons: map[string]int{memory: 1, module: 1},
	}
	if diff := cmp.Diff(want, totals); diff != "" || totals.Graded() != 4 {
		t.Errorf("%d judged; tally (-want +got):\n%s", totals.Graded(), diff)
	}
}

// A log is in memory only once, and the statuses of its tests are not copied.
func TestLargeLog(t *testing.T) {
	var s strings.Builder
	s.WriteString("+ : '>>>>> Start Test Output'\nPASSED t::a\nPASSED t::b\n")
	for i := 0; s.Len() < 16<<20; i++ {
		fmt.Fprintf(&s, "PASSED tests/test_many.py::test_number_%d and some words\r\n", i)
	}
	s.WriteString("+ : '>>>>> End Test Output'\n")
	dir := t.TempDir()
	put(t, s.String(), dir, "a", "test_output.txt")
	found := find(t, dir)
	all := rubrics(found, pytest)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for r := range (savedlogs.Grader{}).Grade(t.Context(), found.Folders, all) {
		if r.Class() != savedlogs.Resolved || r.Bytes < 15<<20 {
			t.Errorf("%s of %d bytes, error %v", r.Class(), r.Bytes, r.Err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(s.Len())+4<<20 {
		t.Errorf("%d bytes were allocated for a log of %d", took, s.Len())
	}
}
