package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/minibench/mini/env"
)

const (
	// outputGrace is how long to wait for the end of a finished command's output while
	// another process holds the pipe.
	outputGrace = 20 * time.Millisecond
	// exitGrace is how long a process may live after the end of its command before it
	// counts as left running: many are about to exit.
	exitGrace = 3 * time.Millisecond
	// killWait is how long to wait for a killed shell.
	killWait = time.Second
)

// Runner runs commands and owns the processes that they leave running. Run must not be
// called concurrently, except for nested commands (see Command.Scope). Close may be
// called while Run runs.
type Runner struct {
	reaper    *reaper
	oom       oomCounter
	null      *os.File // the standard input of commands
	init      bool
	leftovers bool // processes of earlier commands may be running
	scopes    scopeTracker

	mu     sync.Mutex
	closed bool
	pipes  map[*pipe]struct{}
	wg     sync.WaitGroup // the readers of pipes
}

// NewRunner returns a Runner that takes over this process: it reaps every child, kills
// every descendant, and adopts orphans. No other code in the process may start or wait
// for children while the Runner is open.
func NewRunner() (*Runner, error) {
	reaper, err := newReaper()
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return &Runner{reaper: reaper, null: null, init: os.Getpid() == 1, pipes: map[*pipe]struct{}{}}, nil
}

// Run runs one command and writes the kept part of its output to out, in chunks of
// about 64 KiB, while the command runs. Result.Output stays empty. A command that
// cannot be run is a Result with Failure. The error is the context's cause if that
// ended the command, or ErrOuterEnded; every process of the command is dead then, as
// after a timeout. Nested commands have ended, too, when Run returns.
func (r *Runner) Run(ctx context.Context, c Command, out io.Writer) (env.Result, error) {
	if ctx.Err() != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, context.Cause(ctx)
	}
	if problem := c.problem(); problem != "" {
		return notRun(problem), nil
	}
	if err := c.Scope.enter(); err != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, err
	}
	defer c.Scope.leave()
	r.reaper.reapChildren() // reaps zombies
	before := r.processesToSpare(c.Scope)
	oom := r.oom.count()
	limiter := NewOutputLimiter(out, c.OutputLimit, c.Markers)
	began := time.Now()
	res := env.Result{OOMKilled: -1}
	shell, err := r.start(c, limiter)
	if errors.Is(err, syscall.EAGAIN) && !c.Scope.isNested() && r.leftovers {
		// Processes of earlier commands use up the process limit.
		t := (&killer{init: r.init}).run()
		res.Killed, res.Survivors, res.KilledEarlier = t.killed, t.survivors, true
		r.leftovers, before = t.survivors > 0, protectedSet{}
		shell, err = r.start(c, limiter)
	}
	if err != nil {
		return notRun(err.Error()), nil
	}
	status, err := r.wait(ctx, c, shell, before, &res)
	c.Scope.end(false)
	c.Scope.waitNested()
	res.Duration = time.Since(began)
	shell.pipe.waitComplete(outputGrace)
	limiter.Finish(&res)
	if err == nil && !res.TimedOut {
		res.ExitCode, res.Signal = exitCode(status)
		res.Background = r.background(before, c.Scope)
	}
	if count := r.oom.count(); oom >= 0 && count >= oom {
		res.OOMKilled = count - oom
	}
	return res, err
}

// processesToSpare returns the processes that the kill of a command must spare: those alive
// before it. There are none if the previous command left none, except for nested
// commands.
func (r *Runner) processesToSpare(scope *Scope) protectedSet {
	if !scope.isNested() && !r.leftovers {
		return protectedSet{}
	}
	var living []proc
	t := scanProcs()
	members := descendants(t)
	for _, p := range members {
		if p.isAlive() {
			living = append(living, p)
		}
	}
	if scope.isNested() {
		r.scopes.remember(t, living)
	}
	return protect(living)
}

// shellProcess is a started shell.
type shellProcess struct {
	exited <-chan syscall.WaitStatus
	pipe   *pipe
}

