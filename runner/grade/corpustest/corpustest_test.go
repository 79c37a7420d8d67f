package corpustest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/runner/grade/corpustest"
)

func TestNamedCorpus(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "parsers", "parse_log_jq"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(corpustest.Variable, dir)
	if got := corpustest.Dir(t); got != dir {
		t.Errorf("the corpus is %s, want %s", got, dir)
	}
	if got, want := corpustest.Part(t, "parsers/parse_log_jq"), filepath.Join(dir, "parsers", "parse_log_jq"); got != want {
		t.Errorf("the part is %s, want %s", got, want)
	}
	var skipped bool
	t.Run("missing part", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		corpustest.Part(t, "grading")
	})
	if !skipped {
		t.Error("a part that is missing did not skip the test")
	}
}
