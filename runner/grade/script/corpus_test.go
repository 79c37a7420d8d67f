package script_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/specs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/script"
)

// scriptCase is the content of <instance>.json in the corpus.
type scriptCase struct {
	Dataset     string          `json:"dataset"`
	ID          string          `json:"instance_id"`
	Repo        string          `json:"repo"`
	Version     string          `json:"version"`
	BaseCommit  string          `json:"base_commit"`
	TestPatch   string          `json:"test_patch"`
	Image       string          `json:"image"`
	LogParser   string          `json:"log_parser"`
	EvalType    string          `json:"eval_type"`
	ImageAssets json.RawMessage `json:"image_assets"`
	Modified    []string        `json:"modified_files"`
	V4          struct {
		Directives []string `json:"directives"`
	} `json:"v4"`
}

func (c scriptCase) instance(evalScript string) datasets.Instance {
	in := datasets.Instance{
		ID: c.ID, Repo: c.Repo, Version: c.Version, BaseCommit: c.BaseCommit, TestPatch: c.TestPatch, EvalScript: evalScript,
	}
	if c.ImageAssets != nil {
		in.Row = map[string]json.RawMessage{"image_assets": c.ImageAssets}
	}
	return in
}

// TestCorpusScripts compares scripts with those that the official harness ran.
func TestCorpusScripts(t *testing.T) {
	dir := corpustest.Subdir(t, "evalscripts")
	for _, path := range corpustest.Glob(t, dir, "[^_]*.json") {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			var c scriptCase
			readJSON(t, path, &c)
			want, err := os.ReadFile(filepath.Join(dir, name+".v5.sh"))
			if errors.Is(err, fs.ErrNotExist) {
				corpustest.SkipOrFail(t, "the corpus lacks its script")
			}
			require.NoError(t, err)
			row, err := os.ReadFile(filepath.Join(dir, name+".row.eval_script.sh"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			s, err := script.For(c.instance(string(row)))
			require.NoError(t, err)
			if diff := cmp.Diff(string(want), s.Text); diff != "" || s.Generated != (len(row) == 0) {
				t.Errorf("generated: %v; (-official +ours)\n%s", s.Generated, diff)
			}
			if c.Image != "" && c.Image != c.instance("").ImageName() {
				t.Errorf("the image is %s, want %s", c.instance("").ImageName(), c.Image)
			}
			t.Run("generated", func(t *testing.T) { generated(t, c, string(want)) })
		})
	}
}

// generated returns the script that is generated if the row's own script is removed. The tables of
// package specs have the exceptions for two Python rows and two Multilingual rows, so that these
// scripts are equal too. Scripts of the Multimodal dataset are not generated, because the official
// ones are hand-written.
func generated(t *testing.T, c scriptCase, want string) {
	if c.LogParser != specs.LogParser(c.Repo) || c.EvalType != specs.EvalType(c.Repo) {
		t.Errorf("parser and type are %s, %s; want %s, %s", specs.LogParser(c.Repo), specs.EvalType(c.Repo), c.LogParser, c.EvalType)
	}
	s, err := script.For(c.instance(""))
	if strings.Contains(c.Dataset, "Multimodal") {
		assert.ErrorIs(t, err, script.ErrNoScript)
		return
	}
	require.NoError(t, err)
	if diff := cmp.Diff(want, s.Text); diff != "" || !s.Generated {
		t.Errorf("generated: %v; (-official +ours)\n%s", s.Generated, diff)
	}
	if c.V4.Directives != nil {
		assert.NoDiff(t, cmp.Diff(c.V4.Directives, script.Directives(c.Repo, c.TestPatch)), "directives (-official +ours)")
	}
	if c.Modified != nil {
		if changed, _ := script.PatchFiles(c.TestPatch); !slices.Equal(c.Modified, changed) {
			diff := cmp.Diff(c.Modified, changed)
			t.Errorf("modified files (-official +ours)\n%s", diff)
		}
	}
}

// listed is an entry of a list: the names that the official harness finds in a test patch. If the
// entry has no patch, it is that of an official row.
type listed struct {
	Repo       string      `json:"repo"`
	TestPatch  *string     `json:"test_patch"`
	Modified   []string    `json:"modified_files_v4"`
	Directives []string    `json:"directives"`
	Files      [][3]string `json:"unidiff_files"` // old name, new name, path
}

