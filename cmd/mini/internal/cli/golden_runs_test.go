package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// goldenRuns has runs and sessions of every kind. An older mini has made them:
	// scripts/golden-runs.sh.
	goldenRuns = "testdata/golden-runs/runs.tar.gz"
	// goldenOutputs has a line for each output of TestGoldenRuns: its hash, the run and the
	// name of the output.
	goldenOutputs = "testdata/golden-runs/outputs.sha256"
)

// TestGoldenRuns checks that the commands that read runs print the same about the runs of
// an older mini as when goldenOutputs was written. With -update it writes that file: look
// at the outputs first, which -artifacts keeps.
func TestGoldenRuns(t *testing.T) {
	t.Parallel()
	work := goldenWork{Out: t.ArtifactDir()}
	dir := t.TempDir()
	if err := unpack(goldenRuns, dir); err != nil {
		t.Fatal(err)
	}
	// The stored session names its folder by an absolute path, which must not be looked up here.
	if err := os.RemoveAll(filepath.Join(dir, "home/.local/state/mini/sessions")); err != nil {
		t.Fatal(err)
	}
	work.addJobs(t, dir)
	data, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	// A process of its own, since the commands are to find the runs in the working directory.
	cmd := exec.CommandContext(t.Context(), "mini-golden-runs")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(data)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + dir, "TZ=UTC", "TERM=dumb",
		"GOGC=400", // many commands in one process collect too often with mini's own setting
		noRaceSleep,
	}
	if message, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	var lines []string
	for _, j := range work.Jobs {
		lines = append(lines, hashOutput(t, filepath.Join(work.Out, j.file()), dir)+"  "+j.key())
	}
	if updating() {
		if err := os.WriteFile(goldenOutputs, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(goldenOutputs)
	if err != nil {
		t.Fatal(err)
	}
	compareOutputs(t, strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n"), lines, work)
}

// compareOutputs says which outputs are not those of the golden file, and keeps them.
func compareOutputs(t *testing.T, golden, lines []string, work goldenWork) {
	t.Helper()
	var kept string
	for i, line := range lines {
		if slices.Contains(golden, line) {
			continue
		}
		file := work.Jobs[i].file()
		data, err := os.ReadFile(filepath.Join(work.Out, file))
		if err == nil && kept == "" {
			kept, err = os.MkdirTemp("", "mini-golden-runs-") //nolint:usetesting // it stays for the reader of the message
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(kept, file), data, 0o600)
		}
		t.Errorf("another output than before: %s (%s, %v)", work.Jobs[i].key(), filepath.Join(kept, file), err)
	}
	for _, line := range golden {
		if _, key, _ := strings.Cut(line, "  "); !slices.ContainsFunc(work.Jobs, func(j goldenJob) bool { return j.key() == key }) {
			t.Errorf("no output: %s", key)
		}
	}
	if kept != "" {
		t.Logf("the outputs are in %s; in another checkout, go test -run %s -artifacts -outputdir FOLDER keeps all of them", kept, t.Name())
	}
}

// goldenMasks are the parts of outputs that are others each time.
var goldenMasks = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`("mini_version": ?)"[^"]*"`), `$1"VERSION"`},
	{regexp.MustCompile(`("(updated|finished)_at": ?)"[^"]*"`), `$1"NOW"`},
	{regexp.MustCompile(`("id": )"[0-9a-f-]{36}"`), `$1"UUID"`}, // of a folder's absolute path
}

