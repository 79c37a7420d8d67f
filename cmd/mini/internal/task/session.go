package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/worktree/undo"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/task/projectdocs"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/headless"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/internal/version"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/model/route"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/setup"
	"github.com/minibench/mini/trajectories"
)

// session is one session with the agent, interactive or not.
type session struct {
	cmdutil.Streams
	app      *app.App
	options  *Options
	cfg      *configs.Resolved
	mode     chat.Mode
	instance datasets.Instance

	agent     *agent.Agent
	models    *modelopen.Models
	tools     *setup.Tools
	sandboxes *envopen.Sandboxes
	files     taskFiles
	frontend  frontend
	headless  *headless.Frontend // the frontend in print mode; else nil
	chat      *chat.Session
	inbox     *agent.Inbox
	bus       *events.Bus
	sandbox   env.Environment // nil until it has started
	processes processes
	tree      *worktree
	docs      []projectdocs.File
	stored    *sessions.Session  // for --continue; nil if the session is not stored
	isOlder   bool               // a later session of the folder has been used since
	resume    *agent.ResumeState // state to continue from; nil for a new session
	pending   string             // messages that the model has not received before the session was resumed

	modelSwitch  *route.Route
	modelCfg     *configs.Resolved // of the current model
	modelList    modelList
	modelChanges map[string]trajectories.ModelChange // of the models that the user has switched to, and of the first one
	journalMu    sync.Mutex
	journal      *trajectories.Journal     // nil until the attempt begins
	modelChange  *trajectories.ModelChange // the switch before that; nil if there was none
}

// run runs the session from setup to cleanup.
func (t *session) run(ctx context.Context) (err error) {
	t.inbox, t.bus = agent.NewInbox(), events.NewBus()
	defer func() { err = errors.Join(err, t.tools.Close()) }()
	if err := t.prepare(ctx); err != nil {
		return err
	}
	log, err := cmdutil.OpenEventLog(t.options.events, t.Streams, envopen.Redact(t.cfg))
	if err != nil {
		return err
	}
	defer log.Close()
	defer t.bus.Close()
	log.Follow(t.bus, "", 0)
	if t.options.events == "-" {
		t.Out = io.Discard // the last event contains the submission
	}
	if t.sandboxes, err = newSandboxes(ctx, t.app, t.cfg); err != nil {
		return err
	}
	out, err := t.converse(ctx)
	return errors.Join(err, t.sandboxes.Close(), t.conclude(out, err))
}

// prepare creates the agent, the models, the tools and the paths of the files, or opens the stored
// session. It is called before the user is asked for a task, so that errors appear first.
func (t *session) prepare(ctx context.Context) (err error) {
	if t.agent, err = setup.NewAgent(t.cfg, []datasets.Instance{t.instance}); err != nil {
		return err
	}
	if t.models, err = modelopen.New(t.cfg, false, []datasets.Instance{t.instance}, nil); err == nil {
		err = settings.PrintCostNote(t.Err, t.cfg)
	}
	if err != nil {
		return err
	}
	first, err := t.models.For(t.instance)
	if err != nil {
		return err
	}
	t.modelCfg = t.cfg
	t.modelSwitch = route.Single(route.Named{Name: modelopen.Name(t.cfg), Model: first})
	t.modelSwitch.OnDrop = t.returnToModel
	t.modelChanges = map[string]trajectories.ModelChange{modelopen.Name(t.cfg): modelChange(t.cfg)}
	t.models.OnLimits(progress.ProviderEvents(report.NewPlainPrinter(t.Err, nil).Event))
	if err := t.connectTools(ctx); err != nil {
		return usage.Wrap(err)
	}
	if t.options.resume {
		return t.openStored()
	}
	if err := t.readProjectDocs(); err != nil {
		return err
	}
	t.files, err = newTaskFiles(t.options.output, time.Now())
	return usage.Wrap(err)
}

// connectTools connects to the tools and prints a warning if the prompts do not mention them.
func (t *session) connectTools(ctx context.Context) (err error) {
	cmdutil.PrintOutside(t.Err, t.cfg)
	if t.tools, err = setup.NewTools(ctx, t.cfg); err != nil {
		return err
	}
	capabilities, err := t.tools.Capabilities()
	if err == nil {
		setup.WarnUnmentioned(t.Err, t.agent, capabilities)
	}
	return err
}

// converse asks for the task, runs the agent and reports its changes.
func (t *session) converse(ctx context.Context) (out trajectories.Outcome, err error) {
	if err := t.openChat(ctx); err != nil {
		return out, err
	}
	defer t.chat.Close()
	defer t.frontend.Close()
	defer t.Interrupts.Divert(t.chat)()
	defer func() { err = errors.Join(err, t.closeStored()) }()
	t.frontend.HandleInput(t.chat)
	if err := t.askTask(ctx); err != nil {
		return out, err
	}
	if err := t.save(ctx); err != nil {
		return out, err
	}
	out, err = t.runAttempt(ctx)
	if t.stored != nil {
		t.stored.RemoveOtherSnapshots()
	}
	t.chat.WarnGitFiles()
	if err == nil {
		if t.chat.ReportChanges(ctx) {
			err = t.stored.RemoveSnapshot()
		} else if _, _, isNew := t.chat.WantsNew(); t.stored != nil && isNew {
			err = t.stored.RemoveSnapshot() // the changes are kept
		} else if t.stored != nil && out.Class != trajectories.Submitted {
			with := ""
			if !t.Interactive && out.ExitStatus == agent.ErrLimitsExceeded.Error() {
				with = " with a higher limit, such as -c agent.step_limit=N,"
			}
			_, err = fmt.Fprintf(t.Err, "run mini --continue%s to resume\n", with)
		}
	}
	return out, err
}

