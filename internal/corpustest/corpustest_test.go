package corpustest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
)

func TestNamedCorpus(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "parsers", "parse_log_jq"), 0o700))
	t.Setenv(corpustest.DirVariable, dir)
	t.Setenv(corpustest.RequiredVariable, "")
	assert.Equal(t, dir, corpustest.Dir(t), "the corpus")
	if got, want := corpustest.Subdir(t, "parsers/parse_log_jq"), filepath.Join(dir, "parsers", "parse_log_jq"); got != want {
		t.Errorf("the part is %s, want %s", got, want)
	}
	var skipped bool
	t.Run("missing part", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		corpustest.Subdir(t, "grading")
	})
	if !skipped {
		t.Error("a missing part did not skip the test")
	}
}

// recordingTB records how a test was ended.
type recordingTB struct {
	testing.TB
	result string
}

func (r *recordingTB) Helper() {}
func (r *recordingTB) Skipf(format string, args ...any) {
	r.result += "skipped: " + fmt.Sprintf(format, args...)
}

func (r *recordingTB) Fatalf(format string, args ...any) {
	r.result += "failed: " + fmt.Sprintf(format, args...)
}

// With MINI_REQUIRE_CORPUS=1, missing data fails the test.
func TestRequired(t *testing.T) {
	dir := t.TempDir()
	for value, want := range map[string]string{
		"":  "skipped: nothing in " + dir + " matches *.log",
		"1": "failed: nothing in " + dir + " matches *.log (MINI_REQUIRE_CORPUS=1)",
	} {
		t.Setenv(corpustest.RequiredVariable, value)
		test := &recordingTB{TB: t}
		if corpustest.Glob(test, dir, "*.log"); test.result != want {
			t.Errorf("with %q: %s, want %s", value, test.result, want)
		}
	}
}
