package corpustest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
)

func TestNamedCorpus(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "parsers", "parse_log_jq"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(corpustest.DirVariable, dir)
	t.Setenv(corpustest.RequiredVariable, "")
	if got := corpustest.Dir(t); got != dir {
		t.Errorf("the corpus is %s, want %s", got, dir)
	}
	if got, want := corpustest.Subdir(t, "parsers/parse_log_jq"), filepath.Join(dir, "parsers", "parse_log_jq"); got != want {
		t.Errorf("the part is %s, want %s", got, want)
	}
	var skipped bool
	t.Run("missing part", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		corpustest.Subdir(t, "grading")
	})
	if !skipped {
		t.Error("a part that is missing did not skip the test")
	}
}

// ended says how a test ended that Lacks was called in.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper() {}
func (e *ended) Skipf(format string, args ...any) {
	e.how += "skipped: " + fmt.Sprintf(format, args...)
}

func (e *ended) Fatalf(format string, args ...any) {
	e.how += "failed: " + fmt.Sprintf(format, args...)
}

// A machine that has to have the corpus does not pass without it.
func TestRequired(t *testing.T) {
	dir := t.TempDir()
	for value, want := range map[string]string{
		"":  "skipped: nothing in " + dir + " matches *.log",
		"1": "failed: nothing in " + dir + " matches *.log (MINI_REQUIRE_CORPUS=1)",
	} {
		t.Setenv(corpustest.RequiredVariable, value)
		test := &ended{TB: t}
		if corpustest.Glob(test, dir, "*.log"); test.how != want {
			t.Errorf("with %q: %s, want %s", value, test.how, want)
		}
	}
}
