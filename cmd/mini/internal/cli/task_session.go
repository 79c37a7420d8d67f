package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/sessions"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// task is one session with an agent, with or without a person.
type task struct {
	Streams
	options *taskOptions
	cfg     *configs.Resolved
	mode    chat.Mode
	in      datasets.Instance

	agent  *agent.Agent
	models runner.Models
	can    *abilities
	boxes  *sandboxes
	files  taskFiles
	front  front
	chat   *chat.Session
	talk   *agent.Talk
	bus    *events.Bus
	tree   *tree
	held   *sessions.Held
	past   *agent.Past // what --continue goes on from
}

// session is all of it, from the first question to the last.
func (t *task) session(ctx, kill context.Context) (err error) {
	t.talk, t.bus = agent.NewTalk(), events.NewBus()
	defer func() { err = errors.Join(err, t.can.Close()) }()
	if err := t.prepare(ctx); err != nil {
		return err
	}
	log, err := openEvents(t.options.events, t.Streams, withoutValues(t.cfg))
	if err != nil {
		return err
	}
	defer log.Close()
	defer t.bus.Close()
	log.follow(t.bus, "", 0)
	if t.options.events == "-" {
		t.Out = io.Discard // the last event has what would be printed
	}
	if t.boxes, err = newTaskSandbox(ctx, kill, t.cfg, t.Err); err != nil {
		return err
	}
	out, err := t.converse(ctx)
	return errors.Join(err, t.boxes.Close(), t.conclude(out, err))
}

// prepare finds mistakes before anybody is asked for anything.
func (t *task) prepare(ctx context.Context) (err error) {
	if t.agent, err = checkAgent(t.cfg, []datasets.Instance{t.in}); err != nil {
		return err
	}
	if t.models, err = newModels(t.cfg, false, []datasets.Instance{t.in}); err == nil {
		err = costBounds(t.Err, t.cfg)
	}
	if err != nil {
		return err
	}
	listen(t.models, report.NewPlain(t.Err, nil).Event)
	if err := t.equip(ctx); err != nil {
		return before(err)
	}
	if t.options.goOn {
		return t.recall()
	}
	t.files, err = newTaskFiles(t.options.output, time.Now())
	return before(err)
}

// equip connects to what commands can ask for, before there is a sandbox.
func (t *task) equip(ctx context.Context) (err error) {
	if t.can, err = newAbilities(ctx, t.cfg); err != nil {
		return err
	}
	told, err := t.can.told()
	if err != nil {
		return err
	}
	return sayUntold(t.Err, t.agent, told)
}

// converse is the part in which questions may be asked.
func (t *task) converse(ctx context.Context) (out trajectories.Outcome, err error) {
	if err := t.meet(); err != nil { //nolint:contextcheck // what was typed is remembered also at the end
		return out, err
	}
	defer t.chat.Close()
	defer t.front.Close()
	defer t.interrupts.divert(t.chat)()
	defer func() { err = errors.Join(err, t.release()) }()
	if err := t.agreeOnTask(ctx); err != nil {
		return out, err
	}
	if err := t.remember(ctx); err != nil {
		return out, err
	}
	t.front.Listen(t.chat)
	out, err = t.attempt(ctx)
	if err == nil {
		if t.chat.Keep(ctx, out.Class == trajectories.Submitted) {
			err = t.held.Drop()
		} else if t.held != nil && out.Class == trajectories.Interrupted {
			_, err = fmt.Fprintln(t.Err, "mini --continue goes on")
		}
	}
	return out, err
}

// meet brings up the front and the session behind it.
func (t *task) meet() error {
	t.front = frontOf(t.Streams, t.options.plain, withoutKeys(t.cfg))
	t.tree = &tree{dir: t.dir(), hidden: keyVariables(t.cfg)}
	state := chat.State{
		Model: modelName(t.cfg), StepLimit: t.cfg.Agent.StepLimit, CostLimit: t.cfg.Agent.CostLimit, Started: time.Now(), Thinking: true,
	}
	if p := t.past; p != nil {
		t.tree.open(t.held)
		spent := p.Total()
		state.Step, state.Cost, state.Usage, state.Unpriced = p.Steps, spent.Cost, spent.Usage, spent.Usage.Unpriced > 0
		if p.Limits != nil {
			state.StepLimit, state.CostLimit = p.Limits.Steps, p.Limits.Cost
		}
	}
	c := chat.Config{
		Front: t.front, Talk: t.talk, Events: t.bus, Mode: t.mode,
		ConfirmExit: t.cfg.Agent.ConfirmExit && !t.options.leave, Alone: !t.Terminal, State: state,
	}
	if t.Terminal && onHost(t.boxes.class) {
		c.Tree = t.tree
	}
	p, err := newPolicy(t.cfg, t.boxes.class)
	if err != nil {
		return err
	}
	if p != nil {
		c.Policy = p
	}
	t.chat = chat.New(c)
	return nil
}