// openChat starts the frontend and the chat session.
func (t *session) openChat(ctx context.Context) error {
	t.tree = &worktree{dir: t.dir(), hidden: envopen.SecretVariables(t.cfg)}
	var paths func(context.Context) []string
	if envopen.IsHostClass(t.sandboxes.Class) {
		paths = func(ctx context.Context) []string { return listPaths(ctx, t.tree.dir, t.tree.hidden) }
	}
	if t.options.print {
		t.headless = t.newHeadless()
		t.frontend = t.headless
	} else {
		t.frontend = newFrontend(t.app, t.options.plain, setup.EnvironWithoutKeys(t.cfg), t.options.draft, paths) //nolint:contextcheck // the history is also saved after a cancellation
	}
	state := chat.State{
		Model: modelopen.Name(t.cfg), StepLimit: t.cfg.Agent.StepLimit, CostLimit: t.cfg.Agent.CostLimit, Started: time.Now(), ShowThinking: true,
	}
	if note, err := modelopen.CheckCostLimits(t.cfg); err == nil && note != "" {
		state.CostLimit, state.Unpriced = 0, true // the limit has no effect
	}
	if r := t.resume; r != nil {
		t.tree.openSnapshot(t.stored, t.isOlder)
		spent := r.Total()
		state.Step, state.Cost, state.Usage, state.Unpriced = r.Attempt.Totals.Own.Steps, spent.Cost, spent.Usage, spent.Usage.Unpriced > 0
		if r.Attempt.Limits != nil {
			state.StepLimit, state.CostLimit = r.Attempt.Limits.Steps, r.Attempt.Limits.Cost
		}
	}
	mode, unattended := t.approval()
	c := chat.Config{
		Frontend: t.frontend, Inbox: t.inbox, Events: t.bus, Mode: mode,
		ConfirmExit: t.cfg.Agent.ConfirmExit && !t.options.exitImmediately, NonInteractive: !t.Interactive, State: state,
		Unattended: unattended, Execute: t.execute, SwitchModel: t.switchModel,
		ListModels: t.modelLister(), ChangedGit: t.tree.changedGit, NoNewReason: t.noNewReason(),
	}
	if envopen.IsHostClass(t.sandboxes.Class) {
		c.Sessions = t.listSessions
	}
	if t.Interactive && envopen.IsHostClass(t.sandboxes.Class) {
		c.Snapshot = t.tree
		if _, err := t.tree.Diff(ctx); errors.Is(err, chat.ErrNoSnapshot) {
			t.frontend.ShowNotice(chat.Notice{Text: fmt.Sprintf("Changes cannot be shown or undone: %v.", err)})
		}
	}
	if err := t.usePolicy(&c); err != nil {
		return err
	}
	t.chat = chat.New(c)
	return nil
}

// runAttempt runs the agent and writes the journal and the trajectory.
func (t *session) runAttempt(ctx context.Context) (trajectories.Outcome, error) {
	journal, err := t.openJournal()
	if err != nil {
		return trajectories.Outcome{}, err
	}
	journal.SetSyncPolicy(t.cfg.Run.Fsync)
	if err := t.setJournal(journal); err != nil {
		return trajectories.Outcome{}, errors.Join(err, journal.Close())
	}
	out, err := t.runAgent(ctx, journal)
	return out, errors.Join(err, journal.Close(), trajectories.WriteTrajFile(t.files.journal, t.files.traj))
}

// openJournal creates the journal, or opens that of a resumed session.
func (t *session) openJournal() (*trajectories.Journal, error) {
	if t.resume != nil {
		return trajectories.Reopen(t.files.journal, trajectories.Resume{MiniVersion: version.Version, Record: t.resume.LastRecord, Redact: envopen.Redact(t.cfg)})
	}
	header, err := setup.NewHeader(t.cfg, t.sandboxes.Class)
	if err != nil {
		return nil, err
	}
	header.InstanceID, header.Attempt, header.ModelName = t.instance.ID, 1, modelopen.Name(t.cfg)
	if err := os.MkdirAll(filepath.Dir(t.files.journal), 0o700); err != nil {
		return nil, usage.Errorf("make folder for the trajectory: %w", err)
	}
	return trajectories.Create(t.files.journal, header)
}

