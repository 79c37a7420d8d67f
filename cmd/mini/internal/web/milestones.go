package web

import (
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories/timeline"
)

// milestone is a point of an attempt that is found by exact text. A milestone that was not found
// has no step: the text does not show it, which does not mean that it did not happen.
type milestone struct {
	Name string
	Step string // name of the step; "" if not seen
	// Hindsight is set if the milestone follows from the gold patch or from the tests, which the
	// agent does not see.
	Hindsight bool
}

// findMilestones finds the milestones of an attempt. The row may be empty.
func findMilestones(t *timeline.Timeline, row datasets.Instance, patch string) []milestone {
	goldFiles, ownFiles := patchFiles(row.Patch), patchFiles(patch)
	functions, tests := testNames(row.FailToPass)
	tests = append(tests, functions...)
	var named, edited, tested, passed, lastEdit, submitted string
	for _, s := range t.Steps {
		name := stepName(s)
		for item := range s.AllItems() {
			switch item.Kind {
			case timeline.Command:
				text := item.Text
				if containsAny(text, goldFiles) {
					setFirst(&named, name)
				}
				if succeeded(item) && writes(text, goldFiles) {
					setFirst(&edited, name)
				}
				if succeeded(item) && writes(text, ownFiles) {
					lastEdit = name
				}
				if containsAny(text, tests) {
					setFirst(&tested, name)
				}
				if containsAny(text, agent.SubmitMarkers) {
					submitted = name
				}
			case timeline.Output:
				if tested != "" && passes(item.Text, functions) {
					setFirst(&passed, name)
				}
			}
		}
	}
	var all []milestone
	if len(goldFiles) > 0 {
		all = append(all, milestone{"gold file named", named, true}, milestone{"gold file edited", edited, true})
	}
	if len(tests) > 0 {
		all = append(all, milestone{"target test run", tested, true}, milestone{"target test passed", passed, true})
	}
	return append(all, milestone{"last edit", lastEdit, false}, milestone{"submitted", submitted, false})
}

func setFirst(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// patchFiles returns the names of the files that a patch changes.
func patchFiles(patch string) []string {
	var files []string
	for line := range strings.SplitSeq(patch, "\n") {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			files = append(files, strings.TrimRight(name, "\t\r"))
		} else if name, ok := strings.CutPrefix(line, "--- a/"); ok {
			files = append(files, strings.TrimRight(name, "\t\r"))
		}
	}
	return files
}

// testNames returns the parts of test names that a command would name: the function and the file of
// "tests/test_a.py::TestX::test_y[1]", the function of "test_y (a.TestX)".
func testNames(tests []string) (functions, files []string) {
	const shortest = 4 // characters; shorter names are found anywhere
	for _, t := range tests {
		name := t
		if i := strings.LastIndex(name, "::"); i >= 0 {
			name = name[i+2:]
		}
		name, _, _ = strings.Cut(name, " (")
		name, _, _ = strings.Cut(name, "[")
		if len(name) >= shortest {
			functions = append(functions, name)
		}
		if file, _, ok := strings.Cut(t, "::"); ok && len(file) >= shortest {
			files = append(files, file)
		}
	}
	return functions, files
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// passes reports whether a line names a test and says that it passed.
func passes(output string, tests []string) bool {
	for line := range strings.SplitSeq(output, "\n") {
		if (strings.Contains(line, "PASSED") || strings.HasSuffix(strings.TrimSpace(line), "ok")) && containsAny(line, tests) {
			return true
		}
	}
	return false
}

// succeeded reports whether a command has exited with 0.
func succeeded(command *timeline.Item) bool {
	return command.Execution != nil && !command.Execution.HasFailed()
}

// editors are parts of commands that change the files that they name.
var editors = []string{
	"sed -i", "perl -pi", "patch ", "git apply", "write_text", "open(", "mini-tool edit", "mini-tool write", "tee ",
}

// writes reports whether a command names one of the files and changes it, by the ways in which
// agents do: an editor, or a redirection into the file.
func writes(command string, files []string) bool {
	if containsAny(command, editors) && containsAny(command, files) {
		return true
	}
	for _, f := range files {
		if containsAny(command, []string{"> " + f, ">" + f, "> '" + f, "> \"" + f}) {
			return true
		}
	}
	return false
}
