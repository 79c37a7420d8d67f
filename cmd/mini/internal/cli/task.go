package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// taskOptions are the flags of mini itself.
type taskOptions struct {
	configFlags
	task   string
	yes    bool
	output string
}

func (o *taskOptions) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.task, "task", "t", "", "`TEXT`: what to do; - reads it from stdin")
	f.BoolVarP(&o.yes, "yolo", "y", false, "run commands without asking")
	o.configFlags.flags(f)
	f.StringVarP(&o.output, "output", "o", "", "`FILE` (.json) or folder of the trajectory")
}

// maxTask bounds a task that is read from stdin, in bytes.
const maxTask = 10 << 20

// taskID names the one instance there is.
const taskID = "task"

// runTask is `mini -t`: one task, here or in a container.
func runTask(ctx, kill context.Context, s Streams, o *taskOptions) error {
	cfg, err := o.resolve("mini")
	if err != nil {
		return err
	}
	if err := sayNotes(s.Err); err != nil {
		return err
	}
	if o.task == "-" {
		text, err := io.ReadAll(io.LimitReader(s.In, maxTask+1))
		if err != nil {
			return fmt.Errorf("read task: %w", err)
		}
		if len(text) > maxTask {
			return usagef("the task on stdin is longer than %d MB", maxTask>>20)
		}
		o.task = string(text)
	}
	if strings.TrimSpace(o.task) == "" {
		return usagef("the task is empty; say with -t what to do")
	}
	if !o.yes && !s.Terminal {
		return usagef("there is no terminal to ask on before each command; -y runs them without asking")
	}
	in := datasets.Instance{ID: taskID, ProblemStatement: o.task}
	a, err := checkAgent(cfg, []datasets.Instance{in})
	if err != nil {
		return err
	}
	models, err := newModels(cfg, false, []datasets.Instance{in})
	if err == nil {
		err = costBounds(s.Err, cfg)
	}
	if err != nil {
		return err
	}
	listen(models, report.NewPlain(s.Err, nil).Event)
	files, err := newTaskFiles(o.output, time.Now())
	if err != nil {
		return before(err)
	}
	boxes, err := newTaskSandbox(ctx, kill, cfg, s.Err)
	if err != nil {
		return err
	}
	out, err := o.work(ctx, s, cfg, a, models, boxes, in, files)
	return errors.Join(err, boxes.Close(), conclude(s, out, files, err))
}

// newTaskSandbox is the current folder, or a container where one is asked for.
func newTaskSandbox(ctx, kill context.Context, cfg *configs.Resolved, w io.Writer) (*sandboxes, error) {
	progress := report.NewPlain(w, nil)
	if cfg.Environment.Class == "docker" && cfg.Environment.Image == "" {
		return nil, usagef("which image? add -c environment.image=NAME")
	}
	boxes, err := newSandboxes(ctx, kill, cfg, false, false, "", w, progress.Event)
	if err != nil || !onHost(boxes.class) {
		return boxes, err
	}
	if err := boxes.here(cfg); err != nil {
		return nil, errors.Join(err, boxes.Close())
	}
	return boxes, nil
}

// work runs the one attempt.
func (o *taskOptions) work(
	ctx context.Context, s Streams, cfg *configs.Resolved, a *agent.Agent, models runner.Models,
	boxes *sandboxes, in datasets.Instance, files taskFiles,
) (trajectories.Outcome, error) {
	header, err := headerOf(cfg, boxes.class)
	if err != nil {
		return trajectories.Outcome{}, err
	}
	header.InstanceID, header.Attempt = in.ID, 1
	journal, err := trajectories.Create(files.journal, header)
	if err != nil {
		return trajectories.Outcome{}, err
	}
	journal.Sync(cfg.Run.Fsync)
	start := time.Now()
	failed := func(err error) (trajectories.Outcome, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		out := agent.Failed(start, err)
		_, err = journal.Append(trajectories.TypeOutcome, out)
		return out, err
	}
	out, err := func() (trajectories.Outcome, error) {
		m, err := models.For(in)
		if err != nil {
			return failed(err)
		}
		box, err := boxes.Start(ctx, in)
		if err != nil {
			return failed(err)
		}
		watch := &watcher{Recorder: journal, w: s.Err}
		session := agent.Session{
			Model: m, Environment: box, Recorder: watch,
			Task: agent.Task{Text: in.ProblemStatement, Instance: in.Fields()},
		}
		if !o.yes {
			session.Approve = asker(s)
		}
		out := a.Run(ctx, session)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if keep := keeps(cfg.Run.Keep); keep != nil && keep(out) && cfg.Environment.Class == "docker" {
			err = sayKept(end, s.Err, box)
		}
		return out, errors.Join(err, box.Close(end))
	}()
	return out, errors.Join(err, journal.Close(), trajectories.Derive(files.journal, files.traj))
}

