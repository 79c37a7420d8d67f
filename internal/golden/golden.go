// Package golden compares results of tests with golden files, which the flag -update rewrites.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Update reports whether golden files are to be rewritten.
func Update() bool { return *update }

// Check compares a result with the golden file at path.
func Check[T string | []byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

// Cases compares the results of the cases of a file. A case is "## " and its name, the lines
// of its input, and "=> " with its result, which -update rewrites; a blank line ends it.
func Cases(t *testing.T, path string, result func(t *testing.T, input string) string) {
	t.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(strings.TrimPrefix(strings.TrimSpace(string(data)), "## "), "\n\n## ")
	for i, c := range cases {
		name, rest, _ := strings.Cut(c, "\n")
		input, want, _ := strings.Cut(rest, "=> ")
		t.Run(name, func(t *testing.T) {
			got := strings.TrimSpace(result(t, input))
			cases[i] = name + "\n" + input + "=> " + got
			if got != want && !*update {
				t.Errorf("%s: %s\n got: %s\nwant: %s", path, name, got, want)
			}
		})
	}
	Check(t, path, "## "+strings.Join(cases, "\n\n## ")+"\n")
}
