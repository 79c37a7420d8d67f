//go:build unix

package runner_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// crashVariable is the environment variable that makes the test binary run a batch in a
// folder and print each record.
const crashVariable = "MINI_TEST_MORTAL_RUN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVariable); dir != "" {
		if err := workAloud(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// crashScript changes a file with every command, so that a command that ran twice or
// never shows in the submission.
const crashScript = `
- "` + "```bash\\necho one >> file\\n```" + `"
- "no command"
- "` + "```bash\\necho two >> file; seq 30\\n```" + `"
- "` + "```bash\\nprintf 'caf\\\\351\\\\n'; wc -l < file; date +%s%N\\n```" + `"
- "` + "```bash\\necho three >> file; mktemp -u\\n```" + `"
- "` + "```bash\\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat file\\n```" + `"
`

const crashPatch = "one\ntwo\nthree\n"

type script struct{ *scripted.Script }

func (s script) For(in datasets.Instance) (model.Model, error) { return s.Script.For(in.ID) }

// localFolders are local sandboxes, each in its own folder.
func localFolders(ctx context.Context, _ datasets.Instance) (env.Environment, error) {
	dir, err := os.MkdirTemp("", "mini-crash-")
	if err != nil {
		return nil, err
	}
	return local.New(ctx, local.Config{Dir: dir, Disposable: true})
}

// crashBatch returns a batch that resumes attempts in a folder.
func crashBatch(dir string, watch func(runner.Event)) (*runner.Batch, error) {
	folder, err := runner.Open(dir)
	for errors.As(err, new(*runner.LockedError)) {
		// A program that the killed process was starting holds the lock until its exec.
		folder, err = runner.Open(dir)
	}
	if err != nil {
		return nil, err
	}
	a, err := agent.New(agent.Config{
		SystemTemplate: "s", InstanceTemplate: "{{.task}}", ObservationTemplate: "{{.output}}", FormatErrorTemplate: "{{.error}}",
		MaxFormatErrors: 3, Submission: agent.SubmissionText,
	})
	if err != nil {
		return nil, err
	}
	replies, err := scripted.Parse("replies.yaml", []byte(crashScript))
	if err != nil {
		return nil, err
	}
	return &runner.Batch{
		Folder: folder, Agent: a, Sandboxes: starter(localFolders), Models: script{replies}, ModelName: "m", Workers: 1, MaxTries: 1,
		ResumeAttempts: true, Sync: trajectories.SyncNever, Log: runner.NewLog(folder, watch),
	}, nil
}

func workAloud(dir string) error {
	b, err := crashBatch(dir, func(e runner.Event) { fmt.Println(e.Type, e.Phase) })
	if err != nil {
		return err
	}
	_, err = b.Run(context.Background(), rows("a"))
	return err
}

// finish resumes the run in another process and returns the attempt that ended.
func finish(t *testing.T, dir string) int {
	t.Helper()
	b, err := crashBatch(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Folder.Close()
	sum, err := b.Run(t.Context(), rows("a"))
	if err != nil || !sum.Complete() {
		t.Fatalf("%+v, %v", sum, err)
	}
	if got := preds(t, dir)["a"]; got != crashPatch {
		t.Fatalf("it submitted %q, want %q", got, crashPatch)
	}
	return results(t, dir)["a"].Attempt
}

func crashJournal(dir string) string {
	return filepath.Join(dir, "a", "attempts", "1", "journal.jsonl")
}

// A journal that is truncated anywhere can be loaded, and the resumed attempt has the same
// result. A journal without its header is ignored.
func TestResumeFromTruncatedJournal(t *testing.T) {
	dir := t.TempDir()
	if n := finish(t, dir); n != 1 {
		t.Fatalf("finished in attempt %d", n)
	}
	journal, err := os.ReadFile(crashJournal(dir))
	if err != nil {
		t.Fatal(err)
	}
	header := bytes.IndexByte(journal, '\n')
	cuts := []int{0, 1, header - 1, header, header + 1, len(journal) - 1, len(journal)}
	for range 40 {
		cuts = append(cuts, rand.N(len(journal)))
	}
	for i, b := range journal { // around the ends of lines
		if b == '\n' {
			cuts = append(cuts, i, i+1)
		}
	}
	for _, n := range cuts {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(crashJournal(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(crashJournal(dir), journal[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want := 1
		if n < header {
			want = 2
		}
		if got := finish(t, dir); got != want {
			t.Errorf("cut at %d of %d: finished in attempt %d, want %d", n, len(journal), got, want)
		}
	}
}

// The same holds after kills at any time, even during a resume.
func TestResumeAfterKills(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const kills = 12
	for range kills {
		dir := t.TempDir()
		for range 1 + rand.N(3) {
			killAfter(t, self, dir, 2+rand.N(24))
			for _, err := range trajectories.Read(crashJournal(dir)) {
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
		finish(t, dir)
	}
}

// killAfter kills the process after a number of printed lines.
func killAfter(t *testing.T, self, dir string, lines int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crashVariable+"="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for range lines {
		if !in.Scan() {
			break
		}
	}
	_ = cmd.Process.Kill() // it may have ended
	if err := cmd.Wait(); err != nil && stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, &stderr)
	}
}