// conclude says how it ended and where the files are.
func conclude(s Streams, out trajectories.Outcome, files taskFiles, failed error) error {
	if out.Class == "" {
		return nil
	}
	text := fmt.Sprintf("%s after %s", out.ExitStatus, report.Count(out.Steps, "step"))
	switch known := out.Usage.Unpriced == 0; {
	case !known:
		text += ", cost " + report.Spent(out.Cost, known)
	case out.Cost > 0:
		text += ", " + report.Spent(out.Cost, known)
	}
	for _, more := range []string{out.Error, out.Hint} {
		if more != "" {
			text += "\n" + more
		}
	}
	_, err := fmt.Fprintf(s.Err, "mini: %s\ntrajectory: %s\n", lines(text), files.traj)
	if len(out.Submission) > 0 && !out.Autosubmitted {
		text := string(out.Submission)
		if s.OutTerminal {
			text = lines(text)
		}
		_, werr := io.WriteString(s.Out, text)
		err = errors.Join(err, werr)
	}
	switch {
	case err != nil || failed != nil:
		return err
	case out.Class == trajectories.Interrupted:
		return agent.ErrInterrupted
	case !out.Class.Counts():
		return errIncomplete
	}
	return nil
}

// taskFiles are where the one attempt is kept.
type taskFiles struct{ journal, traj string }

// newTaskFiles picks the files: those of -o, or new ones in the user's state
// folder. An old journal is never overwritten.
func newTaskFiles(output string, now time.Time) (taskFiles, error) {
	if output == "" {
		output = filepath.Join(stateDir(), "mini", now.Format("20060102-150405.000"))
	}
	dir, name := output, taskID
	if base, ok := strings.CutSuffix(output, ".json"); ok {
		base = strings.TrimSuffix(base, ".traj")
		dir, name = filepath.Dir(base), filepath.Base(base)
	}
	f := taskFiles{
		journal: filepath.Join(dir, name+".journal.jsonl"),
		traj:    filepath.Join(dir, name+".traj.json"),
	}
	if strings.HasSuffix(output, ".json") {
		f.traj = output
	}
	for _, path := range []string{f.journal, f.traj} {
		if _, err := os.Stat(path); err == nil {
			return f, usagef("%s is there already; give another name with -o", path)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return f, fmt.Errorf("make folder for the trajectory: %w", err)
	}
	return f, nil
}

// stateDir follows the XDG base directory specification.
func stateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return os.TempDir()
	}
	return filepath.Join(home, ".local", "state")
}

// watcher shows the conversation as it is recorded.
type watcher struct {
	agent.Recorder
	w io.Writer
}

// Append implements agent.Recorder.
func (w *watcher) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := w.Recorder.Append(t, data)
	switch d := data.(type) {
	case trajectories.Message:
		if d.Cause == trajectories.CauseReply || d.Cause == trajectories.CauseFormatError {
			text := "\n" + d.Content
			if len(d.Calls) > 0 && len(d.Actions) > 0 { // else the commands stand in the text
				text += "\n$ " + strings.Join(d.Actions, "\n$ ")
			}
			w.print(text)
		}
	case trajectories.Execution:
		text := strings.TrimRight(shown(d.Output), "\n")
		if d.ExitCode != 0 || d.Exception != "" {
			text += strings.TrimRight(fmt.Sprintf("\n[exit code %d] %s", d.ExitCode, d.Exception), " ")
		}
		w.print(text)
	}
	return rec, err
}

func (w *watcher) print(text string) {
	_, _ = fmt.Fprintln(w.w, lines(text)) // the record is what counts
}

// maxShown bounds what is shown of an output, in bytes; the journal has more.
const maxShown = 8 << 10

func shown(output []byte) string {
	if len(output) <= maxShown {
		return string(output)
	}
	return fmt.Sprintf("%s\n[... %d bytes not shown ...]\n%s",
		output[:maxShown/2], len(output)-maxShown, output[len(output)-maxShown/2:])
}

// asker asks on the terminal before each command.
func asker(s Streams) func(context.Context, string) error {
	answers := bufio.NewReader(s.In)
	return func(ctx context.Context, _ string) error {
		if _, err := fmt.Fprint(s.Err, "\nRun this command? [Enter] yes, [n] no, or say what to do instead: "); err != nil {
			return err
		}
		line := make(chan string, 1)
		fail := make(chan error, 1)
		go func() { // a read from a terminal cannot be cancelled
			text, err := answers.ReadString('\n')
			if err != nil {
				fail <- err
				return
			}
			line <- text
		}()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-fail:
			return fmt.Errorf("%w: %w", agent.ErrInterrupted, err)
		case text := <-line:
			return answer(strings.TrimSpace(text))
		}
	}
}

func answer(text string) error {
	switch strings.ToLower(text) {
	case "", "y", "yes":
		return nil
	case "n", "no":
		return &agent.Rejected{}
	}
	return &agent.Rejected{Comment: text}
}
