// Package script makes the script that evaluates an instance: it resets the
// files of the tests, applies the test patch and runs the tests, with markers
// around what they print. The text is to the byte what the official SWE-bench
// harness runs (github.com/SWE-bench/SWE-bench, release 5.0.2). It comes from
// the row, or for a row without one from the tables of package specs.
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

// The markers that the script leaves in its log. The first two are arguments
// of a command that does nothing: only the shell's own trace shows them.
const (
	Start    = ">>>>> Start Test Output"
	End      = ">>>>> End Test Output"
	ExitCode = ">>>>> Test Exit Code:"
)

// Script evaluates one instance.
type Script struct {
	// Text is the whole script, for /bin/bash to run as root in the folder of
	// the image.
	Text string
	// Generated says that the row had no script, and that the tables gave this
	// one.
	Generated bool
	// Assets are files that have to be in the container before the script
	// runs. It copies them from there into the repository.
	Assets []Asset
}

// SHA256 names the text, in lower-case hexadecimal.
func (s Script) SHA256() string {
	sum := sha256.Sum256([]byte(s.Text))
	return hex.EncodeToString(sum[:])
}

// ErrNoScript is wrapped when a row brings no script and the tables cannot
// give one; the text says why. Such an instance can be run and not graded.
var ErrNoScript = errors.New("there is no evaluation script")

// For makes the script of an instance. The error wraps ErrNoScript, or says
// what is wrong with the row's image_assets.
func For(in datasets.Instance) (Script, error) {
	assets, err := assetsOf(in)
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
	return Script{Text: withAssets(finish(text), assets), Generated: generated, Assets: assets}, nil
}

// preamble begins every script. There is no -e in it: a command that fails,
// such as an install without a network, does not keep the tests from running.
var preamble = []string{"#!/bin/bash", "set -uxo pipefail"}

// finish makes of a row's script what runs. Lines that equal one of the
// preamble go wherever they stand, even inside a patch: the official harness
// does so.
func finish(text string) string {
	lines := strings.Split(strip(text), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(preamble, line) })
	return joined(recordExitCode(lines))
}

// joined is a script of these lines.
func joined(lines []string) string {
	return strings.Join(slices.Concat(preamble, lines), "\n") + "\n"
}

// recordExitCode lets the script print what the tests exited with: what was
// run just before the first line with the end marker.
func recordExitCode(lines []string) []string {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, End) })
	if i < 0 {
		return lines
	}
	return slices.Concat(
		lines[:i],
		[]string{"SWEBENCH_TEST_EXIT_CODE=$?", lines[i], `echo "` + ExitCode + ` $SWEBENCH_TEST_EXIT_CODE"`},
		lines[i+1:],
	)
}

// strip removes what Python takes for white space at both ends: what Unicode
// does, and four separators of ASCII.
func strip(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}
