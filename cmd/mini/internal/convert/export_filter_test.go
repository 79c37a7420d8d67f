package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

// newTestFilter returns the filter of a command line.
func newTestFilter(t *testing.T, args ...string) (*filter.Filter, error) {
	t.Helper()
	o, f := &filterFlags{}, pflag.NewFlagSet("export", pflag.ContinueOnError)
	o.addFlags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o.newFilter(app.New(t.Context(), cmdutil.Streams{}), true, false)
}

// testItem returns a resolved attempt.
func testItem(id string, attempt int) *export.Item {
	reply := trajectories.Message{Cause: trajectories.CauseReply}
	reply.Content = "a reply of " + id
	return &export.Item{
		Attempt: &trajectories.Attempt{
			Header:  trajectories.Header{ModelName: "some-model"},
			Entries: []trajectories.Entry{{Message: reply}},
			Outcome: &trajectories.Outcome{Class: trajectories.Submitted},
		},
		InstanceID: id, Number: attempt, Repo: "own/name", Verdict: "resolved", Flags: []string{"ci"}, Journal: id + ".jsonl",
	}
}

func TestFilterFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"":                                    "",
		"--resolved":                          "",
		"--verdict resolved,unstable":         "",
		"--verdict unresolved":                "verdict: resolved",
		"--class limit":                       "outcome class: submitted",
		"--repo own/name,other/name":          "",
		"--repo other/name":                   "repository: own/name",
		"--model some*":                       "",
		"--model other --model another":       "model: some-model",
		"--exclude-flagged":                   "flag: ci",
		"--flags ci,git_hook":                 "flag: ci",
		"--flags git_hook":                    "",
		"--max-tokens 3":                      "max tokens",
		"--tokenizer cl100k_base":             "",
		"--max-steps 1 --min-steps 1":         "",
		"--min-steps 2":                       "min steps",
		"--max-format-errors 0":               "",
		"--max-per-instance 1":                "",
		"--dedupe 0.9 --secrets drop":         "",
		"--split a=0.5,b=0.5 --split-by repo": "",
		"--allow-test-split":                  "",
	} {
		f, err := newTestFilter(t, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		got := ""
		f.Add(f.Inspect(testItem("own__name-1", 1)))
		for _, d := range f.Report().Dropped {
			got = string(d.Reason)
		}
		if got != want {
			t.Errorf("%s: %q; want %q", args, got, want)
		}
	}
}

func TestFilterFlagErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"--resolved --verdict unstable": "--resolved means --verdict resolved; leave one of them out",
		"--verdict solved":              `--verdict "solved" is not one of resolved, unresolved, unstable, empty, apply_failed, timed_out, infrastructure, error, none`,
		"--flags cheating":              `--flags "cheating" is not one of test_file, test_setup,`,
		"--split-by repo":               "--split-by requires --split",
		"--split=":                      `--split "": "" is not NAME=SHARE`,
		"--max-format-errors -1":        "--max-format-errors must not be negative",
	} {
		_, err := newTestFilter(t, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || cmdutil.ExitCode(err) != cmdutil.ExitUsage {
			t.Errorf("%s: %v; want %s", args, err, want)
		}
	}
}

// Values of secret variables in the environment and in .env are redacted.
func TestKnownSecretsAreRedacted(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("FROM_DOTENV_API_KEY", "") // restored after the test
	t.Setenv("SOME_PASSWORD", "made-up words 1")
	t.Setenv("OPENAI_BASE_URL", "http://made-up.invalid/v1")
	if err := os.WriteFile(".env", []byte("FROM_DOTENV_API_KEY=made-up-words-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := newTestFilter(t)
	if err != nil {
		t.Fatal(err)
	}
	item := testItem("own__name-1", 1)
	item.Entries[0].Content = "made-up words 1, made-up-words-2 and http://made-up.invalid/v1"
	if kept := f.Add(f.Inspect(item)); len(kept) != 1 {
		t.Fatalf("%+v", f.Report().Dropped)
	}
	if got := item.Entries[0].Content; got != "[redacted], [redacted] and http://made-up.invalid/v1" {
		t.Error(got)
	}
	report := f.Report()
	dir := t.TempDir()
	if err := writeFilterReport(dir, report); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filterReportJSON: `"kind": "value of SOME_PASSWORD"`, filterReportText: "value of FROM_DOTENV_API_KEY",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if text := string(data); err != nil || !strings.Contains(text, want) || strings.Contains(text, "made-up") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
