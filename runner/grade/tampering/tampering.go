// Package tampering detects possible cheating: parts of a model's patch, or of
// its evaluation log, that may make tests pass without solving the problem. A
// finding is not a verdict: correct patches change such files too. RemoveFiles
// returns the patch without the flagged files, for a second evaluation.
//
//	found := tampering.CheckPatch(patch, instance)
//	rest := tampering.RemoveFiles(patch, tampering.Files(found))
package tampering

import (
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade/script"
)

// Flag is a kind of finding.
type Flag string

// The flags of patches.
const (
	// TestFile is a file that the test patch changes too. The evaluation
	// restores existing files, but not always new ones.
	TestFile Flag = "test_file"
	// TestSetup is code that a test runner loads before the tests, such as
	// conftest.py, or the test runner itself if it is part of the repository.
	TestSetup Flag = "test_setup"
	// TestConfig is the configuration of test runners: pytest.ini, tox.ini, the
	// pytest sections of setup.cfg and pyproject.toml, and files for other
	// languages.
	TestConfig Flag = "test_config"
	// SetupScript is setup.py, which the evaluation runs as root to install the
	// repository, and build.rs, which cargo runs.
	SetupScript Flag = "setup_script"
	// CIConfig is the configuration of a CI service.
	CIConfig Flag = "ci"
	// GitHook is a file that git may run, or any file in .git.
	GitHook Flag = "git_hook"
	// StartupHook is code that Python runs at startup: sitecustomize,
	// usercustomize and .pth files.
	StartupHook Flag = "startup_hook"
	// ShadowsRunner is a top-level module with the name of a test runner, which
	// Python may import instead.
	ShadowsRunner Flag = "shadows_runner"
	// OutsideRepository is a path outside the repository.
	OutsideRepository Flag = "outside_repository"
)

// The flags of logs.
const (
	// MarkerRepeated reports that a marker is in the log more often than the
	// script prints it.
	MarkerRepeated Flag = "marker_repeated"
	// MarkerPrinted reports a marker that the shell's trace of the script did
	// not print.
	MarkerPrinted Flag = "marker_printed"
	// ExitDisagrees reports that the test results in the log contradict the
	// exit code of the tests, or that the exit code is ambiguous or missing.
	ExitDisagrees Flag = "exit_code_disagrees"
)

// Flags returns all flags: first those of patches, then those of logs.
func Flags() []Flag {
	return []Flag{
		TestFile, TestSetup, TestConfig, SetupScript, CIConfig, GitHook, StartupHook, ShadowsRunner, OutsideRepository,
		MarkerRepeated, MarkerPrinted, ExitDisagrees,
	}
}

// Finding is a flag on a file or a log.
type Finding struct {
	Flag Flag `json:"flag"`
	// File is the path in the repository; empty for a log.
	File string `json:"file,omitempty"`
	// Detail explains the flag; may be empty.
	Detail string `json:"detail,omitempty"`
}

// CheckPatch returns the findings on a model's patch, in the order of the
// patch. A file may have several. The patch may be malformed.
func CheckPatch(patch []byte, in datasets.Instance) []Finding {
	tests := map[string]bool{}
	for _, s := range sections([]byte(in.TestPatch)) {
		for _, name := range s.names {
			tests[name] = true
		}
	}
	var found []Finding
	seen := map[Finding]bool{}
	add := func(flag Flag, file, detail string) {
		if f := (Finding{Flag: flag, File: file}); !seen[f] {
			seen[f] = true
			f.Detail = detail
			found = append(found, f)
		}
	}
	used := testCommandFiles(in)
	for _, s := range sections(patch) {
		for _, name := range s.names {
			if tests[name] {
				add(TestFile, name, "the test patch changes it too")
			} else if used[name] {
				add(TestSetup, name, "the test command uses it")
			}
			for _, r := range rules {
				if r.flag == ShadowsRunner && in.Repo == pytestRepo {
					continue
				}
				if r.applies(name, s) {
					add(r.flag, name, r.why)
				}
			}
		}
	}
	return found
}

// pytestRepo is the repository of pytest, whose own modules have the names of
// the test runner.
const pytestRepo = "pytest-dev/pytest"

// testCommandFiles returns the files that the test commands name, such as
// tests/runtests.py, if there is a script for the instance.
func testCommandFiles(in datasets.Instance) map[string]bool {
	s, err := script.For(in)
	if err != nil {
		return nil // such an instance is not evaluated
	}
	files := map[string]bool{}
	for _, command := range testCommands(s.Text) {
		for _, word := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t();|&<>\"'`=", r) }) {
			files[path.Clean(word)] = true
		}
	}
	return files
}

// Files returns the distinct files of findings, in order.
func Files(found []Finding) []string {
	var files []string
	for _, f := range found {
		if f.File != "" && !slices.Contains(files, f.File) {
			files = append(files, f.File)
		}
	}
	return files
}

// RemoveFiles returns the patch without the sections about these files, as
// named by CheckPatch. A renamed file is removed by its old or its new name.
// The result is nil if no section with a file is left.
func RemoveFiles(patch []byte, files []string) []byte {
	drop := make(map[string]bool, len(files))
	for _, f := range files {
		drop[f] = true
	}
	rest := make([]byte, 0, len(patch))
	dropped, named := false, false
	for _, s := range sections(patch) {
		if slices.ContainsFunc(s.names, func(name string) bool { return drop[name] }) {
			dropped = true
			continue
		}
		named = named || len(s.names) > 0
		rest = append(rest, s.text...)
	}
	if dropped && !named {
		return nil
	}
	return rest
}
