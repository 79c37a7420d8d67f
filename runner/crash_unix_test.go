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
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// mortal is the variable that makes the test binary a mini that works in a
// folder, and says each record on its standard output.
const mortal = "MINI_TEST_MORTAL_RUN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(mortal); dir != "" {
		if err := workAloud(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// crashScript changes a file with every command, so that one that is run twice, or
// not at all, shows in what is submitted.
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

// folders are sandboxes on this machine, each in a folder of its own.
func localFolders(ctx context.Context, _ datasets.Instance) (env.Environment, error) {
	dir, err := os.MkdirTemp("", "mini-crash-")
	if err != nil {
		return nil, err
	}
	return local.New(ctx, local.Config{Dir: dir, Disposable: true})
}

// crashBatch is a batch that goes on inside attempts, ready in a folder.
func crashBatch(dir string, watch func(runner.Event)) (*runner.Batch, error) {
	folder, err := runner.Open(dir)
	for errors.As(err, new(*runner.LockedError)) {
		// What a mini was starting as it was killed has its lock, until it is another
		// program.
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

// finish lets another mini go on, and says in which attempt it came to its end.
func finish(t *testing.T, dir string) int {
	t.Helper()
	b, err := crashBatch(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Folder.Close() //nolint:errcheck // the files are looked at
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

// A journal that was cut anywhere loads, and the attempt comes to the end that it
// had, inside itself: without its header alone is it nobody's.
func TestGoingOnFromAJournalCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	if n := finish(t, dir); n != 1 {
		t.Fatalf("finished in attempt %d", n)
	}
	whole, err := os.ReadFile(crashJournal(dir))
	if err != nil {
		t.Fatal(err)
	}
	header := bytes.IndexByte(whole, '\n')
	cuts := []int{0, 1, header - 1, header, header + 1, len(whole) - 1, len(whole)}
	for range 40 {
		cuts = append(cuts, rand.N(len(whole)))
	}
	for i, b := range whole { // around the ends of lines
		if b == '\n' {
			cuts = append(cuts, i, i+1)
		}
	}
	if envtest.Long() {
		cuts = nil
		for n := range len(whole) + 1 {
			cuts = append(cuts, n)
		}
	}
	for _, n := range cuts {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(crashJournal(dir)), 0o755); err != nil { //nolint:gosec // as a run's folder
			t.Fatal(err)
		}
		if err := os.WriteFile(crashJournal(dir), whole[:n], 0o600); err != nil {
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
			t.Errorf("cut at %d of %d: finished in attempt %d, want %d", n, len(whole), got, want)
		}
	}
}

// So does one whose mini was killed while it worked, and killed again as it went
// on.
func TestGoingOnAfterKills(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills := 12
	if envtest.Long() {
		kills = 200
	}
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

// killAfter lets a mini work until it has said so many lines.
func killAfter(t *testing.T, self, dir string, lines int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), mortal+"="+dir)
	var said strings.Builder
	cmd.Stderr = &said
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
	_ = cmd.Process.Kill() // it may have come to its end
	if err := cmd.Wait(); err != nil && said.Len() > 0 {
		t.Fatalf("%v: %s", err, &said)
	}
}