// hashOutput masks the output in a file and returns its hash.
func hashOutput(t *testing.T, file, dir string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.ReplaceAll(content, []byte(dir), []byte("DIR"))
	for _, m := range goldenMasks {
		content = m.pattern.ReplaceAll(content, []byte(m.text))
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

// exportFormats are the formats and flags with which each run is exported. The others are
// for all runs together, to save time: they have the same conversations in another form.
var exportFormats = []string{"openai --select every --format-errors keep --reasoning inline", "atif --select every", "traj --select every", "table"}

// addJobs adds the jobs for the runs and sessions in dir.
func (work *goldenWork) addJobs(t *testing.T, dir string) {
	t.Helper()
	var sessions []string
	journals := map[string][]string{} // by run
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		path, relErr := filepath.Rel(dir, path)
		switch {
		case err != nil || relErr != nil || d.IsDir():
		case strings.Contains(path, "/logs/"):
		case d.Name() == "run.json":
			work.Runs = append(work.Runs, filepath.Dir(path))
		case strings.HasSuffix(d.Name(), ".journal.jsonl"):
			sessions = append(sessions, path)
		case d.Name() == "journal.jsonl":
			run, _, _ := strings.Cut(path, "/attempts/")
			journals[filepath.Dir(run)] = append(journals[filepath.Dir(run)], path)
		}
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range work.Runs {
		page := "/r/" + url.PathEscape(strings.TrimPrefix(run, "runs/")) + "/"
		work.Jobs = append(work.Jobs, goldenJob{Subject: run, Name: "view", Page: page})
		work.addRun(run, journals[run])
	}
	for _, evaluation := range []string{"runs/gold", "runs/predictions"} { // they have no run.json
		work.addRun(evaluation, nil)
	}
	for _, j := range sessions {
		imported := filepath.Join("made", j, "imported")
		work.Jobs = append(work.Jobs, goldenJob{Subject: j, Name: "import", Folder: imported, Files: derivedFiles + `|journal\.jsonl$`, Commands: [][]string{{"import", j, "-o", imported}}})
		work.add(j, "inspect --plain", []string{"inspect", j, "--plain", "--reasoning"}, []string{"inspect", j, "--plain", "--step", "0"})
		work.addExports(j, []string{j}, exportFormats...)
	}
	compare := append([]string{"compare"}, work.Runs...)
	work.add("all", "runs", []string{"runs", "runs"}, []string{"runs", "runs", "--json"})
	work.add("sessions", "inspect", []string{"inspect"}, []string{"inspect", "--json"}, []string{"inspect", "home/.local/state/mini"})
	work.add("all", "inspect", []string{"inspect", "runs"}, []string{"inspect", "runs", "--json"})
	work.add("all", "compare", compare)
	work.add("all", "compare --json", slices.Concat(compare, []string{"--json"}))
	work.add("all", "compare --csv", slices.Concat(compare, []string{"--csv", "--missing", "fail"}))
	work.addExports("all", slices.Concat(work.Runs, sessions), "openai", "sharegpt", "axolotl --format-errors mask", "prompt-completion", "kto", "dpo", "preds",
		"openai --parquet", "prompt-completion --parquet", "table --parquet")
	work.Jobs = append(work.Jobs,
		goldenJob{Subject: "all", Name: "view", Page: "/"},
		goldenJob{Subject: "all", Name: "view compare", Page: "/compare"})
}

// add adds a job that runs commands.
func (work *goldenWork) add(subject, name string, commands ...[]string) {
	work.Jobs = append(work.Jobs, goldenJob{Subject: subject, Name: name, Commands: commands})
}

// withoutJournals are instances of folders that have no journal of them.
var withoutJournals = map[string][]string{
	"runs/gold":         {"minidemo__ledger-17", "minidemo__spans-23"},
	"runs/predictions":  {"minidemo__foldtext-8", "minidemo__ledger-17", "minidemo__spans-23"},
	"runs/results-only": {"x__y-1", "x__y-2"},
}

// addRun adds jobs for a run.
func (work *goldenWork) addRun(run string, journals []string) {
	// An import opens the folder as the next session of the run does, and writes the files
	// that follow from its journals.
	resumed := filepath.Join("made", run, "resumed")
	work.Jobs = append(work.Jobs, goldenJob{
		Subject: run, Name: "resumed", Copy: run, Folder: resumed, Files: derivedFiles, Commands: [][]string{{"import", "in/extra.json", "-o", resumed}},
	})
	work.add(run, "report", []string{"report", run})
	work.add(run, "report --json", []string{"report", run, "--json"})
	work.add(run, "report --html", []string{"report", run, "--html", "-", "--html-steps", "all"})
	work.add(run, "inspect", []string{"inspect", run}, []string{"inspect", run, "--all"}, []string{"inspect", run, "--filter", "text:two"})
	work.add(run, "inspect --json", []string{"inspect", run, "--all", "--json"})
	ids := withoutJournals[run]
	var details, texts [][]string
	for _, j := range journals {
		id, _, _ := strings.Cut(strings.TrimPrefix(j, run+"/"), "/")
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		texts = append(texts, []string{"inspect", j, "--plain", "--reasoning"})
	}
	for _, id := range ids {
		details = append(details, []string{"report", run, "-i", id}, []string{"report", run, "-i", id, "--json"})
	}
	work.add(run, "report -i", details...)
	work.add(run, "inspect --plain", texts...)
	work.add(run, "grade --dry-run", []string{"grade", run, "--dry-run"})
	for _, layout := range []string{"swebench", "harbor"} {
		folder := filepath.Join("made", run, "submission-"+layout)
		work.Jobs = append(work.Jobs, goldenJob{
			Subject: run, Name: "submission " + layout, Folder: folder,
			Commands: [][]string{{"report", "submission", run, "--layout", layout, "-o", folder}},
		})
	}
	work.addExports(run, []string{run}, exportFormats...)
}

// addExports adds jobs that export a run or a journal, with each of these flags.
func (work *goldenWork) addExports(subject string, sources []string, formats ...string) {
	for _, flags := range formats {
		folder := filepath.Join("made", subject, strings.ReplaceAll(flags, " ", "_"))
		args := slices.Concat([]string{"export"}, sources, []string{"-o", folder, "--format"}, strings.Fields(flags))
		work.Jobs = append(work.Jobs, goldenJob{Subject: subject, Name: "export " + flags, Folder: folder, Commands: [][]string{args}})
	}
}

// unpack unpacks goldenRuns, in which FOLDER stands for the folder's name.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, bytes.ReplaceAll(data, []byte("FOLDER"), []byte(dir)), 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}