func (r *Runner) start(c Command, out *OutputLimiter) (shellProcess, error) {
	environ := c.environ()
	shell, ok := FindShell(c.Shell, environ)
	if !ok {
		return shellProcess{}, fmt.Errorf("There is no shell to run the command with (looked for %s).", shellNames(c.Shell)) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	script, err := prepareScript(shell, c.Script)
	if err != nil {
		return shellProcess{}, fmt.Errorf("The command cannot be passed to the shell: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	defer script.close()
	p, err := newPipe()
	if err != nil {
		return shellProcess{}, fmt.Errorf("The command cannot be started: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	defer p.closeWriter()
	var exited <-chan syscall.WaitStatus
	err = r.scopes.start(c.Scope, p.inode, func() (pid int, err error) {
		pid, exited, err = r.fork(shell[0], script, environ, c.Dir, p)
		return pid, err
	})
	if err != nil {
		p.r.Close()                                                                  //nolint:errcheck // nothing was written
		return shellProcess{}, fmt.Errorf("The command cannot be started: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	r.startReader(p, out)
	return shellProcess{exited: exited, pipe: p}, nil
}

func (r *Runner) fork(path string, script preparedScript, environ []string, dir string, p *pipe) (int, <-chan syscall.WaitStatus, error) {
	files := []uintptr{r.null.Fd(), uintptr(p.w), uintptr(p.w)}
	if script.file != nil {
		for len(files) < scriptFD {
			files = append(files, ^uintptr(0)) // closed in the child
		}
		files = append(files, script.file.Fd())
	}
	pid, exited, err := r.reaper.fork(path, script.argv, &syscall.ProcAttr{
		Dir:   dir,
		Env:   environ,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, err
	}
	// When memory runs out, the OOM killer must choose the command first.
	writeKernelFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", "1000")
	return pid, exited, nil
}

// writeKernelFile writes to a file in /proc with plain system calls. It ignores
// errors: the process may have exited, and nothing depends on the write.
func writeKernelFile(file, text string) {
	fd, err := syscall.Open(file, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	syscall.Write(fd, []byte(text)) //nolint:errcheck // see above
	syscall.Close(fd)               //nolint:errcheck // likewise
}

// startReader starts the goroutine that reads p.
func (r *Runner) startReader(p *pipe, out *OutputLimiter) {
	r.mu.Lock()
	r.pipes[p] = struct{}{}
	r.mu.Unlock()
	r.wg.Go(func() {
		p.read(out)
		r.mu.Lock()
		delete(r.pipes, p)
		r.mu.Unlock()
	})
}

// wait waits for the shell, and kills the processes of the command when it times out
// or is cancelled.
func (r *Runner) wait(ctx context.Context, c Command, shell shellProcess, before protectedSet, res *env.Result) (syscall.WaitStatus, error) {
	expired := c.Expired
	if expired == nil && c.Timeout > 0 {
		timer := time.NewTimer(c.Timeout)
		defer timer.Stop()
		expired = timer.C
	}
	var err error
	select {
	case status := <-shell.exited:
		if !c.Scope.isOuterKilled() {
			return status, nil
		}
		res.ExitCode = -1
		c.Scope.end(true)
		return 0, ErrOuterEnded // it did not exit by itself
	case <-expired:
		res.TimedOut = true
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.Scope.outerDone():
		err = ErrOuterEnded
	}
	res.ExitCode = -1
	c.Scope.end(true)
	wait := killWait
	if errors.Is(err, ErrOuterEnded) && c.Scope.isOuterKilled() {
		wait += 2 * killTime // the kill of the outer command includes this one
	} else {
		t := (&killer{protected: before, scopes: &r.scopes, scope: c.Scope, init: r.init}).run()
		res.Killed, res.Survivors, res.KilledEarlier = t.killed, t.survivors, t.killedEarlier
		if !c.Scope.isNested() {
			r.leftovers = r.leftovers || t.survivors > 0
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-shell.exited:
	case <-timer.C:
	}
	r.reaper.reapChildren() // reaps zombies
	return 0, err
}

// background returns the processes that the command left running, oldest first.
func (r *Runner) background(before protectedSet, scope *Scope) []env.Process {
	leftover := func() []proc { return r.leftover(before) }
	if scope.isNested() {
		leftover = func() []proc { return r.leftoverNested(before, scope) }
	}
	left := leftover()
	if len(left) > 0 {
		time.Sleep(exitGrace)
		left = slices.DeleteFunc(leftover(), proc.isDying)
	}
	var list []env.Process
	for _, p := range left[:min(len(left), env.MaxBackground)] {
		list = append(list, env.Process{PID: p.pid, Name: p.name})
	}
	return list
}

func (r *Runner) leftover(before protectedSet) []proc {
	if r.leftovers = !r.reaper.reapChildren(); !r.leftovers {
		return nil // the usual case, without a scan of all processes
	}
	t := scanProcs()
	protected := before.contains(t)
	var left []proc
	r.leftovers = false
	for _, p := range descendants(t) {
		if !p.isAlive() {
			continue
		}
		r.leftovers = true
		if !protected(p) {
			left = append(left, p)
		}
	}
	return left
}

// leftoverNested is leftover for a nested command.
func (r *Runner) leftoverNested(before protectedSet, scope *Scope) []proc {
	t := scanProcs()
	protected := (&killer{protected: before, scopes: &r.scopes, scope: scope}).isProtected(t)
	return slices.DeleteFunc(descendants(t), func(p proc) bool { return !p.isAlive() || protected(p) })
}

// Close kills every process that commands started and waits for them, at most until
// ctx ends. A second call returns nil.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	t := (&killer{init: r.init}).run()
	r.mu.Lock()
	for p := range r.pipes {
		p.r.Close() //nolint:errcheck // its reader may have closed it
	}
	r.mu.Unlock()
	done := make(chan struct{})
	go func() { // returns when the readers return, after their pipes are closed
		r.wg.Wait()
		r.reaper.close()
		r.oom.close()
		r.null.Close() //nolint:errcheck // nothing was written
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("close runner: %w", context.Cause(ctx))
	}
	if t.survivors > 0 {
		return fmt.Errorf("close runner: %d processes cannot be killed", t.survivors)
	}
	return nil
}

// exitCode returns the exit code as shells define it: 128+n if signal n killed the
// process.
func exitCode(ws syscall.WaitStatus) (code, signal int) {
	if ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}

func shellNames(shell []string) string {
	if len(shell) == 0 || shell[0] == "bash" {
		return "bash and sh"
	}
	return shell[0]
}
