package tampering_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/grade/tampering"
)

// TestRealLogs looks at logs of honest runs: their markers are the script's, and
// their claims agree with what the tests exited with. The logs are of a release
// that did not print that, so that it is put in, as the runner's own last words
// have it.
func TestRealLogs(t *testing.T) {
	paths := corpustest.Glob(t, corpustest.RealData(t, "eval-logs"), "*/*/test_output.txt.gz")
	rows := officialRows(t)
	looked, coded := 0, 0
	fired, zero, one := map[tampering.Flag]int{}, 0, 0
	for _, path := range paths {
		in, ok := rows[filepath.Base(filepath.Dir(path))]
		if !ok {
			continue
		}
		looked++
		s, err := script.For(in)
		if err != nil {
			t.Fatal(err)
		}
		text, err := logs.Decode(unpacked(t, path))
		if err != nil {
			t.Fatal(err)
		}
		silent := exitLines.ReplaceAllString(s.Text, "")
		for _, f := range look(t, in, text, silent) {
			fired[f.Flag]++
			t.Errorf("%s: %+v", path, f)
		}
		zero += len(look(t, in, withCode(text, 0), s.Text))
		one += len(look(t, in, withCode(text, 1), s.Text))
		code, ok := lastWords(text)
		if !ok {
			continue
		}
		coded++
		for _, f := range look(t, in, withCode(text, code), s.Text) {
			fired[f.Flag]++
			t.Logf("%s: %+v", path, f)
		}
	}
	t.Logf("%d of %d logs are of rows at hand; flags: %v", looked, len(paths), fired)
	if looked == 0 || coded == 0 || zero == 0 || one == 0 {
		t.Errorf("%d logs were looked at, %d with the runner's last words; a wrong 0 has %d flags, a wrong 1 %d", looked, coded, zero, one)
	}
	t.Logf("the runner says how %d of them ended; had all exited with 0, %d would have a flag, with 1 %d", coded, zero, one)
	if fired[tampering.ExitDisagrees] > 0 {
		t.Errorf("of %d honest exit codes %d are said to disagree", coded, fired[tampering.ExitDisagrees])
	}
}

func look(t *testing.T, in datasets.Instance, text, evalScript string) []tampering.Finding {
	t.Helper()
	r, err := grade.NewTestSpec(in)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Grade(text)
	if err != nil {
		t.Fatal(err)
	}
	o := tampering.LogResult{Passed: v.LogCounts.Passed, Failed: v.LogCounts.Failed, AnyFailed: v.LogCounts.AnyFailed}
	if v.ExitCode != nil {
		o.ExitCode = new(int(*v.ExitCode))
	}
	return tampering.CheckLog(text, evalScript, o)
}

var (
	exitLines = regexp.MustCompile(`(?m)^.*(?:SWEBENCH_TEST_EXIT_CODE|>>>>> Test Exit Code).*\n`)
	endTrace  = regexp.MustCompile(`\+ : '>>>>> End Test Output'\n`)
	// The last line of pytest, of unittest and of sympy's runner.
	words   = regexp.MustCompile(`(?m)^=+ .*\b\d+ (?:passed|failed|errors?|skipped)\b.* in [\d.]+.*=+$|^OK(?: \(.*\))?$|^FAILED \((?:failures|errors)=.*\)$|^=+ tests finished: .*$`)
	failing = regexp.MustCompile(`\b(?:failed|errors?|exceptions)\b|^FAILED`)
)

// lastWords is what the tests exited with by the last line of their runner.
func lastWords(text string) (code int, ok bool) {
	all := words.FindAllString(text, -1)
	if len(all) == 0 {
		return 0, false
	}
	if failing.MatchString(all[len(all)-1]) {
		return 1, true
	}
	return 0, true
}

// withCode is the log as it would be, had the script printed this exit code.
func withCode(text string, code int) string {
	n := strconv.Itoa(code)
	return endTrace.ReplaceAllString(text,
		"+ SWEBENCH_TEST_EXIT_CODE="+n+"\n$0+ echo '>>>>> Test Exit Code: "+n+"'\n>>>>> Test Exit Code: "+n+"\n")
}

// TestModelPatches shows how often patches of models touch what is suspicious,
// and holds that the files of the test patch are found among them.
func TestModelPatches(t *testing.T) {
	paths := corpustest.Glob(t, corpustest.RealData(t, "eval-logs"), "*/*/patch.diff")
	counts := map[tampering.Flag]int{}
	flagged, rows := 0, officialRows(t)
	for _, path := range paths {
		patch, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		in, ok := rows[filepath.Base(filepath.Dir(path))]
		if !ok {
			t.Errorf("%s: there is no row", path)
		}
		found := tampering.CheckPatch(patch, in)
		if len(found) > 0 {
			flagged++
		}
		var tests []string
		for _, f := range found {
			counts[f.Flag]++
			t.Logf("%s: %s %s", in.ID, f.Flag, f.File)
			if f.Flag == tampering.TestFile {
				tests = append(tests, f.File)
			}
		}
		ofTests := changedFiles(in.TestPatch)
		want := slices.DeleteFunc(changedFiles(string(patch)), func(file string) bool { return !slices.Contains(ofTests, file) })
		if slices.Sort(tests); !slices.Equal(tests, want) {
			t.Errorf("%s: files of the test patch are %q, want %q", in.ID, tests, want)
		}
	}
	t.Logf("%d of %d patches have a flag: %v", flagged, len(paths), counts)
	if flagged*4 > len(paths) || counts[tampering.TestFile] == 0 {
		t.Error("more than one patch in four is suspicious, or none touches a test")
	}
}

// changedFiles are the files of a git diff, sorted.
func changedFiles(diff string) (files []string) {
	for _, m := range diffHeader.FindAllStringSubmatch(diff, -1) {
		files = append(files, m[1])
	}
	slices.Sort(files)
	return slices.Compact(files)
}

var diffHeader = regexp.MustCompile(`(?m)^diff --git a/\S+ b/(\S+)$`)

// TestGoldPatches shows how often the reference solutions touch what is
// suspicious: they are honest, and few may.
func TestGoldPatches(t *testing.T) {
	counts := map[tampering.Flag]int{}
	flagged, rows := 0, officialRows(t)
	for _, in := range rows {
		found := tampering.CheckPatch([]byte(in.Patch), in)
		if len(found) > 0 {
			flagged++
		}
		for _, f := range found {
			counts[f.Flag]++
		}
		// The test patch is the extreme: nothing of it is left.
		if rest := tampering.RemoveFiles([]byte(in.TestPatch), tampering.Files(tampering.CheckPatch([]byte(in.TestPatch), in))); len(rest) > 0 {
			t.Errorf("%s: of the test patch is left:\n%s", in.ID, rest)
		}
	}
	t.Logf("%d of %d gold patches have a flag: %v", flagged, len(rows), counts)
	if flagged*20 > len(rows) {
		t.Error("more than one honest patch in twenty is suspicious")
	}
}

func officialRows(t *testing.T) map[string]datasets.Instance {
	t.Helper()
	rows := map[string]datasets.Instance{}
	for _, set := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		src, err := datasets.Local(corpustest.RealData(t, "swebench/"+set+".jsonl.gz"), "")
		if err != nil {
			t.Fatal(err)
		}
		for in, err := range datasets.Rows(t.Context(), src, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows[in.ID] = in
		}
	}
	return rows
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
