package grade_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// corpusCase is a case of the grading part of the corpus. The input of a case is either
// a map of statuses (status_map) or a log.
type corpusCase struct {
	Kind       string   `json:"kind"`
	InstanceID string   `json:"instance_id"`
	Version    string   `json:"version"`
	Parser     string   `json:"log_parser"`
	EvalType   string   `json:"eval_type"`
	FailToPass []string `json:"FAIL_TO_PASS"`
	PassToPass []string `json:"PASS_TO_PASS"`

	Statuses [][2]string `json:"status_entries"` // of the kind status_map

	Log   string  `json:"log"` // path
	Patch *string `json:"model_patch"`

	Expected struct {
		// of the kind status_map
		Tests      json.RawMessage `json:"tests_status"`
		F2P        float64         `json:"f2p"`
		P2P        float64         `json:"p2p"`
		Resolution string          `json:"resolution"`
		Resolved   bool            `json:"resolved"`
		// of the kind log
		Raises   *string         `json:"raises"`
		Found    bool            `json:"found"`
		Statuses [][2]string     `json:"status_entries"`
		ExitCode *json.Number    `json:"exit_code"`
		Report   json.RawMessage `json:"report"`
	} `json:"expected"`
}

func (c corpusCase) spec() grade.TestSpec {
	return grade.TestSpec{
		InstanceID: c.InstanceID, Version: c.Version, Parser: c.Parser, EvalType: grade.EvalType(c.EvalType),
		FailToPass: c.FailToPass, PassToPass: c.PassToPass,
	}
}

// exitCode returns the expected exit code, clamped to int64 because Python's integers are
// unlimited.
func (c corpusCase) exitCode() *int64 {
	if c.Expected.ExitCode == nil {
		return nil
	}
	n, _ := strconv.ParseInt(c.Expected.ExitCode.String(), 10, 64) // an out-of-range number is clamped
	return new(max(n, -math.MaxInt64))
}

func TestCorpusStatuses(t *testing.T) {
	eachCase(t, "status_map", func(t *testing.T, _ string, c corpusCase) {
		var tests logs.Tests
		for _, e := range c.Statuses {
			tests.Set(e[0], logs.Status(e[1]))
		}
		got := c.spec().CompareTests(&tests)
		if f2p, p2p := got.FailToPass.SuccessRate(), got.PassToPass.SuccessRate(); f2p != c.Expected.F2P || p2p != c.Expected.P2P {
			t.Errorf("rates %v and %v, want %v and %v", f2p, p2p, c.Expected.F2P, c.Expected.P2P)
		}
		if string(got.Resolution()) != c.Expected.Resolution || (got.Resolution() == grade.ResolvedFull) != c.Expected.Resolved {
			t.Errorf("resolution %s, want %s", got.Resolution(), c.Expected.Resolution)
		}
		report := grade.Report{Tests: &got}.JSON("x")
		var as map[string]struct {
			Tests json.RawMessage `json:"tests_status"`
		}
		require.NoError(t, json.Unmarshal(report, &as))
		assert.Equal(t, compact(t, c.Expected.Tests), compact(t, as["x"].Tests), "tests")
	})
}

