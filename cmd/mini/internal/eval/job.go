package eval

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/datasets"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/internal/userfiles"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
)

// run evaluates the patches and prints the score.
func (j *job) run(ctx context.Context, a *app.App) error {
	display := progress.New(j.display, a.Streams, progress.RunInfo{IDs: j.ids(), Patches: len(j.tasks)})
	defer display.Close()
	if err := PrepareCache(j.cfg.Eval.Cache); err != nil {
		return err
	}
	var err error
	if j.key, err = EnsureKey(ctx); err != nil {
		return usage.Wrap(err)
	}
	// Connect to the engine before creating the folder: if no engine responds, no
	// empty folder is left behind.
	var log *runner.EventLog
	engine, err := envopen.Connect(ctx, a.Kill, j.cfg, a.Err, progress.NewObserver(func(e runner.Event) { log.Emit(e) }))
	if err != nil {
		return err
	}
	sandboxes, err := NewSandboxes(ctx, engine, j.cfg, j.dir)
	if err != nil {
		return errors.Join(usage.Wrap(err), engine.Close())
	}
	folder, err := runner.OpenWithMode(j.dir, j.cfg.Run.FolderMode())
	if err != nil {
		return errors.Join(usage.Wrap(err), sandboxes.Close())
	}
	defer folder.Close() //nolint:errcheck // the process releases the lock anyway
	folder.SetVerdictFilter(IsSignedByUser)
	log = runner.NewLog(folder, display.Event)
	log.Redact = envopen.Redact(j.cfg)
	sum, err := j.evaluate(ctx, display.Writer(), sandboxes, folder, log)
	display.Close()
	err = errors.Join(err, sandboxes.Close())
	if sum.PatchCount() > 0 {
		err = errors.Join(err, folder.UpdateVerdicts(), j.conclude(ctx, a, sum, err))
	}
	return cmdutil.MarkDiskFull(err, sum.PatchCount() > 0 && sum.IsComplete())
}

// evaluate returns the verdicts of all patches. It runs tests only for patches without
// a valid verdict and, with --rerun-failed, for patches whose tests failed.
func (j *job) evaluate(
	ctx context.Context, w io.Writer, sandboxes Sandboxes, folder *runner.Folder, log *runner.EventLog,
) (evaluate.Summary, error) {
	c := j.config()
	c.Folder, c.Log, c.Sandboxes = folder, log, sandboxes
	reusable, err := c.FindReusable(ctx, j.dir, j.tasks)
	var pending []datasets.Instance // those that need a container
	for i, class := range reusable {
		if class == "" || class.IsFailure() && c.RerunFailed > 0 {
			pending = append(pending, j.tasks[i].Instance)
		}
	}
	if err == nil && sandboxes.Images != nil && len(pending) > 0 {
		err = sandboxes.Images.CheckBudget(ctx, sandboxes.imageRequests(pending))
	}
	if err == nil {
		err = j.printHeading(w, len(pending))
	}
	if err != nil {
		return evaluate.Summary{}, usage.Wrap(err)
	}
	defer sandboxes.Prefetch(ctx, pending)()
	return evaluate.Run(ctx, c, j.tasks)
}

// printHeading prints what is evaluated, and the folder. pending is the number of
// patches that need a container.
func (j *job) printHeading(w io.Writer, pending int) error {
	line := fmt.Sprintf("mini eval: %s, %s of %s, %s",
		text.Printable(strings.Join(j.options.datasets.Subsets, "+")), text.Count(len(j.tasks), "patch"),
		text.Printable(j.patches.name), text.Count(WorkerCount(j.cfg.Eval.Workers), "worker"))
	if n := len(j.tasks) - pending; n > 0 {
		line += fmt.Sprintf("; %d without a container", n)
	}
	_, err := fmt.Fprintf(w, "%s\nfolder: %s\n", line, text.Printable(j.dir))
	return err
}

