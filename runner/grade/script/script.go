// Package script returns the evaluation script of an instance. The script resets the
// test files, applies the test patch and runs the tests, with markers around their
// output. It equals the script of the official SWE-bench harness
// (github.com/SWE-bench/SWE-bench, release 5.0.2) byte for byte. If the row has no
// script, the package generates it from the tables of package specs.
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

// Markers in the output of the script. Usually the shell's trace prints the first two
// (see traceMarker).
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
	// Generated reports whether the script was generated because the row has none.
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

// ErrNoScript reports a row that has no script and for which none can be generated.
// The agent can work on such an instance, but its patch cannot be evaluated.
var ErrNoScript = errors.New("no evaluation script")

// For returns the script of an instance. The error wraps ErrNoScript, unless the column
// image_assets is invalid.
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

// preamble is the start of every script. It does not set -e, so that the tests run even
// if an earlier command fails, such as an installation without network.
var preamble = []string{"#!/bin/bash", "set -uxo pipefail"}

// finishScript adds the preamble to a script and records the exit code of the tests. As
// in the official harness, it deletes all lines that equal a line of the preamble, even
// inside a patch.
func finishScript(text string) string {
	lines := strings.Split(strip(text), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(preamble, line) })
	return joinScript(recordExitCode(lines))
}

// joinScript returns the preamble followed by lines, as one text.
func joinScript(lines []string) string {
	return strings.Join(slices.Concat(preamble, lines), "\n") + "\n"
}

// recordExitCode adds commands that print the exit code of the tests. This is the exit
// code of the command before the first line with the end marker.
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

// strip trims white space as Python does: Unicode white space and U+001C to U+001F.
func strip(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}
