// Package script returns the evaluation script of an instance. The script
// resets the test files, applies the test patch and runs the tests, with
// markers around their output. It equals the script of the official SWE-bench
// harness (github.com/SWE-bench/SWE-bench, release 5.0.2) byte for byte. It
// comes from the row, or from the tables of package specs if the row has none.
//
//	s, err := script.For(instance)
//	write(s.Text, "/eval.sh")
package script

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/minibench/mini/datasets"
)

// Markers in the output of the script. The first two are arguments of a command
// without effect: the shell's trace prints them.
const (
	StartMarker    = ">>>>> Start Test Output"
	EndMarker      = ">>>>> End Test Output"
	ExitCodeMarker = ">>>>> Test Exit Code:"
)

// Script is the evaluation script of an instance.
type Script struct {
	// Text is the script. Run it with /bin/bash as root in the working
	// directory of the image.
	Text string
	// Generated reports that the row has no script, so that this one was
	// generated.
	Generated bool
	// Assets lists the files that must be in the container before the script
	// runs. The script copies them into the repository.
	Assets []Asset
}

// SHA256 returns the hash of the text, in lower-case hex.
func (s Script) SHA256() string {
	sum := sha256.Sum256([]byte(s.Text))
	return hex.EncodeToString(sum[:])
}

// ErrNoScript is wrapped by the error for a row without a script for which none
// can be generated. Such an instance can be run but not graded.
var ErrNoScript = errors.New("no evaluation script")

// For returns the script of an instance. The error wraps ErrNoScript, or
// describes an invalid column image_assets.
func For(in datasets.Instance) (Script, error) {
	assets, err := assetsFor(in)
	if err != nil {
		return Script{}, fmt.Errorf("make the evaluation script of %s: %w", in.ID, err)
	}
	text, generated := in.EvalScript, false
	if strip(text) == "" {
		generated = true
		if text, err = generate(in); err != nil {
			return Script{}, fmt.Errorf("make the evaluation script of %s: %w", in.ID, err)
		}
	}
	return Script{Text: withAssets(finishScript(text), assets), Generated: generated, Assets: assets}, nil
}

// preamble is the start of every script. It does not set -e: after a failed
// command, such as an install without network, the tests still run.
var preamble = []string{"#!/bin/bash", "set -uxo pipefail"}

// finishScript turns the script of a row into the one that runs. As in the official
// harness, it deletes lines that equal a line of the preamble everywhere, even
// inside a patch.
func finishScript(text string) string {
	lines := strings.Split(strip(text), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(preamble, line) })
	return scriptOf(recordExitCode(lines))
}

// scriptOf returns the script with these lines.
func scriptOf(lines []string) string {
	return strings.Join(slices.Concat(preamble, lines), "\n") + "\n"
}

// recordExitCode adds commands that print the exit code of the tests: that of
// the command before the first line with the end marker.
func recordExitCode(lines []string) []string {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, EndMarker) })
	if i < 0 {
		return lines
	}
	return slices.Concat(
		lines[:i],
		[]string{"SWEBENCH_TEST_EXIT_CODE=$?", lines[i], `echo "` + ExitCodeMarker + ` $SWEBENCH_TEST_EXIT_CODE"`},
		lines[i+1:],
	)
}

// strip trims what Python considers white space: Unicode white space and U+001C
// to U+001F.
func strip(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}
