package grade_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

func TestGradable(t *testing.T) {
	tests := []string{"t::a"}
	for name, tt := range map[string]struct {
		row  datasets.Instance
		want string // of the error; "" for none
	}{
		"complete":              {datasets.Instance{LogParser: "parse_log_pytest", EvalType: "fail_only", FailToPass: tests}, ""},
		"of the tables":         {datasets.Instance{Repo: "django/django", PassToPass: tests}, ""},
		"no tests":              {datasets.Instance{Repo: "django/django"}, "are empty"},
		"unknown repository":    {datasets.Instance{Repo: "a/b", FailToPass: tests}, `no log_parser, and SWE-bench has none for the repository "a/b"`},
		"unknown parser":        {datasets.Instance{Repo: "django/django", LogParser: "parse_log_nope", FailToPass: tests}, `unknown log parser "parse_log_nope"`},
		"no type":               {datasets.Instance{Repo: "a/b", LogParser: "parse_log_pytest", FailToPass: tests}, "no eval_type"},
		"another type":          {datasets.Instance{LogParser: "parse_log_pytest", EvalType: "all", FailToPass: tests}, `not "all"`},
		"of SWE-smith":          {datasets.Instance{Repo: "swesmith/a__b.1", FailToPass: tests}, "SWE-smith"},
		"of SWE-rebench":        {rebench(`{"log_parser":"parse_log_pytest"}`), "SWE-rebench"},
		"of SWE-rebench, text":  {rebench(`"{\"log_parser\":\"parse_log_pytest\"}"`), "SWE-rebench"},
		"a column of that name": {rebench(`null`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.row.ID = "a__b-1"
			_, err := grade.NewTestSpec(tt.row)
			if tt.want == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tt.want != "" && (!errors.Is(err, grade.ErrNotGradable) || !strings.Contains(err.Error(), tt.want) ||
				!strings.HasPrefix(err.Error(), "a__b-1 cannot be graded: ")) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// rebench is a row of SWE-rebench, which names its parser in another column. Its repository is
// in the tables of SWE-bench.
func rebench(config string) datasets.Instance {
	return datasets.Instance{
		Repo: "pydata/xarray", FailToPass: []string{"t::a"},
		Row: map[string]json.RawMessage{"install_config": json.RawMessage(config)},
	}
}

func TestNewTestSpec(t *testing.T) {
	r, err := grade.NewTestSpec(datasets.Instance{
		ID: "django__django-1", Repo: "django/django", Version: "3.0", FailToPass: []string{"a "}, PassToPass: []string{"b", "b"},
	})
	require.NoError(t, err)
	if r.Parser != "parse_log_django" || r.EvalType != grade.PassAndFail || r.Version != "3.0" ||
		r.FailToPass[0] != "a " || len(r.PassToPass) != 2 {
		t.Errorf("rubric %+v", r)
	}
}

// The names of models, runs and instances are untrusted.
func TestHostileNames(t *testing.T) {
	good, err := grade.NewLayout("out", "first")
	require.NoError(t, err)
	for name, tt := range map[string]struct{ text, want string }{
		"empty":     {"", "is empty"},
		"here":      {".", "is a path element"},
		"up":        {"..", "is a path element"},
		"backslash": {`a\b`, "contains a slash"},
		"long":      {strings.Repeat("x", 256), "longer than 255 bytes"},
		"not UTF-8": {"a\xffb", "is not valid UTF-8"},
		"NUL":       {"a\x00b", "contains a control character"},
		"escape":    {"a\x1b[2Jb", "contains a control character"},
	} {
		t.Run(name, func(t *testing.T) {
			_, run := grade.NewLayout("out", tt.text)
			_, model := good.Files(tt.text, "a")
			_, instance := good.Files("m", tt.text)
			_, summary := good.SummaryName(tt.text)
			for _, err := range []error{run, model, instance, summary} {
				if !errors.Is(err, grade.ErrInvalidName) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
		})
	}
	_, err = grade.NewLayout("out", "a/b")
	assert.ErrorIs(t, err, grade.ErrInvalidName, "a run id with a slash")
	for _, model := range []string{"../../x", "/etc", "a//b", "./.."} { // valid, because slashes are replaced
		files, err := good.Files(model, "a")
		if err != nil || !strings.HasPrefix(files.Dir, good.Dir()+string(filepath.Separator)) {
			t.Errorf("model %q leads to %s, error %v", model, files.Dir, err)
		}
	}
	_, err = good.SummaryName(strings.Repeat("x", 250))
	assert.ErrorIs(t, err, grade.ErrInvalidName, "a summary's name of 261 bytes")
}

// readText reads a log as the harness does. The error is logs.ErrNotUTF8.
func readText(t testing.TB, path string) (string, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		corpustest.SkipOrFail(t, "the corpus lacks %s", path)
	}
	require.NoError(t, err)
	return logs.Decode(data)
}

// indented returns JSON as Python writes it: in ASCII, indented by four spaces.
func indented(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, raw, "", "    "))
	var s strings.Builder
	for _, r := range b.String() {
		switch {
		case r < 0x7f: // 0x7f is a control character
			s.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&s, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&s, `\u%04x`, r)
		}
	}
	return s.String()
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, raw))
	return b.String()
}
