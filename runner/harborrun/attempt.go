package harborrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Config configures the attempts at tasks. All fields are required.
type Config struct {
	Agent  runner.Agent
	Images *Images
	// Base is the configuration of containers as far as no task says otherwise.
	Base docker.Config
	// KeepProcesses leaves the agent's processes running while the tests run in its
	// container.
	KeepProcesses bool
	// Pristine runs the tests of a shared verifier once more, in a fresh container with
	// nothing but the diff of the agent. Those rewards count.
	Pristine bool
	// Start starts the container of a separate verifier.
	Start func(context.Context, docker.Config) (env.Environment, error)
	// Lookup returns the value of a variable of the host that tasks may use.
	Lookup func(name string) (string, bool)
	// Redact removes secrets from what the tests have written.
	Redact     func([]byte) []byte
	Folder     *runner.Folder
	Log        *runner.EventLog
	SigningKey []byte // signs the verdicts
	// Repeated means that there are several attempts at each task.
	Repeated bool
	// RunID, Model and MiniVersion are those of the verdicts.
	RunID, Model, MiniVersion string
}

// Tasks runs attempts at tasks.
type Tasks struct{ Config }

// Container returns the configuration of the container of an attempt, whose image it builds.
func (t *Tasks) Container(ctx context.Context, in datasets.Instance, c docker.Config) (docker.Config, error) {
	task, err := harbor.Read(in.TaskDir)
	if err != nil {
		return c, setupError(ctx, "read task "+in.ID, err)
	}
	variables, err := harbor.Expand(task.Environment.Env, t.Lookup)
	if err != nil {
		return c, setupError(ctx, "read task "+in.ID, err)
	}
	if c.Image = in.Image; task.Environment.DockerImage == "" {
		err = t.Images.Ensure(ctx, c.Image, filepath.Join(task.Dir, "environment"), task.Environment)
	}
	return configure(c, task.Environment, task.Environment.IsOffline(task.Steps[0].Agent), variables), err
}

// NewAgent returns the agent of an attempt: the configured one, and the verification after it.
func (t *Tasks) NewAgent(in datasets.Instance, repetition, number int) runner.Agent {
	return &attempt{Tasks: t, instance: in, repetition: repetition, number: number}
}

// attempt is one attempt at a task. It implements runner.Agent.
type attempt struct {
	*Tasks
	instance           datasets.Instance
	repetition, number int
	task               *harbor.Task
	current            string             // network of the container
	tree               *worktree.Tree     // nil unless the tests run in a pristine container, too
	shared             map[string]float64 // the rewards in the container of the agent, if tree is not nil
	image              docker.Image
	steps              []verdicts.StepVerdict // of the steps that were verified
	testsDir           string                 // folder of the files of the last tests
	warnings           []string
	logTruncated       bool
	logBytes           int64
}

// Run implements runner.Agent.
func (a *attempt) Run(ctx context.Context, s agent.Session) trajectories.Outcome {
	start := time.Now()
	held := &heldOutcome{Recorder: s.Recorder}
	s.Recorder = held
	out, err := a.run(ctx, s)
	if err == nil && out.Class.IsResult() {
		err = a.writeVerdict(out, start)
	}
	if err != nil {
		failed := agent.OutcomeOf(start, err)
		failed.Steps, failed.Usage, failed.Cost, failed.Times, failed.Warnings = out.Steps, out.Usage, out.Cost, out.Times, out.Warnings
		failed.PartialPatch = out.Submission
		out = failed
	}
	out.Warnings = append(out.Warnings, a.warnings...)
	return held.record(start, out)
}

// run runs the agent and the tests, one step of the task after the other.
func (a *attempt) run(ctx context.Context, s agent.Session) (out trajectories.Outcome, err error) {
	if a.task, err = harbor.Read(a.instance.TaskDir); err != nil {
		return out, setupError(ctx, "read task "+a.instance.ID, err)
	}
	if s.Environment.Info().ImageID == "" { // all processes of a sandbox are killed
		return out, errors.New("run task: the sandbox is no container")
	}
	if a.image, err = a.imageOf(ctx, s.Environment); err != nil {
		return out, err
	}
	a.current = a.network(a.task.Steps[0].Agent)
	if err := a.tryNetworks(ctx, s.Environment); err != nil {
		return out, err
	}
	if err := a.prepare(ctx, a.as(s.Environment, ""), a.image, a.task.Environment.Healthcheck); err != nil {
		return out, err
	}
	if a.Pristine && !a.task.IsSeparate(a.task.Steps[0]) {
		if a.tree, err = worktree.Open(ctx, s.Environment, worktree.Config{}); err == nil && a.tree.Missing != "" {
			err = &env.Error{
				Status: env.RepositoryRefused, Op: "run task " + a.instance.ID, Hint: "leave environment.pristine_tests out",
				Err: errors.New("there is " + a.tree.Missing + " from which a diff can be taken"),
			}
		}
		if err != nil {
			return out, setupError(ctx, "run task "+a.instance.ID, err)
		}
	}
	if len(a.task.Environment.MCPServers) > 0 || a.task.Environment.SkillsDir != "" {
		a.warnings = append(a.warnings, "the MCP servers and the skills of the task are not offered to the agent")
	}
	if len(a.task.UnknownKeys) > 0 {
		a.warnings = append(a.warnings, "task.toml has keys without effect: "+text.Printable(text.ClipRunes(strings.Join(a.task.UnknownKeys, ", "), 300)))
	}
	sandbox := s.Environment
	if own, ok := a.Agent.(*agent.Agent); ok && a.task.MultiStep {
		return a.converse(ctx, s, own)
	}
	var start time.Time // of the first step
	for _, step := range a.task.Steps {
		if err := a.prepareStep(ctx, a.as(sandbox, ""), step); err != nil {
			return out, err
		}
		s.Environment, s.Task.Text = a.as(sandbox, step.Agent.User), step.Instruction
		if out, err = a.runAgent(ctx, s, step); start.IsZero() {
			start = out.Start
		}
		out.Start = start
		if err != nil || !out.Class.IsResult() {
			return out, err
		}
		isReached, err := a.verify(ctx, sandbox, step)
		if err != nil || !isReached || out.Class != trajectories.Submitted {
			return out, err
		}
	}
	return out, nil
}

