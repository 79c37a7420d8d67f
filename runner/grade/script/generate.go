package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/specs"
)

// handWritten lists repositories of the tables whose scripts in the official harness
// are hand-written, because their commands depend on the test patch.
var handWritten = []string{
	"Automattic/wp-calypso", "chartjs/Chart.js", "diegomura/react-pdf", "markedjs/marked", "processing/p5.js",
}

// generate returns the evaluation script for a row that has none. The error wraps
// ErrNoScript.
func generate(in datasets.Instance) (string, error) {
	fail := func(reason string) error { return fmt.Errorf("%w: the row has none, and %s", ErrNoScript, reason) }
	if slices.Contains(handWritten, in.Repo) {
		return "", fail("the scripts of " + in.Repo + " are hand-written")
	}
	spec, err := specs.Lookup(in.Repo, in.Version)
	switch {
	case err != nil:
		return "", fail(err.Error())
	case len(spec.Test) == 0:
		return "", fail("the tables have no test command for " + in.Repo)
	case in.BaseCommit == "":
		return "", fail("no base_commit")
	case in.TestPatch == "":
		return "", fail("no test_patch")
	}
	if spec.Language == specs.Python {
		return joinScript(pythonLines(in, spec)), nil
	}
	return joinScript(standardLines(in, spec)), nil
}

const (
	enterRepo = "cd /testbed"
	trustRepo = "git config --global --add safe.directory /testbed" // needed if root does not own the repository
	heredoc   = "EOF_114329324912"                                  // delimiter of the test patch
)

// pythonLines returns the lines of the script for a Python repository. As in the
// official script, the arguments of git checkout include files that the test patch
// adds. git then rejects the whole command and resets no file.
func pythonLines(in datasets.Instance, spec specs.Spec) []string {
	activate := []string{"source /opt/miniconda3/bin/activate", "conda activate testbed"}
	reset := "git checkout " + in.BaseCommit + " " + strings.Join(newNames(in.TestPatch), " ")

	lines := slices.Concat(activate, []string{enterRepo}, spec.EvalCommands, []string{trustRepo, enterRepo}, showState(in), activate)
	if spec.Install != "" {
		lines = append(lines, spec.Install)
	}
	lines = append(lines, reset, applyTestPatch(in))
	if extra := specs.OverrideFor(in.ID).ExtraLine; extra != "" {
		lines = append(lines, extra)
	}
	test := strings.Join(append(slices.Clone(spec.Test), Directives(in.Repo, in.TestPatch)...), " ")
	return append(lines, traceMarker(StartMarker), test, traceMarker(EndMarker), reset)
}

// standardLines returns the lines of the script for a repository in another language
// than Python.
func standardLines(in datasets.Instance, spec specs.Spec) []string {
	changed, added := PatchFiles(in.TestPatch)
	var parts []string
	if len(changed) > 0 {
		parts = append(parts, "git checkout "+in.BaseCommit+" "+strings.Join(changed, " "))
	}
	if len(added) > 0 {
		parts = append(parts, "rm -f "+strings.Join(added, " "))
	}
	reset := `echo "No test files to reset"`
	if len(parts) > 0 {
		reset = strings.Join(parts, " && ")
	}
	lines := slices.Concat([]string{enterRepo, trustRepo}, showState(in), []string{reset, applyTestPatch(in)}, spec.Build)
	test := "(" + strings.Join(spec.Test, " && ") + ")"
	if specs.OverrideFor(in.ID).StreamIsolation {
		lines = append(lines, isolatedTest(test)...)
	} else {
		lines = append(lines, traceMarker(StartMarker), test+" | cat", traceMarker(EndMarker))
	}
	return append(lines, reset)
}

// showState returns commands that print the state of the repository to the log.
func showState(in datasets.Instance) []string {
	return []string{"git status", "git show", "git -c core.fileMode=false diff " + in.BaseCommit}
}

// applyTestPatch returns the command that applies the test patch. A blank line follows
// the patch, which already ends with a newline.
func applyTestPatch(in datasets.Instance) string {
	return "git apply -v - <<'" + heredoc + "'\n" + in.TestPatch + "\n" + heredoc
}

// traceMarker returns a null command with the marker as its argument. Only the shell's
// trace prints the marker.
func traceMarker(marker string) string { return ": '" + marker + "'" }

// isolatedTest returns commands that run the tests with stderr redirected to a file, so
// that it does not mix with the test output. They print the file after the end marker.
func isolatedTest(test string) []string {
	const stderr = "/tmp/swebench_test_stderr.log"
	return []string{
		"{ set +x; } 2>/dev/null",
		"echo '" + StartMarker + "'",
		test + " 2>" + stderr + " | cat",
		"echo '" + EndMarker + "'",
		"cat " + stderr + " >&2 || true",
		"set -x",
	}
}
