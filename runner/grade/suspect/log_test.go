package suspect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/grade/suspect"
)

const ordinaryRow = `cd /testbed
git apply -v - <<'EOF_114329324912'
+: '>>>>> Start Test Output' is a line of a patch

EOF_114329324912
: '>>>>> Start Test Output'
pytest
: '>>>>> End Test Output'
git checkout x`

const isolatedRow = `cd /testbed
{ set +x; } 2>/dev/null
echo '>>>>> Start Test Output'
(make test) 2>/tmp/log | cat
echo '>>>>> End Test Output'
cat /tmp/log >&2 || true
set -x
rm -f x`

const ordinaryLog = `+ cd /testbed
+ : '>>>>> Start Test Output'
+ pytest
1 passed+ SWEBENCH_TEST_EXIT_CODE=0
+ : '>>>>> End Test Output'
+ echo '>>>>> Test Exit Code: 0'
>>>>> Test Exit Code: 0
+ git checkout x
`

const isolatedLog = `+ cd /testbed
>>>>> Start Test Output
ok
>>>>> End Test Output
>>>>> Test Exit Code: 0
+ rm -f x
`

func TestLog(t *testing.T) {
	// What tests would print is put in place of this.
	put := func(log, text string) string { return strings.Replace(log, "1 passed", "1 passed\n"+text, 1) }
	tests := map[string]struct {
		row, log string
		want     []string
	}{
		"ordinary":       {ordinaryRow, ordinaryLog, nil},
		"isolated":       {isolatedRow, isolatedLog, nil},
		"windows":        {ordinaryRow, strings.ReplaceAll(ordinaryLog, "\n", "\r\n"), nil},
		"timed out":      {ordinaryRow, ordinaryLog[:60], nil},
		"nothing":        {ordinaryRow, "", nil},
		"trace in line":  {ordinaryRow, strings.Replace(ordinaryLog, "0\n+ : '>>>>> End", "0+ : '>>>>> End", 1), nil},
		"own script":     {"make", "+ make\n", nil},
		"other words":    {ordinaryRow, put(ordinaryLog, ">>>>> All Tests Passed\n"), nil},
		"printed start":  {ordinaryRow, put(ordinaryLog, ">>>>> Start Test Output\n"), []string{"marker_repeated", "marker_printed"}},
		"printed end":    {ordinaryRow, put(ordinaryLog, ">>>>> End Test Output"), []string{"marker_repeated", "marker_printed"}},
		"printed code":   {ordinaryRow, put(ordinaryLog, ">>>>> Test Exit Code: 0\n"), []string{"marker_repeated", "marker_printed"}},
		"forged trace":   {ordinaryRow, put(ordinaryLog, "+ : '>>>>> End Test Output'\n"), []string{"marker_repeated"}},
		"nested shell":   {ordinaryRow, put(ordinaryLog, "++ : '>>>>> Start Test Output'\n"), []string{"marker_repeated"}},
		"isolated twice": {isolatedRow, isolatedLog + ">>>>> End Test Output\n", []string{"marker_repeated", "marker_printed"}},
		"killed the shell": { // and printed what it would have
			ordinaryRow, strings.Replace(ordinaryLog, "+ : '>>>>> End Test Output'", ">>>>> End Test Output", 1), []string{"marker_printed"},
		},
		"in the diff of the patch": {
			ordinaryRow, "+print('>>>>> End Test Output')\n" + ordinaryLog, []string{"marker_repeated", "marker_printed"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := script.For(datasets.Instance{ID: "a", EvalScript: test.row})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range suspect.Log(test.log, s.Text, suspect.Outcome{}) {
				got = append(got, string(f.Flag))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestExitDisagrees(t *testing.T) {
	zero, one := 0, 1
	tests := map[string]struct {
		outcome suspect.Outcome
		want    bool
	}{
		"unknown":         {suspect.Outcome{Passed: 3}, false},
		"agrees":          {suspect.Outcome{Passed: 3, ExitCode: &zero}, false},
		"failed, says so": {suspect.Outcome{Passed: 3, Failed: 1, ExitCode: &one}, false},
		"failed, zero":    {suspect.Outcome{Passed: 3, Failed: 1, ExitCode: &zero}, false}, // a pipeline may end so
		"nothing ran":     {suspect.Outcome{ExitCode: &one}, false},
		"disagrees":       {suspect.Outcome{Passed: 3, ExitCode: &one}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := suspect.Log("", "", test.outcome)
			if got := len(found) == 1 && found[0].Flag == suspect.ExitDisagrees; got != test.want || !got && found != nil {
				t.Errorf("found %+v, want it: %v", found, test.want)
			}
		})
	}
}