// ids returns the ids of the instances that have a patch, without duplicates.
func (j *job) ids() []string {
	var ids []string
	for _, t := range j.tasks {
		if n := len(ids); n == 0 || ids[n-1] != t.Instance.ID { // tasks of one instance are adjacent
			ids = append(ids, t.Instance.ID)
		}
	}
	return ids
}

// result is the output of mini eval --json.
type result struct {
	Run     string                    `json:"run"` // path of the folder
	RunID   string                    `json:"run_id"`
	Summary evaluate.Summary          `json:"summary"`
	Score   report.Score              `json:"score"`
	Samples *report.RepetitionSummary `json:"samples,omitempty"` // nil unless the run has several attempts per instance (-k)
}

// conclude prints the score and returns the error that the command ends with, without
// runErr, the error of the evaluation, which the caller adds.
func (j *job) conclude(ctx context.Context, a *app.App, sum evaluate.Summary, runErr error) error {
	evaluation := report.Evaluation{
		RunID: j.options.runID, Records: sum.Records, Unfinished: sum.Unfinished,
		IDs: j.ids(), Official: sum.OfficialPath, Now: time.Now(),
	}
	if j.patches.run != "" {
		if run, err := runs.Read(j.patches.run); err == nil {
			evaluation.Run = run
		}
	}
	score := report.NewScore(evaluation)
	var repetitions *report.RepetitionSummary
	if evaluation.Run != nil && j.patches.hasRepetitions() {
		repetitions = report.NewRepetitionSummary(evaluation.Run, j.ids())
	}
	var err error
	if j.options.json {
		err = json.NewEncoder(a.Out).Encode(result{j.dir, j.options.runID, sum, score, repetitions})
	} else {
		d := score.Doc()
		if repetitions != nil {
			d.Blank()
			d.Add(repetitions.Doc())
		}
		if n := len(j.selected) - len(j.ids()); n > 0 {
			d.Blank()
			d.Line(0, "%d of the %s %s no patch; the official summary counts them", n, text.Count(len(j.selected), "instance"), text.Verb(n, "has", "have"))
		}
		err = a.Print(d)
	}
	switch {
	case err != nil || runErr != nil:
		return err
	case sum.IsComplete():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w; to resume, run the same command with -o %s", agent.ErrInterrupted, j.dir)
	}
	return cmdutil.ErrIncomplete
}

// verdictKeySize is the length of the key that signs verdicts, in bytes.
const verdictKeySize = 32

// verdictKeyPath returns the path of the user's key. The key is outside of all run
// folders, so that verdicts in a downloaded run do not count as the user's own.
func verdictKeyPath() string { return filepath.Join(userdirs.StateDir(), "mini", "verdict.key") }

// readVerdictKey returns the user's key, or nil if it does not exist.
func readVerdictKey() ([]byte, error) {
	data, err := userfiles.Read(verdictKeyPath())
	if err != nil || len(data) == 0 {
		return nil, err
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil || len(key) != verdictKeySize {
		return nil, fmt.Errorf("read verdict key: %s is damaged; remove it, and mini creates a new one", verdictKeyPath())
	}
	return key, nil
}

// EnsureKey returns the user's key for signing verdicts. It creates the key if
// it does not exist.
func EnsureKey(ctx context.Context) ([]byte, error) {
	err := userfiles.Update(ctx, verdictKeyPath(), func(old []byte) ([]byte, error) {
		if len(old) > 0 {
			return old, nil
		}
		key := make([]byte, verdictKeySize)
		_, _ = rand.Read(key) // never fails
		return []byte(hex.EncodeToString(key) + "\n"), nil
	})
	if err != nil {
		return nil, fmt.Errorf("create verdict key: %w", err)
	}
	return readVerdictKey()
}

// IsSignedByUser reports whether a verdict record is signed with the user's key. It
// reads the key at each call, because an evaluation may create the key meanwhile.
func IsSignedByUser(record verdicts.Record) bool {
	key, err := readVerdictKey()
	return err == nil && record.IsSignedBy(key)
}