func TestCorpusLogs(t *testing.T) {
	eachCase(t, "log", func(t *testing.T, dir string, c corpusCase) {
		if c.Expected.Raises == nil && c.Patch == nil {
			sameReport(t, c, c.spec().GradeEmptyPatch())
			return // the log is not read
		}
		text, err := readText(t, filepath.Join(dir, filepath.FromSlash(c.Log)))
		if c.Expected.Raises != nil {
			if errors.Is(err, logs.ErrNotUTF8) {
				return
			}
			v, err := c.spec().Grade(text)
			if _, crashed := errors.AsType[*logs.CrashError](err); !crashed &&
				!errors.Is(err, logs.ErrUnknownParser) && !errors.Is(err, grade.ErrNotGradable) {
				t.Errorf("error %v and verdict %+v, want %s", err, v, *c.Expected.Raises)
			}
			return
		}
		require.NoError(t, err)
		log, err := grade.ReadLog(text, c.Parser, logs.InstanceInfo{InstanceID: c.InstanceID, Version: c.Version})
		require.NoError(t, err)
		assert.Equal(t, c.Expected.Found, log.HasResults, "found")
		var statuses [][2]string
		for name, status := range log.Tests.All() {
			statuses = append(statuses, [2]string{name, string(status)})
		}
		if !slices.Equal(statuses, c.Expected.Statuses) {
			t.Errorf("statuses (-want +got):\n%s", cmp.Diff(c.Expected.Statuses, statuses))
		}
		assert.Equal(t, c.exitCode(), log.ExitCode, "exit code")
		v, err := c.spec().Grade(text)
		require.NoError(t, err)
		sameReport(t, c, v)
	})
}

// sameReport compares the reports as text, because order and white space count too.
func sameReport(t *testing.T, c corpusCase, v grade.Verdict) {
	t.Helper()
	assert.Equal(t, indented(t, c.Expected.Report), string(v.Report.JSON(c.InstanceID)), "report")
}

// TestCorpusSummary writes the files of a run and summarizes them.
func TestCorpusSummary(t *testing.T) {
	dir := filepath.Join(corpustest.Subdir(t, "grading"), "run_summary")
	for _, file := range corpustest.Glob(t, dir, "*.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var c struct {
				IDs         []string          `json:"dataset_ids"`
				Predictions json.RawMessage   `json:"predictions"`
				RunID       string            `json:"run_id"`
				Files       map[string]string `json:"log_files"`
				Path        string            `json:"expected_report_path"`
				Report      json.RawMessage   `json:"expected_report"`
			}
			readJSON(t, file, &c)
			root := t.TempDir()
			for name, content := range c.Files {
				path := filepath.Join(root, filepath.FromSlash(name))
				require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
			}
			predictions := inOrder(t, c.Predictions)
			run, err := grade.NewLayout(root, c.RunID)
			require.NoError(t, err)
			sum, err := run.Summarize(c.IDs, predictions)
			require.NoError(t, err)
			assert.Equal(t, indented(t, c.Report)+"\n", string(sum.JSON()), "summary")
			name, err := run.SummaryName(predictions[0].Model)
			if err != nil || name != filepath.Base(c.Path) {
				t.Errorf("it is called %s (%v), want %s", name, err, filepath.Base(c.Path))
			}
		})
	}
}

// inOrder reads predictions in the order of the file.
func inOrder(t *testing.T, object json.RawMessage) (list []grade.Prediction) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(object)))
	_, err := dec.Token()
	require.NoError(t, err)
	for dec.More() {
		var p struct {
			ID    string  `json:"instance_id"`
			Model string  `json:"model_name_or_path"`
			Patch *string `json:"model_patch"`
		}
		_, err := dec.Token()
		require.NoError(t, err)
		require.NoError(t, dec.Decode(&p))
		list = append(list, grade.Prediction{InstanceID: p.ID, Model: p.Model, Empty: p.Patch == nil || *p.Patch == ""})
	}
	return list
}

// eachCase calls f with each case of one kind.
func eachCase(t *testing.T, kind string, f func(t *testing.T, dir string, c corpusCase)) {
	dir := corpustest.Subdir(t, "grading")
	cases := 0
	for _, file := range corpustest.Glob(t, dir, "*.json") {
		var is struct {
			Kind string `json:"kind"`
		}
		if readJSON(t, file, &is); is.Kind != kind {
			continue
		}
		cases++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var c corpusCase
			readJSON(t, file, &c)
			f(t, dir, c)
		})
	}
	if cases == 0 {
		corpustest.SkipOrFail(t, "the corpus has no case of the kind %s in %s", kind, dir)
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