// runAgent runs the agent on a step, for at most the time of the task.
func (a *attempt) runAgent(ctx context.Context, s agent.Session, step harbor.Step) (trajectories.Outcome, error) {
	limit := 0.0
	if step.Agent.Timeout != nil {
		limit = *step.Agent.Timeout
	}
	if own, ok := a.Agent.(*agent.Agent); ok {
		return own.LimitWallTime(limit).Run(ctx, s), nil
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, seconds(limit, 0), agent.ErrTimeExceeded)
		defer cancel()
	}
	if _, ok := a.Agent.(Oracle); ok {
		variables, err := harbor.Expand(a.task.Solution.Env, a.Lookup)
		if err != nil {
			return trajectories.Outcome{}, setupError(ctx, "read task "+a.instance.ID, err)
		}
		return Oracle{task: a.task, step: step, env: variables}.Run(ctx, s), nil
	}
	return a.Agent.Run(ctx, s), nil
}

// imageOf returns the image of a container.
func (a *attempt) imageOf(ctx context.Context, e env.Environment) (docker.Image, error) {
	image, err := a.Images.Engine.Inspect(ctx, e.Info().ImageID)
	if image == nil {
		return docker.Image{}, err
	}
	return *image, err
}

// as returns the sandbox with a user for its commands; "" is the user of the image.
func (a *attempt) as(e env.Environment, user harbor.User) env.Environment {
	name := string(user)
	if name == "" {
		name = a.image.User
	}
	return asUser{Environment: e, user: name, home: a.task.Environment.Env["HOME"]}
}

// converse runs mini's own agent on a task with several steps, as one conversation: it gets
// the instruction of the next step after it has submitted one. The time limits add up.
func (a *attempt) converse(ctx context.Context, s agent.Session, own *agent.Agent) (out trajectories.Outcome, err error) {
	limit := 0.0
	for _, step := range a.task.Steps {
		if step.Agent.Timeout == nil {
			limit = 0
			break
		}
		limit += *step.Agent.Timeout
	}
	steps, sandbox := a.task.Steps, s.Environment
	if err := a.prepareStep(ctx, a.as(sandbox, ""), steps[0]); err != nil {
		return out, err
	}
	s.Environment, s.Task.Text = a.as(sandbox, steps[0].Agent.User), steps[0].Instruction
	user := &stepUser{attempt: a, sandbox: sandbox}
	s.User = user
	out = own.LimitWallTime(limit).Run(ctx, s)
	if out.Class.IsResult() && !user.ended && len(a.steps) < len(steps) { // a limit ended the step
		_, err = a.verify(ctx, sandbox, steps[len(a.steps)])
	}
	return out, err
}

// stepUser answers the agent's questions: the next task is the next step.
type stepUser struct {
	*attempt
	sandbox env.Environment
	ended   bool
}

// NextCommand implements agent.User.
func (*stepUser) NextCommand(context.Context) (string, error) { return "", nil }

// Answer implements agent.User.
func (*stepUser) Answer(context.Context) (string, error) { return "", nil }

// RaiseLimits implements agent.User.
func (*stepUser) RaiseLimits(context.Context, agent.Limits) (agent.Limits, bool, error) {
	return agent.Limits{}, false, nil
}

// NextTask implements agent.User.
func (u *stepUser) NextTask(ctx context.Context, _ *agent.Submitted) (string, error) {
	isReached, err := u.verify(ctx, u.sandbox, u.task.Steps[len(u.steps)])
	if err != nil {
		return "", err
	}
	if u.ended = !isReached || len(u.steps) == len(u.task.Steps); u.ended {
		return "", nil
	}
	next := u.task.Steps[len(u.steps)]
	return next.Instruction, u.prepareStep(ctx, u.as(u.sandbox, ""), next)
}

// heldOutcome is a recorder that holds back the outcome of the agent until the verification
// has ended.
type heldOutcome struct{ agent.Recorder }

// Append implements agent.Recorder.
func (h *heldOutcome) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	if t == trajectories.TypeOutcome {
		return trajectories.Record{}, nil
	}
	return h.Recorder.Append(t, data)
}

// record records and returns the outcome.
func (h *heldOutcome) record(start time.Time, out trajectories.Outcome) trajectories.Outcome {
	if out.Start.IsZero() {
		out.Start, out.End = start, time.Now()
	}
	rec, err := h.Recorder.Append(trajectories.TypeOutcome, out)
	if err == nil && rec.Redacted {
		err = json.Unmarshal(rec.Data, &out)
	}
	if err != nil {
		failed := agent.OutcomeOf(start, err)
		failed.Steps, failed.Usage, failed.Cost = out.Steps, out.Usage, out.Cost
		return failed
	}
	return out
}

// dir returns the folder of a step's files in the folder of the attempt.
func (a *attempt) dir(step harbor.Step, name string) string {
	return filepath.Join(filepath.Dir(a.Folder.Journal(a.instance.ID, a.number)), filepath.FromSlash(step.Dir), name)
}

// describe returns a sentence on the rewards.
func describe(rewards map[string]float64) string {
	text, _ := json.Marshal(rewards) // finite numbers
	return fmt.Sprintf("rewards %s", text)
}
