package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

const (
	defaultLimitGrace = 10 * time.Second // for Config.LimitGrace
	// commandTimeout bounds the agent if agent.wall_time_limit_seconds does not.
	commandTimeout = 7 * 24 * time.Hour
	versionTimeout = time.Minute
	outputLimit    = 128 << 10 // bytes of the agent's output that are kept
	shownOutput    = 4 << 10   // bytes of it in an error
	fewRequests    = 3
)

// Config are the settings of the run.
type Config struct {
	ModelName string
	// Dialects are the names of those that the model's provider speaks.
	Dialects []string
	// Dir is the folder of the definition as the sandbox has it, and FolderSHA256 the hash
	// of its content; both are "" if there is none.
	Dir, FolderSHA256 string
	// Tokens asks for the tokens of replies, in the dialects that have them.
	Tokens bool
	// LimitGrace is how long the agent may go on after a request was refused at a limit;
	// 0 means 10 seconds.
	LimitGrace time.Duration
}

// Agent is an agent other than mini's own. It implements runner.Agent.
type Agent struct {
	own *agent.Agent // for what surrounds the work: limits, preparation, diff, outcome
	def Definition
	cfg Config
}

// New returns an agent. own has the limits and the settings of the diff.
func New(own *agent.Agent, def Definition, cfg Config) *Agent { return &Agent{own, def, cfg} }

// Definition returns the definition of the agent.
func (a *Agent) Definition() Definition { return a.def }

// FolderSHA256 returns Config.FolderSHA256.
func (a *Agent) FolderSHA256() string { return a.cfg.FolderSHA256 }

// Run implements runner.Agent.
func (a *Agent) Run(ctx context.Context, s agent.Session) trajectories.Outcome {
	return a.own.RunLoop(ctx, s, a.work)
}