// attempt is the agent's part, with a journal of it.
func (t *task) attempt(ctx context.Context) (trajectories.Outcome, error) {
	journal, err := t.journal()
	if err != nil {
		return trajectories.Outcome{}, err
	}
	journal.Sync(t.cfg.Run.Fsync)
	out, err := t.run(ctx, journal)
	return out, errors.Join(err, journal.Close(), trajectories.Derive(t.files.journal, t.files.traj))
}

func (t *task) journal() (*trajectories.Journal, error) {
	if t.past != nil {
		return trajectories.Continue(t.files.journal, trajectories.Resume{MiniVersion: Version, Record: t.past.Record, Redact: withoutValues(t.cfg)})
	}
	header, err := headerOf(t.cfg, t.boxes.class)
	if err != nil {
		return nil, err
	}
	header.InstanceID, header.Attempt = t.in.ID, 1
	if err := t.files.make(); err != nil {
		return nil, before(err)
	}
	return trajectories.Create(t.files.journal, header)
}

func (t *task) run(ctx context.Context, journal *trajectories.Journal) (trajectories.Outcome, error) {
	var watched <-chan struct{}
	return runner.Trial{
		Agent: t.agent, Sandboxes: taskSandbox{t}, Models: t.models, Instance: t.in,
		Session: agent.Session{
			Recorder: journal, Past: t.past, Supervisor: t.chat, Person: t.chat, Talk: t.talk,
			Events: t.bus, Opening: events.RunStarted{Model: modelName(t.cfg), Environment: t.boxes.class},
		},
		Tools: func() (agent.Toolbox, error) {
			return t.can.toolbox(toolPlace{in: t.in, dir: filepath.Dir(t.files.journal), stem: t.files.stem(), workspace: t.workspace()})
		},
		Ready: func(env.Info, time.Duration) {
			t.can.warn(t.Err)
			watched = t.watch(ctx)
		},
		Done: func(ctx context.Context, box env.Environment, out trajectories.Outcome) error {
			t.bus.Close()
			<-watched
			if keep := keeps(t.cfg.Run.Keep); keep != nil && keep(out) && t.cfg.Environment.Class == "docker" {
				return sayKept(ctx, t.Err, box)
			}
			return nil
		},
	}.Run(ctx)
}

// taskSandbox makes the sandbox of a task. The first Ctrl-C ends a pull.
type taskSandbox struct{ *task }

// Start implements runner.Sandboxes.
func (t taskSandbox) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	t.interrupts.set(nil)
	box, err := t.boxes.Start(ctx, in)
	if err == nil {
		t.interrupts.set(t.chat)
	}
	return box, err
}

// workspace is the user's own folder, where that is worked in.
func (t *task) workspace() string {
	if !onHost(t.boxes.class) {
		return ""
	}
	return t.dir()
}

// watch shows what happens until the bus is closed; the channel is closed when all
// was shown.
func (t *task) watch(ctx context.Context) <-chan struct{} {
	sub := t.bus.Subscribe(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.chat.Watch(context.WithoutCancel(ctx), sub)
	}()
	return done
}

// agreeOnTask asks for the task where there is none yet.
func (t *task) agreeOnTask(ctx context.Context) (err error) {
	if t.past != nil {
		return t.agreeToGoOn(ctx)
	}
	for t.in.ProblemStatement == "" {
		t.in.ProblemStatement, err = t.chat.Task(ctx, chat.Question{Text: "What is to be done?", Hint: "/m for several lines, /h helps"})
		if err != nil {
			return err
		}
	}
	return nil
}

// remember notes the session for --continue, and the files as they are. Neither
// is worth failing for.
func (t *task) remember(ctx context.Context) error {
	if !onHost(t.boxes.class) {
		return nil
	}
	if t.held == nil {
		folder, err := t.folder()
		if err == nil {
			note := sessions.Note{Task: t.in.ProblemStatement, Journal: t.files.journal, Trajectory: t.files.traj}
			if !isFolderURL(t.cfg) {
				note.BaseURL = t.cfg.Model.BaseURL
			}
			t.held, err = folder.New(note)
		}
		if err != nil {
			t.tree.missing = err
			_, err = fmt.Fprintln(t.Err, "mini: warning:", lines(err.Error())+"; --continue will not find this session")
			return err
		}
	}
	if t.Terminal {
		return t.tree.take(ctx, t.Err, t.held)
	}
	return nil
}

// release gives back what the session held.
func (t *task) release() error {
	if t.held == nil {
		return nil
	}
	return t.held.Close()
}
