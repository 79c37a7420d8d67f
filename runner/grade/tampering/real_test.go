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
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/grade/tampering"
)

// TestRealLogs checks that logs of honest runs have no findings: all markers are from the script,
// and the results agree with the exit code. The logs are from a release that did not print the
// exit code, so that the test adds the exit code that the last line of the test runner implies.
func TestRealLogs(t *testing.T) {
	paths := corpustest.Glob(t, corpustest.RealData(t, "eval-logs"), "*/*/test_output.txt.gz")
	rows := officialRows(t)
	checked, implied := 0, 0
	flagCounts, flagsWithZero, flagsWithOne := map[tampering.Flag]int{}, 0, 0
	for _, path := range paths {
		in, ok := rows[filepath.Base(filepath.Dir(path))]
		if !ok {
			continue
		}
		checked++
		s, err := script.For(in)
		require.NoError(t, err)
		text, err := logs.Decode(unpacked(t, path))
		require.NoError(t, err)
		scriptWithoutCode := exitLines.ReplaceAllString(s.Text, "")
		for _, f := range checkLog(t, in, text, scriptWithoutCode) {
			flagCounts[f.Flag]++
			t.Errorf("%s: %+v", path, f)
		}
		flagsWithZero += len(checkLog(t, in, withCode(text, 0), s.Text))
		flagsWithOne += len(checkLog(t, in, withCode(text, 1), s.Text))
		code, ok := impliedExitCode(text)
		if !ok {
			continue
		}
		implied++
		for _, f := range checkLog(t, in, withCode(text, code), s.Text) {
			flagCounts[f.Flag]++
			t.Logf("%s: %+v", path, f)
		}
	}
	t.Logf("%d of %d logs belong to known rows; flags: %v", checked, len(paths), flagCounts)
	if checked == 0 || implied == 0 || flagsWithZero == 0 || flagsWithOne == 0 {
		t.Errorf("%d logs were checked, %d with an implied exit code; exit code 0 has %d flags, exit code 1 has %d", checked, implied, flagsWithZero, flagsWithOne)
	}
	t.Logf("the test runner implies the exit code of %d logs; with exit code 0 there are %d flags, with 1 %d", implied, flagsWithZero, flagsWithOne)
	if flagCounts[tampering.ExitDisagrees] > 0 {
		t.Errorf("of %d honest exit codes, %d disagree", implied, flagCounts[tampering.ExitDisagrees])
	}
}

func checkLog(t *testing.T, in datasets.Instance, text, evalScript string) []tampering.Finding {
	t.Helper()
	r, err := grade.NewTestSpec(in)
	require.NoError(t, err)
	v, err := r.Grade(text)
	require.NoError(t, err)
	c := v.LogCounts
	o := tampering.LogResult{Passed: c.Passed, Failed: c.Failed, AnyFailed: c.AnyFailed, Listed: c.Listed, Overwritten: c.Overwritten}
	if v.ExitCode != nil {
		o.ExitCode = new(int(*v.ExitCode))
	}
	return tampering.CheckLog(text, evalScript, o)
}

var (
	exitLines = regexp.MustCompile(`(?m)^.*(?:SWEBENCH_TEST_EXIT_CODE|>>>>> Test Exit Code).*\n`)
	endTrace  = regexp.MustCompile(`\+ : '>>>>> End Test Output'\n`)
	// The last line of pytest, of unittest and of sympy's runner.
	summaryLines = regexp.MustCompile(`(?m)^=+ .*\b\d+ (?:passed|failed|errors?|skipped)\b.* in [\d.]+.*=+$|^OK(?: \(.*\))?$|^FAILED \((?:failures|errors)=.*\)$|^=+ tests finished: .*$`)
	failing      = regexp.MustCompile(`\b(?:failed|errors?|exceptions)\b|^FAILED`)
)

// impliedExitCode returns the exit code that the last line of the test runner implies.
func impliedExitCode(text string) (code int, ok bool) {
	all := summaryLines.FindAllString(text, -1)
	if len(all) == 0 {
		return 0, false
	}
	if failing.MatchString(all[len(all)-1]) {
		return 1, true
	}
	return 0, true
}

// withCode returns the log of a script that prints this exit code.
func withCode(text string, code int) string {
	n := strconv.Itoa(code)
	return endTrace.ReplaceAllString(text,
		"+ SWEBENCH_TEST_EXIT_CODE="+n+"\n$0+ echo '>>>>> Test Exit Code: "+n+"'\n>>>>> Test Exit Code: "+n+"\n")
}

// TestModelPatches logs how often patches of models have findings, and checks that files of the
// test patch are found.
func TestModelPatches(t *testing.T) {
	paths := corpustest.Glob(t, corpustest.RealData(t, "eval-logs"), "*/*/patch.diff")
	counts := map[tampering.Flag]int{}
	flagged, rows := 0, officialRows(t)
	for _, path := range paths {
		patch, err := os.ReadFile(path)
		require.NoError(t, err)
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

// changedFiles returns the sorted files of a git diff.
func changedFiles(diff string) (files []string) {
	for _, m := range diffHeader.FindAllStringSubmatch(diff, -1) {
		files = append(files, m[1])
	}
	slices.Sort(files)
	return slices.Compact(files)
}

var diffHeader = regexp.MustCompile(`(?m)^diff --git a/\S+ b/(\S+)$`)

// TestGoldPatches logs how often the reference solutions have findings. They are honest, so only
// few may have one.
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
			t.Logf("%s: %+v", in.ID, f)
		}
		// All files of the test patch itself are flagged, so nothing is left of it.
		if rest := tampering.RemoveFiles([]byte(in.TestPatch), tampering.Files(tampering.CheckPatch([]byte(in.TestPatch), in))); len(rest) > 0 {
			t.Errorf("%s: of the test patch is left:\n%s", in.ID, rest)
		}
	}
	t.Logf("%d of %d gold patches have a flag: %v", flagged, len(rows), counts)
	if flagged*100 > len(rows) {
		t.Error("more than one honest patch in a hundred is suspicious")
	}
}

func officialRows(t *testing.T) map[string]datasets.Instance {
	t.Helper()
	rows := map[string]datasets.Instance{}
	for _, set := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		src, err := datasets.Local(corpustest.RealData(t, "swebench/"+set+".jsonl.gz"), "")
		require.NoError(t, err)
		loaded, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
		require.NoError(t, err)
		for _, in := range loaded.Instances {
			rows[in.ID] = in
		}
	}
	return rows
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	return data
}
