package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/report"
)

// taskOptions are the flags of mini itself.
type taskOptions struct {
	configFlags
	task    string
	yes     bool
	output  string
	goOn    bool
	leave   bool
	plain   bool
	events  string
	hasTask bool // -t was given
}

func (o *taskOptions) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.task, "task", "t", "", "what to do; - reads it from stdin")
	f.BoolVarP(&o.yes, "yolo", "y", false, "run commands without asking")
	f.BoolVar(&o.goOn, "continue", false, "go on with the last session of this folder")
	f.BoolVar(&o.leave, "exit-immediately", false, "at the end, ask for nothing more")
	f.BoolVar(&o.plain, "plain", false, "lines only, for screen readers and simple terminals")
	o.configFlags.flags(f)
	f.StringVarP(&o.output, "output", "o", "", "`FILE` (.json) or folder of the trajectory")
	eventsFlag(f, &o.events)
}

// maxTask bounds a task that is read from stdin, in bytes.
const maxTask = 10 << 20

// taskID names the one instance there is.
const taskID = "task"

// runTask is `mini`: one task, here or in a container.
func runTask(ctx, kill context.Context, s Streams, o *taskOptions) error {
	if o.goOn {
		if err := o.sameModel(); err != nil {
			return before(err)
		}
	}
	cfg, err := firstRun(ctx, s, &o.configFlags)
	if err != nil {
		return err
	}
	if err := sayNotes(s.Err); err != nil {
		return err
	}
	mode, err := o.check(s, cfg)
	if err == nil {
		err = o.readTask(s)
	}
	if err != nil {
		return err
	}
	if _, configured := cfg.Origin("model.stream"); !configured && s.Terminal {
		cfg.Model.Stream = true // somebody is watching
	}
	t := &task{Streams: s, options: o, cfg: cfg, mode: mode, in: datasets.Instance{ID: taskID, ProblemStatement: o.task}}
	return t.session(ctx, kill)
}

// check finds what cannot be, before anything is asked.
func (o *taskOptions) check(s Streams, cfg *configs.Resolved) (chat.Mode, error) {
	mode, err := chat.ParseMode(cfg.Agent.Mode)
	if o.yes {
		mode = chat.Yolo
	}
	switch {
	case err != nil:
		return mode, usagef("agent.mode: %w", err)
	case o.goOn && o.output != "":
		return mode, usagef("--continue goes on in the files of that session; leave -o out")
	case o.goOn && !onHost(cfg.Environment.Class):
		return mode, usagef("--continue is for sessions on this machine: the container of the last one is gone, and so are its files")
	case o.events == "-" && s.Terminal && s.OutTerminal:
		return mode, usagef("--events - writes lines where the session is shown; send stdout elsewhere, or name a file")
	case !o.hasTask && !o.goOn && !s.Terminal:
		return mode, usagef("what is to be done? Say -t TASK, or -t - to read it from stdin; see mini --help")
	case !s.Terminal && mode == chat.Human:
		return mode, usagef("there is no terminal to write commands on; -y lets the model run its own")
	case !s.Terminal && mode != chat.Yolo:
		return mode, usagef("there is no terminal to ask on before each command; -y runs them without asking")
	}
	return mode, nil
}

// readTask takes the task from where -t says, with line ends as they are here.
func (o *taskOptions) readTask(s Streams) error {
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
	o.task = strings.ReplaceAll(o.task, "\r\n", "\n")
	if o.hasTask && strings.TrimSpace(o.task) == "" {
		return usagef("the task is empty; say with -t what to do")
	}
	return nil
}

// newTaskSandbox is the current folder, or a container where one is asked for.
func newTaskSandbox(ctx, kill context.Context, cfg *configs.Resolved, w io.Writer) (*sandboxes, error) {
	progress := report.NewPlain(w, nil)
	if cfg.Environment.Class == "docker" && cfg.Environment.Image == "" {
		return nil, usagef("which image? add -c environment.image=NAME")
	}
	boxes, err := newSandboxes(ctx, kill, cfg, false, false, "", w, progress.Event)
	if err != nil {
		return nil, err
	}
	boxes.scrubOnce(cfg)
	if !onHost(boxes.class) {
		return boxes, nil
	}
	if err := boxes.here(cfg); err != nil {
		return nil, errors.Join(err, boxes.Close())
	}
	return boxes, nil
}
