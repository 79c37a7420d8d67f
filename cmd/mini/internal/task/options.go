// Package task implements mini without a subcommand: it runs one task, by default in
// the current folder, interactively or not.
package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/headless"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
)

// Options are the flags of mini without a subcommand.
type Options struct {
	settings.Flags
	task            string
	yolo            bool
	output          string
	resume          bool   // --continue or --resume
	choice          string // --resume
	session         string // name of the session to resume; "" means the latest
	exitImmediately bool
	plain           bool
	noProjectDocs   bool
	events          string
	HasTask         bool   // there is a task: -t is set, or the print mode has one
	print           bool   // -p
	format          string // --output-format
	argument        string // the task after -p
	draft           string // the initial text of the input field
}

// AddFlags adds the flags of mini without a subcommand.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.task, "task", "t", "", "what to do; - reads it from stdin")
	f.BoolVarP(&o.print, "print", "p", false, "do the task in the argument and on stdin, print only its result, and exit")
	f.StringVar(&o.format, "output-format", string(headless.Text), "with -p, the `FORMAT` of the result: text, json or stream-json")
	f.BoolVarP(&o.yolo, "yolo", "y", false, "run commands without asking, also those that leave the folder")
	f.BoolVar(&o.resume, "continue", false, "resume the last session of this folder")
	f.StringVar(&o.choice, "resume", "", "choose a session of this folder to resume, or give its `NUMBER` or words of its task")
	f.Lookup("resume").NoOptDefVal = chooseFromList
	f.BoolVar(&o.exitImmediately, "exit-immediately", false, "exit at the end without asking for another task")
	f.BoolVar(&o.plain, "plain", false, "print lines only, for screen readers and simple terminals")
	f.BoolVar(&o.noProjectDocs, "no-project-docs", false, "leave AGENTS.md files out of the prompt")
	o.Flags.AddFlags(f)
	f.StringVarP(&o.output, "output", "o", "", "`FILE` (.json) or folder of the trajectory")
	cmdutil.AddEventsFlag(f, &o.events)
}

// Args accepts one argument in print mode, the task, and no others.
func (o *Options) Args(cmd *cobra.Command, args []string) error {
	switch {
	case !o.print || len(args) == 0:
		return cmdutil.NoArgs(cmd, args)
	case len(args) > 1:
		return usage.Errorf("-p takes the task as one argument, not %d: put it in quotes", len(args))
	}
	o.argument = args[0]
	return nil
}

// taskID is the instance id of a task.
const taskID = "task"

// Run runs one task and, as long as the user asks for one, another conversation in the same folder.
func Run(ctx context.Context, a *app.App, o *Options) error {
	if err := o.checkPrint(); err != nil {
		return err
	}
	if o.print {
		withoutUser := *a
		withoutUser.Interactive = false
		a = &withoutUser
	}
	if o.choice != "" {
		if err := o.chooseSession(ctx, a); err != nil {
			return err
		}
	}
	if o.resume {
		if err := a.LoadDotenv(); err != nil {
			return err
		}
		if err := o.useSessionSettings(a.Err); err != nil {
			return usage.Wrap(err)
		}
	}
	cfg, err := resolveConfig(ctx, a, &o.Flags)
	if err != nil {
		return err
	}
	for {
		t, err := o.newSession(ctx, a, cfg)
		if err != nil {
			return err
		}
		err = t.run(ctx)
		if t.chat == nil || ctx.Err() != nil || err != nil && !errors.Is(err, agent.ErrInterrupted) {
			return err
		}
		task, mode, isNew := t.chat.WantsNew()
		switch {
		case !isNew && errors.Is(err, agent.ErrInterrupted) && !errors.Is(err, cmdutil.ErrSessionEnded):
			message := "mini: no task was given"
			switch {
			case o.resume:
				message = "run mini --continue to resume"
			case t.instance.ProblemStatement != "":
				message = "mini: interrupted before the agent began"
			}
			_, werr := fmt.Fprintln(a.Err, message)
			return errors.Join(cmdutil.ErrSessionEnded, werr)
		case !isNew:
			return err
		}
		if _, err := fmt.Fprintln(a.Err, "mini: a new conversation begins"); err != nil {
			return err
		}
		next := *o // what the flags say about the task is done
		next.task, next.HasTask, next.resume, next.session = task, task != "", false, ""
		next.draft = t.frontend.Draft()
		o = &next
		if cfg, err = a.Config(ctx, &o.Flags, config.BuiltinConfigByKind["task"]); err != nil {
			return err
		}
		cfg.Agent.Mode, o.yolo = mode.String(), false
	}
}

