package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/specs"
)

// byHand are repositories that the tables know, and for which the official
// harness writes scripts one by one: their commands depend on the test patch in
// ways that no table says.
var byHand = []string{
	"Automattic/wp-calypso", "chartjs/Chart.js", "diegomura/react-pdf", "markedjs/marked", "processing/p5.js",
}

// generate makes the script that a row would have brought.
func generate(in datasets.Instance) (string, error) {
	no := func(why string) error { return fmt.Errorf("%w: the row has none, and %s", ErrNoScript, why) }
	if slices.Contains(byHand, in.Repo) {
		return "", no("those of " + in.Repo + " are written by hand")
	}
	spec, err := specs.For(in.Repo, in.Version)
	switch {
	case err != nil:
		return "", no(err.Error())
	case len(spec.Test) == 0:
		return "", no("the tables have no command for the tests of " + in.Repo)
	case in.BaseCommit == "":
		return "", no("no base_commit to make one from")
	case in.TestPatch == "":
		return "", no("no test_patch to make one from")
	}
	if spec.Language == specs.Python {
		return joined(python(in, spec)), nil
	}
	files, err := Files(in.TestPatch)
	if err != nil {
		return "", no("its test_patch cannot be read: " + err.Error())
	}
	return joined(common(in, spec, files)), nil
}

const (
	enter   = "cd /testbed"
	trust   = "git config --global --add safe.directory /testbed" // whoever owns it
	heredoc = "EOF_114329324912"                                  // ends the test patch
)

// python is the script of a Python repository. It lists new files for checkout
// too; git then refuses the whole command and resets nothing, which is how the
// official script behaves.
func python(in datasets.Instance, spec specs.Spec) []string {
	activate := []string{"source /opt/miniconda3/bin/activate", "conda activate testbed"}
	reset := "git checkout " + in.BaseCommit + " " + strings.Join(newNames(in.TestPatch), " ")

	lines := slices.Concat(activate, []string{enter}, spec.EvalCommands, []string{trust, enter}, look(in), activate)
	if spec.Install != "" {
		lines = append(lines, spec.Install)
	}
	lines = append(lines, reset, apply(in))
	if extra := specs.OverrideFor(in.ID).ExtraLine; extra != "" {
		lines = append(lines, extra)
	}
	test := strings.Join(append(slices.Clone(spec.Test), Directives(in.Repo, in.TestPatch)...), " ")
	return append(lines, quietly(Start), test, quietly(End), reset)
}

// common is the script of a repository in any other language.
func common(in datasets.Instance, spec specs.Spec, files []File) []string {
	var changed, added []string
	for _, f := range files {
		if f.Old == devNull {
			added = append(added, f.Path())
		} else if name, ok := strings.CutPrefix(f.Old, "a/"); ok {
			changed = append(changed, name)
		}
	}
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
	lines := slices.Concat([]string{enter, trust}, look(in), []string{reset, apply(in)}, spec.Build)
	test := "(" + strings.Join(spec.Test, " && ") + ")"
	if specs.OverrideFor(in.ID).StreamIsolation {
		lines = append(lines, isolated(test)...)
	} else {
		lines = append(lines, quietly(Start), test+" | cat", quietly(End))
	}
	return append(lines, reset)
}

// look shows the state of the repository in the log.
func look(in datasets.Instance) []string {
	return []string{"git status", "git show", "git -c core.fileMode=false diff " + in.BaseCommit}
}

// apply brings the tests. The patch ends with a newline of its own, so that a
// blank line follows it.
func apply(in datasets.Instance) string {
	return "git apply -v - <<'" + heredoc + "'\n" + in.TestPatch + "\n" + heredoc
}

// quietly is a command that does nothing; its trace leaves the marker.
func quietly(marker string) string { return ": '" + marker + "'" }

// isolated runs the tests with stderr, and the shell's trace with it, kept out
// of what stands between the markers.
func isolated(test string) []string {
	const stderr = "/tmp/swebench_test_stderr.log"
	return []string{
		"{ set +x; } 2>/dev/null",
		"echo '" + Start + "'",
		test + " 2>" + stderr + " | cat",
		"echo '" + End + "'",
		"cat " + stderr + " >&2 || true",
		"set -x",
	}
}