// work starts the agent and waits for its end. The error says how the attempt ended.
func (a *Agent) work(ctx context.Context, attempt *agent.Attempt) error {
	s := attempt.Session()
	id, _ := s.Task.Instance["instance_id"].(string) // a task alone has none
	prompt := a.def.prompt(s.Task.Text, id, s.Environment.Info().Dir)
	if a.def.Prompt == PromptArgument && len(prompt) > maxArgument {
		return &env.Error{Status: env.SetupFailed, Op: "start agent", Err: fmt.Errorf("the task of %d bytes is too long for an argument", len(prompt)), Hint: "set prompt: file or stdin in the agent's definition"}
	}
	run := trajectories.AgentRun{Name: a.def.Name, Dialect: a.def.Dialect, Command: a.def.Command, SHA256: a.def.sha256, FolderSHA256: a.cfg.FolderSHA256}
	for name := range a.def.Env {
		run.Env = append(run.Env, name)
	}
	version, err := a.version(ctx, s.Environment)
	if err != nil {
		return err
	}
	run.Version = version

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := limiter{attempt: attempt, cancel: cancel, grace: cmp.Or(a.cfg.LimitGrace, defaultLimitGrace)}
	defer limit.stop()
	rec := newRecorder(attempt, a.def.Tools, s.Task.Text)
	var unknown sync.Mutex
	b := bridge.New(ctx, bridge.Config{
		Model: s.Model, ModelName: a.cfg.ModelName, Dialects: a.cfg.Dialects, AllowServerTools: a.def.ServerTools == "allow", Tokens: a.cfg.Tokens,
		Begin: limit.begin, Record: rec.record, Warn: attempt.Warn,
		OnUnknown: func(endpoint string) {
			unknown.Lock()
			defer unknown.Unlock()
			run.Unknown = append(run.Unknown, endpoint)
		},
	})
	start := time.Now()
	res, err := s.Environment.Execute(ctx, env.Command{
		Script: a.exportDir() + a.def.script(prompt, b.Token(), a.cfg.ModelName), Timeout: commandTimeout, OutputLimit: outputLimit, Bridge: b.Open,
	})
	b.Close()
	endErr := rec.end()
	run.ExitCode, run.Output, run.Truncated, run.Bytes = res.ExitCode, res.Output, res.Truncated, res.Bytes
	run.Duration = trajectories.Seconds(time.Since(start))
	if res.Truncated {
		run.Head = res.Head
	}
	if _, recErr := attempt.Append(trajectories.TypeAgentRun, run); recErr != nil || endErr != nil {
		return errors.Join(err, recErr, endErr)
	}
	for _, endpoint := range run.Unknown {
		attempt.Warn("UnknownEndpoint: " + endpoint)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a.result(rec, attempt, res, limit.reached(), err)
}

// result returns the error that ends the attempt, by the first rule that matches.
func (a *Agent) result(rec *recorder, attempt *agent.Attempt, res env.Result, limitErr, err error) error {
	isTime := errors.Is(err, agent.ErrTimeExceeded) || res.TimedOut
	_, lost := errors.AsType[*env.Error](err)
	providerErr := rec.providerError()
	switch {
	case errors.Is(limitErr, agent.ErrBudgetExhausted):
		return limitErr
	case lost, err != nil && !isTime && limitErr == nil: // interrupted, or an error of mini
		return err
	case rec.calls == 0 && limitErr == nil:
		return &env.Error{
			Status: env.AgentNotStarted, Op: "run agent " + a.def.Name, Err: errors.New(describe(res)),
			Hint: "check that the agent is in the image and that its definition is right",
		}
	case providerErr != nil && limitErr == nil && !isTime:
		return providerErr
	case limitErr != nil:
		return limitErr
	case isTime:
		return agent.ErrTimeExceeded
	}
	if res.ExitCode != 0 {
		attempt.Warn(fmt.Sprintf("AgentExited(%d): the agent failed after its last model call; its working diff counts", res.ExitCode))
	}
	if rec.calls < fewRequests {
		attempt.Warn(fmt.Sprintf("the agent made only %d model calls", rec.calls))
	}
	return &agent.Submitted{Source: trajectories.SourceWorktree}
}

// describe says how an agent ended that asked for nothing.
func describe(res env.Result) string {
	if res.Failure != "" {
		return "no model call arrived: " + res.Failure
	}
	out := res.Output[max(0, len(res.Output)-shownOutput):]
	text := fmt.Sprintf("no model call arrived before it ended with exit code %d", res.ExitCode)
	if shown := strings.TrimSpace(strings.ToValidUTF8(string(out), "?")); shown != "" {
		text += ": " + shown
	}
	return text
}

// exportDir returns the command that sets $MINI_AGENT.
func (a *Agent) exportDir() string {
	if a.cfg.Dir == "" {
		return ""
	}
	return "export MINI_AGENT=" + quote(a.cfg.Dir) + "\n"
}

// version runs the command that prints the agent's version.
func (a *Agent) version(ctx context.Context, e env.Environment) (string, error) {
	if a.def.Version == "" {
		return "", nil
	}
	res, err := e.Execute(ctx, env.Command{Script: a.exportDir() + "(" + a.def.Version + "\n) </dev/null", Timeout: versionTimeout})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(res.Output), "?")), "\n")
	if res.ExitCode != 0 {
		return "", nil // the agent will say what is wrong
	}
	return first[:min(len(first), 200)], nil
}

// limiter reserves model calls, and ends the agent some time after a limit was reached.
type limiter struct {
	attempt *agent.Attempt
	cancel  context.CancelCauseFunc
	grace   time.Duration

	mu    sync.Mutex
	err   error
	timer *time.Timer
}

// begin is a bridge.Config.Begin. A request that counts tokens is no step.
func (l *limiter) begin(isCount bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	reserve := l.attempt.ReserveCall
	if isCount {
		reserve = l.attempt.CheckBudget
	}
	err := reserve()
	if err != nil {
		l.err = err
		l.timer = time.AfterFunc(l.grace, func() { l.cancel(err) })
	}
	return err
}

func (l *limiter) reached() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *limiter) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// asModelError returns the *model.Error in err; for another error, one of the provider.
func asModelError(err error) *model.Error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	return &model.Error{Status: model.ProviderError, Err: err}
}