// TestCorpusLists compares the files and directives of many patches with those that the official
// harness finds.
func TestCorpusLists(t *testing.T) {
	dir := corpustest.Subdir(t, "evalscripts")
	for _, path := range corpustest.Glob(t, dir, "_*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			var list map[string]listed
			readJSON(t, path, &list)
			checkList(t, list)
		})
	}
}

func checkList(t *testing.T, list map[string]listed) {
	var rows map[string]datasets.Instance // read when the first patch is missing
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(list)) {
		c := list[name]
		if c.TestPatch == nil {
			if rows == nil {
				rows = rowsByID(t)
			}
			in, ok := rows[name]
			if !ok {
				continue
			}
			c.Repo, c.TestPatch = in.Repo, &in.TestPatch
		}
		compared++
		checkListed(t, name, c)
	}
	t.Logf("%d of %d patches are at hand", compared, len(list))
	if compared == 0 {
		corpustest.SkipOrFail(t, "none of the instances is among the rows at hand")
	}
}

func checkListed(t *testing.T, name string, c listed) {
	if got := script.Directives(c.Repo, *c.TestPatch); !slices.Equal(c.Directives, got) {
		t.Errorf("%s: directives %q, want %q", name, got, c.Directives)
	}
	changed, added := script.PatchFiles(*c.TestPatch)
	var want []string
	for _, f := range c.Files {
		if f[0] == "/dev/null" {
			want = append(want, f[2])
		}
	}
	if c.Files != nil && !slices.Equal(added, want) {
		t.Errorf("%s: added files %q, want %q", name, added, want)
	}
	if !slices.Equal(changed, c.Modified) {
		t.Errorf("%s: modified files %q, want %q", name, changed, c.Modified)
	}
}

func rowsByID(t *testing.T) map[string]datasets.Instance {
	t.Helper()
	rows := map[string]datasets.Instance{}
	for _, set := range []string{"verified.jsonl.gz", "lite.jsonl.gz", "lite-dev.parquet", "multilingual.jsonl.gz"} {
		for _, in := range officialRows(t, set) {
			rows[in.ID] = in
		}
	}
	return rows
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		corpustest.SkipOrFail(t, "the corpus has no %s", filepath.Base(path))
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	require.NoError(t, err)
}

// TestOfficialRows compares the script of every row with the one generated from the tables. The
// number of equal scripts shows how good the generated scripts of rows without one are.
func TestOfficialRows(t *testing.T) {
	for _, set := range []struct {
		file string
		rows int
		same int // minimum number of equal scripts; exceptions in the tables may add more
	}{
		{"verified.jsonl.gz", 500, 498},
		{"lite.jsonl.gz", 300, 300},
		{"lite-dev.parquet", 23, 23},
		{"multilingual.jsonl.gz", 300, 298},
	} {
		t.Run(set.file, func(t *testing.T) {
			rows := officialRows(t, set.file)
			same := 0
			for _, in := range rows {
				own, err := script.For(in)
				if err != nil {
					t.Errorf("%s: %v", in.ID, err)
				}
				if own.Generated {
					t.Errorf("%s: the row's own script was not taken", in.ID)
				}
				assert.Equal(t, datasets.OfficialImage(in.ID), in.Image, "%s: the image", in.ID)
				in.EvalScript = ""
				made, err := script.For(in)
				switch {
				case err != nil:
					t.Errorf("%s: %v", in.ID, err)
				case made.Text == own.Text:
					same++
				default:
					t.Logf("%s differs from the row's own script", in.ID)
				}
			}
			t.Logf("%-24s %3d of %3d generated scripts equal the row's own", set.file, same, len(rows))
			if len(rows) != set.rows || same < set.same {
				t.Errorf("%d rows with %d equal scripts, want %d with at least %d", len(rows), same, set.rows, set.same)
			}
		})
	}
}

// officialRows reads one of the official datasets, if present on this machine.
func officialRows(t *testing.T, file string) []datasets.Instance {
	t.Helper()
	src, err := datasets.Local(corpustest.RealData(t, "swebench/"+file), "")
	require.NoError(t, err)
	loaded, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	require.NoError(t, err)
	return loaded.Instances
}