// runAgent starts the sandbox, runs the agent and closes the sandbox.
func (t *session) runAgent(ctx context.Context, journal *trajectories.Journal) (trajectories.Outcome, error) {
	var eventsShown <-chan struct{}
	return runner.AttemptRunner{
		Agent: t.agent, Sandboxes: taskSandbox{t}, Models: switchedModels{t}, Instance: t.instance,
		Session: agent.Session{
			Recorder: journal, Resume: t.resume, Instructions: projectdocs.Prompt(t.docs), Approver: t.chat, User: t.chat, Inbox: t.inbox,
			Observer: t, Events: t.bus, StartEvent: events.RunStarted{Model: t.firstModel(), Environment: t.sandboxes.Class},
		},
		Tools: func() (agent.ToolServer, error) {
			return t.tools.Server(setup.AttemptPaths{Instance: t.instance, Dir: filepath.Dir(t.files.journal), Prefix: t.files.prefix(), Workspace: t.workspace()})
		},
		OnReady: func(env.Info, time.Duration) {
			cmdutil.PrintWarnings(t.Err, t.tools.Warnings())
			eventsShown = t.showEvents(ctx)
		},
		BeforeClose: func(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) error {
			t.chat.WaitForStep(ctx)
			t.bus.Close()
			<-eventsShown
			t.reportProcesses(ctx, sandbox)
			if keep := envopen.KeepRule(t.cfg.Run.Keep); keep != nil && keep(out) && t.cfg.Environment.Class == "docker" {
				return keepSandbox(ctx, t.Err, sandbox.(runner.Keeper)) //nolint:errcheck // every docker sandbox is a Keeper
			}
			return nil
		},
	}.Run(ctx)
}

// taskSandbox starts the sandbox of a task. During the start, the first Ctrl-C cancels the start,
// for example a pull, instead of going to the chat.
type taskSandbox struct{ *session }

// Start implements runner.Sandboxes.
func (t taskSandbox) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	t.Interrupts.Set(nil)
	sandbox, err := t.sandboxes.Start(ctx, in)
	if err == nil {
		t.Interrupts.Set(t.chat)
		t.sandbox = sandbox
	}
	return sandbox, err
}

// workspace returns the user's folder if the sandbox works in it, else "".
func (t *session) workspace() string {
	if !envopen.IsHostClass(t.sandboxes.Class) {
		return ""
	}
	return t.dir()
}

// showEvents starts to show events until the bus is closed. The returned channel is closed after the
// last event has been shown.
func (t *session) showEvents(ctx context.Context) <-chan struct{} {
	sub := t.bus.Subscribe(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.chat.Watch(context.WithoutCancel(ctx), sub)
	}()
	return done
}

// askTask asks for the task unless -t names it. A resumed session asks for the next task.
func (t *session) askTask(ctx context.Context) (err error) {
	if t.resume != nil {
		return t.askNextTask(ctx)
	}
	for t.instance.ProblemStatement == "" {
		t.instance.ProblemStatement, err = t.chat.ReadTask(ctx, chat.Question{Text: "What is to be done?", Hint: "/m for several lines, /h helps"})
		if err != nil {
			return err
		}
	}
	return nil
}

// save stores a session on this machine for --continue, reads git's own files and, if the session is
// interactive, takes a snapshot of the others. If it cannot, it prints a warning. It returns an error only if it cannot
// print the warning or remove an incomplete snapshot, or if ctx is canceled.
func (t *session) save(ctx context.Context) error {
	if !envopen.IsHostClass(t.sandboxes.Class) {
		return nil
	}
	t.tree.git = undo.ReadGitFiles(ctx, t.dir(), filepath.Join(userdirs.StateDir(), "mini"), t.tree.hidden...)
	if t.stored == nil {
		store, err := t.openStore()
		if err == nil {
			metadata := sessions.Metadata{Task: t.instance.ProblemStatement, Journal: t.files.journal, Trajectory: t.files.traj}
			if !configs.IsFolderURL(t.cfg) {
				metadata.BaseURL = t.cfg.Model.BaseURL
			}
			t.stored, err = store.Create(metadata)
		}
		if err != nil {
			t.tree.snapshotErr = err
			_, err = fmt.Fprintln(t.Err, "mini: warning:", cmdutil.Sanitize(err.Error())+"; --continue will not find this session")
			return err
		}
	}
	if t.headless != nil {
		t.headless.SetSession(t.stored.Name())
	}
	if t.Interactive {
		// As during the attempt, the second Ctrl-C ends it.
		ctx, stop := t.inbox.AttemptContext(ctx)
		defer stop()
		return t.tree.takeSnapshot(ctx, t.Err, t.stored)
	}
	return nil
}

// closeStored saves the messages that the model has not received and the mode, and unlocks the
// stored session, if there is one.
func (t *session) closeStored() error {
	if t.stored == nil {
		return nil
	}
	_, mode, _ := t.chat.WantsNew()
	if t.options.print {
		mode = t.mode
	}
	t.stored.Pending, t.stored.Mode = joinTexts(append([]string{t.pending}, t.inbox.TakePending()...)...), mode.String()
	return errors.Join(t.stored.Save(), t.stored.Close())
}