// newSession returns a session for the options.
func (o *Options) newSession(ctx context.Context, a *app.App, cfg *configs.Resolved) (*session, error) {
	mode, err := o.check(a, cfg)
	if err == nil {
		err = o.readTask(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	if _, configured := cfg.Origin("model.stream"); !configured && a.Interactive {
		cfg.Model.Stream = true // a user is watching
	}
	origin, _ := cfg.Origin("agent.plain_reply")
	switch {
	case !origin.IsBuiltin():
	case o.print:
		cfg.Agent.PlainReply = agent.PlainReplyEnd
	case a.Interactive && cfg.Agent.ConfirmExit && !o.exitImmediately:
		cfg.Agent.PlainReply = agent.PlainReplyAsk
	}
	return &session{Streams: a.Streams, app: a, options: o, cfg: cfg, mode: mode, instance: datasets.Instance{ID: taskID, ProblemStatement: o.task}}, nil
}

// check returns the mode of the session. It returns an error for settings that cannot be combined.
func (o *Options) check(a *app.App, cfg *configs.Resolved) (chat.Mode, error) {
	mode, err := chat.ParseMode(cfg.Agent.Mode)
	if o.yolo {
		mode = chat.Yolo
	}
	switch {
	case err != nil:
		return mode, usage.Errorf("agent.mode: %w", err)
	case o.output == "-":
		return mode, usage.Errorf("-o names the file or folder of the trajectory; -p prints the result on stdout")
	case o.resume && o.output != "":
		return mode, usage.Errorf("--continue writes to the files of that session; leave -o out")
	case o.resume && !envopen.IsHostClass(cfg.Environment.Class):
		return mode, usage.Errorf("--continue is for sessions on this machine: the container of the last one is gone, and so are its files")
	case o.events == "-" && a.Interactive && a.OutIsTerminal:
		return mode, usage.Errorf("--events - would print events on the terminal that shows the session; redirect stdout, or name a file")
	case o.print && o.events == "-":
		return mode, usage.Errorf("--events - and -p both print on stdout; name a file, or use --output-format %s", headless.StreamJSON)
	case o.print && mode == chat.Human:
		return mode, usage.Errorf("-p has no user to write commands, and agent.mode is %s; pass -c agent.mode=confirm", mode)
	case o.print:
	case !o.HasTask && !o.resume && !a.Interactive:
		return mode, usage.Errorf("no task is given: pass -t TASK, or -t - to read it from stdin; see mini --help")
	case !a.Interactive && mode == chat.Human:
		return mode, usage.Errorf("there is no terminal to write commands on; -y lets the model run its own")
	case !a.Interactive && mode != chat.Yolo:
		return mode, usage.Errorf("there is no terminal to ask on before each command; -p runs those that no rule asks about, -y all")
	}
	return mode, nil
}

// readTask reads the task from stdin for "-t -" and in print mode, and normalizes line ends. An empty
// task of -t is an error, and so is none in print mode.
func (o *Options) readTask(ctx context.Context, a *app.App) error {
	switch {
	case o.print && o.task != "-":
		piped, err := readPiped(ctx, a)
		if err != nil {
			return err
		}
		o.task = joinTexts(strings.TrimSpace(o.task), strings.TrimSpace(piped))
		o.HasTask = o.HasTask || o.task != ""
	case o.task == "-":
		var err error
		if o.task, err = readAll(ctx, a.In); err != nil {
			return err
		}
	}
	o.task = strings.ReplaceAll(o.task, "\r\n", "\n")
	switch isEmpty := strings.TrimSpace(o.task) == ""; {
	case isEmpty && o.print && !o.resume:
		return usage.Errorf("no task is given: mini -p TASK, or pass it on stdin")
	case isEmpty && o.HasTask:
		return usage.Errorf("the task is empty; say with -t what to do")
	}
	return nil
}

// newSandboxes returns the sandboxes of a task: the current folder or, if configured, a container.
func newSandboxes(ctx context.Context, a *app.App, cfg *configs.Resolved) (*envopen.Sandboxes, error) {
	if !envopen.IsHostClass(cfg.Environment.Class) && cfg.Environment.Image == "" {
		return nil, usage.Errorf("no image is given: add -c environment.image=NAME")
	}
	o := envopen.Options{}
	if envopen.IsHostClass(cfg.Environment.Class) {
		o.Notes = io.Discard // temporary folders of killed sessions, which are removed
	}
	sandboxes, err := a.Sandboxes(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	sandboxes.ScrubOnce(cfg)
	if !envopen.IsHostClass(sandboxes.Class) {
		return sandboxes, nil
	}
	if err := sandboxes.UseHostDir(cfg); err != nil {
		return nil, errors.Join(err, sandboxes.Close())
	}
	return sandboxes, nil
}

// resolveConfig returns the configuration of a task. If the model or its key is missing, and the
// user is at a terminal, it asks for them and saves the answers.
func resolveConfig(ctx context.Context, a *app.App, c *settings.Flags) (*configs.Resolved, error) {
	builtin := config.BuiltinConfigByKind["task"]
	cfg, err := a.Config(ctx, c, builtin)
	if err != nil {
		return nil, err
	}
	if hasModel(cfg) || !a.Interactive {
		c.PrintNotes(a.Err, cfg)
		return cfg, nil
	}
	missing := "no model is set up yet"
	if m := cfg.Model; m.Name != "" {
		missing = fmt.Sprintf("there is no key for %.80s: %s is not set", m.Name, m.APIKeyEnv)
	}
	_, _ = fmt.Fprintf(a.Err, "mini: %s.\n\n", missing)
	answers, err := config.SetUp(ctx, a, cfg)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if !answers.IsReady() {
		return nil, usage.Errorf("%s is not set yet: export %s=..., and start mini again", answers.KeyEnv, answers.KeyEnv)
	}
	if c.TopLayers, err = answers.Layers(); err != nil { // the answers override the flags
		return nil, err
	}
	return a.Config(ctx, c, builtin)
}

// hasModel reports whether every model has a name, and a key or a server that may need none.
func hasModel(cfg *configs.Resolved) bool {
	return !slices.ContainsFunc(configs.ModelConfigs(cfg), func(resolved *configs.Resolved) bool {
		m := resolved.Model
		return m.Class != "scripted" && (m.Name == "" || m.BaseURL == "" && os.Getenv(m.APIKeyEnv) == "")
	})
}
