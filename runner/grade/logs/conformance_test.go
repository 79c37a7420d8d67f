package logs_test

import (
	gocmp "cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/logs"
)

// conformanceCase is a case of the corpus: the result of the official parser for the log
// beside it.
type conformanceCase struct {
	Parser       string      `json:"parser"`
	InstanceID   string      `json:"instance_id"`
	Version      string      `json:"version"`
	SliceMarkers bool        `json:"slice_markers"`
	Raises       *string     `json:"raises"`
	Entries      [][2]string `json:"entries"`
}

// TestConformance compares every parser with the corpus: names, statuses, their order, and
// crashes.
func TestConformance(t *testing.T) {
	root := corpustest.Subdir(t, "parsers")
	files := corpustest.Glob(t, root, "*/*.json")
	var covered []string
	for _, file := range files {
		parser := filepath.Base(filepath.Dir(file))
		covered = append(covered, parser)
		t.Run(parser+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			checkCase(t, file)
		})
	}
	for _, name := range logs.Names() {
		if !slices.Contains(covered, name) {
			t.Logf("the corpus has no case for %s", name)
		}
	}
}

func checkCase(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var want conformanceCase
	require.NoError(t, json.Unmarshal(data, &want))
	want.Parser = gocmp.Or(want.Parser, filepath.Base(filepath.Dir(file)))
	raw, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".log")
	if errors.Is(err, fs.ErrNotExist) {
		corpustest.SkipOrFail(t, "the corpus lacks its log")
	}
	require.NoError(t, err)
	text, err := logs.Decode(raw)
	if want.Raises != nil && errors.Is(err, logs.ErrNotUTF8) {
		return
	}
	require.NoError(t, err)
	if want.SliceMarkers {
		parts := strings.Split(text, ">>>>> Start Test Output")
		if len(parts) < 2 {
			if want.Raises != nil {
				return
			}
			t.Fatal("there is no start marker to cut the log at")
		}
		text = parts[1]
		text, _, _ = strings.Cut(text, ">>>>> End Test Output")
	}
	tests, err := logs.Parse(want.Parser, text, logs.InstanceInfo{InstanceID: want.InstanceID, Version: want.Version})
	if want.Raises != nil {
		var crash *logs.CrashError
		if !errors.As(err, &crash) || crash.Parser != want.Parser {
			t.Errorf("the error is %v, want a crash: %s", err, *want.Raises)
		}
		return
	}
	require.NoError(t, err)
	got := make([][2]string, 0, tests.Len())
	for name, s := range tests.All() {
		got = append(got, [2]string{name, string(s)})
	}
	if want.Entries == nil {
		want.Entries = [][2]string{}
	}
	assert.NoDiff(t, cmp.Diff(want.Entries, got), "tests (-want +got)")
}
