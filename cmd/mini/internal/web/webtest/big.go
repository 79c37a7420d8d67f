package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// stepOutput is the output of a step: with the reply and the command, a step has about the 4.3 KB
// of text of real trajectories.
var stepOutput = strings.Repeat("    def method(self, argument):  # a line of <source> & more\n", 60)

const bigPatch = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+attempt %d\n"

// BigID returns the id of the i-th instance of BigRun, from 0.
func BigID(i int) string { return fmt.Sprintf("owner%d__project-%d", i%12, 1000+i) }

// BigRun writes a run folder with attempts of the given number of steps of 4.3 KB of text, and
// verdicts. Of ten instances, eight have submissions, one reached a limit and one failed. The
// attempts of instances with the same outcome share their files by hard links.
func BigRun(tb testing.TB, dir string, instances, attempts, steps int) {
	tb.Helper()
	r := create(tb, dir, modelName, instances, attempts)
	classes := []trajectories.Class{trajectories.Submitted, trajectories.Limit, trajectories.Provider}
	for kind := range min(len(classes), instances) {
		for n := 1; n <= attempts; n++ {
			r.add(BigID(kind), bigJournal(tb, classes[kind], n, steps))
		}
	}
	for i := range instances {
		kind := i
		if i >= len(classes) {
			kind = []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 2}[i%10]
			r.link(BigID(kind), BigID(i), attempts)
		}
		for n := 1; n <= attempts && classes[kind].IsResult(); n++ {
			v := verdict{id: BigID(i), patch: fmt.Sprintf(bigPatch, n), class: verdicts.Resolved}
			if n > 1 {
				v.repetition = n
			}
			if (i+n)%3 == 0 {
				v.class, v.reason = verdicts.Unresolved, "2 of 14 tests failed"
			}
			if v.class == verdicts.Unresolved && i < 20 { // all would take long
				v.log = strings.Repeat("PASSED test_x\n", 200) + "FAILED test_a\n"
				v.failed = grade.TestsStatus{
					FailToPass: grade.TestResults{Failure: []string{"test_a"}}, PassToPass: grade.TestResults{Failure: []string{"test_b"}},
				}
			}
			r.addVerdict(v)
		}
	}
	r.open() // reads the linked attempts
	r.close()
}

func bigJournal(tb testing.TB, class trajectories.Class, attempt, steps int) *journal {
	tb.Helper()
	j := newJournal(tb, modelName)
	j.prompts("You are a helpful assistant.", strings.Repeat("Fix the bug. ", 100))
	for n := 1; n <= steps; n++ {
		j.step(fmt.Sprintf("THOUGHT: step %d of attempt %d. I look at the `source`.\n", n, attempt)+strings.Repeat("I think about it. ", 20),
			fmt.Sprintf("sed -n '%d,%dp' src/module.py", n, n+60), stepOutput)
	}
	switch class {
	case trajectories.Submitted:
		j.end(class, "Submitted", fmt.Sprintf(bigPatch, attempt))
	case trajectories.Limit:
		j.end(class, "LimitsExceeded", fmt.Sprintf(bigPatch, attempt))
	default:
		j.end(class, "RateLimited", "", func(o *trajectories.Outcome) { o.Error = "query model: 429 Too Many Requests" })
	}
	return j
}

// link makes the files of one instance those of another too.
func (r *runFolder) link(from, to string, attempts int) {
	r.tb.Helper()
	oldPath := filepath.Join(r.dir, from, from+".traj.json")
	r.check(os.MkdirAll(filepath.Join(r.dir, to), 0o750))
	r.check(os.Link(oldPath, filepath.Join(r.dir, to, to+".traj.json")))
	for n := 1; n <= attempts; n++ {
		name := filepath.Join("attempts", strconv.Itoa(n), "journal.jsonl")
		r.check(os.MkdirAll(filepath.Join(r.dir, to, filepath.Dir(name)), 0o750))
		r.check(os.Link(filepath.Join(r.dir, from, name), filepath.Join(r.dir, to, name)))
	}
}

// The instance of LongAttempt, its steps, and a word that only one of them has.
const (
	LongID    = "owner__long-1"
	LongSteps = 5000
	RareStep  = 4990
	RareWord  = "floccinaucinihilipilification"
)

// LongAttempt writes a run folder with one attempt of LongSteps steps.
func LongAttempt(tb testing.TB, dir string) {
	tb.Helper()
	r := create(tb, dir, modelName, 1, 1)
	j := newJournal(tb, modelName)
	j.prompts("You are a helpful assistant.", "Fix the bug.")
	for n := 1; n <= LongSteps; n++ {
		output := stepOutput
		if n == RareStep {
			output += RareWord + "\n"
		}
		j.step(fmt.Sprintf("THOUGHT: this is step %d.", n), fmt.Sprintf("sed -n '%d,%dp' src/module.py", n, n+60), output)
	}
	j.end(trajectories.Submitted, "Submitted", fmt.Sprintf(bigPatch, 1))
	r.add(LongID, j)
	r.close()
}
