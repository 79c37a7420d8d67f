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
	reaper       *reaper
	oom          oomCounter
	guard        *memoryGuard // nil if there is no need of one
	devNull      *os.File     // the standard input of commands
	isInit       bool
	hasLeftovers bool // processes of earlier commands may be running
	scopes       scopeTracker
	kept         keptFiles

	mu     sync.Mutex
	closed bool
	pipes  map[*pipe]struct{}
	wg     sync.WaitGroup // the readers of pipes
}

// NewRunner returns a Runner that takes over this process: it adopts orphans and reaps
// every child, and Close kills every descendant. No other code in the process may start
// or wait for children while the Runner is open.
func NewRunner() (*Runner, error) {
	reaper, err := newReaper()
	if err != nil {
		return nil, err
	}
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	r := &Runner{reaper: reaper, devNull: devNull, isInit: os.Getpid() == 1, pipes: map[*pipe]struct{}{}}
	if r.isInit { // of a container, where the root of the tree is the container's group
		r.guard = startMemoryGuard("/sys/fs/cgroup")
	}
	return r, nil
}

// Run runs one command and writes the kept part of its output to out: the head in
// chunks of at most 64 KiB while the command runs, the tail in one or two chunks after
// the command has ended. Result.Output stays empty. If the command cannot be run,
// Result.Failure says why. If ctx ended the command, the error is the context's cause;
// if the outer command ended, it is ErrOuterEnded. In both cases every process of the
// command has been killed, as after a timeout (see Result.Survivors). Nested commands
// have ended, too, when Run returns.
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
	if len(c.Shell) == 1 && c.Shell[0] == env.KillProgram {
		kill := (&killer{isInit: r.isInit}).run()
		r.hasLeftovers = kill.survivors > 0
		return env.Result{Killed: kill.killed, Survivors: kill.survivors, OOMKilled: -1}, nil
	}
	r.reaper.reapChildren() // reaps zombies
	spared := r.processesToSpare(c.Scope)
	oomBefore, guardBefore := r.oom.count(), r.guard.count()
	outputs := NewOutput(out, c.Script, c.OutputLimit, c.Markers)
	started := time.Now()
	res := env.Result{OOMKilled: -1}
	shell, err := r.start(c, outputs)
	if errors.Is(err, syscall.EAGAIN) && !c.Scope.isNested() && r.hasLeftovers {
		// Processes of earlier commands use up the process limit.
		kill := (&killer{isInit: r.isInit}).run()
		res.Killed, res.Survivors, res.KilledEarlier = kill.killed, kill.survivors, true
		r.hasLeftovers, spared = kill.survivors > 0, protectedSet{}
		shell, err = r.start(c, outputs)
	}
	if err != nil {
		return notRun(err.Error()), nil
	}
	status, err := r.wait(ctx, c, shell, spared, &res)
	c.Scope.end(false)
	c.Scope.waitNested()
	res.Duration = time.Since(started)
	r.kept.receive(shell.socket)
	for _, p := range shell.pipes {
		p.waitComplete(outputGrace)
	}
	ended := err == nil && !res.TimedOut
	if ended {
		res.ExitCode, res.Signal = exitCode(status)
	}
	outputs.Finish(ended && res.ExitCode == 0, &res)
	if ended {
		res.Background = r.background(spared, c.Scope)
	}
	if count := r.oom.count(); oomBefore >= 0 && count >= oomBefore {
		res.OOMKilled = count - oomBefore + r.guard.count() - guardBefore
	}
	return res, err
}

// processesToSpare returns the processes that the kill of a command must spare: those
// alive before it. The set is empty if no earlier command left a process and the
// command is not nested.
func (r *Runner) processesToSpare(scope *Scope) protectedSet {
	if !scope.isNested() && !r.hasLeftovers {
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
	return newProtectedSet(living)
}

// shellProcess is a started shell.
type shellProcess struct {
	exited <-chan syscall.WaitStatus
	pipes  []*pipe
	socket *os.File // of the repository program: what passes files to keep; else nil
}

func (r *Runner) start(c Command, out *Output) (shellProcess, error) {
	environ := c.environ()
	shell, ok := FindShell(c.Shell, environ)
	if c.isRepositoryProgram() {
		shell, ok = []string{"/proc/self/exe"}, true
	}
	if !ok {
		return shellProcess{}, fmt.Errorf("There is no shell to run the command with (looked for %s).", shellNames(c.Shell)) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	var script preparedScript
	var err error
	if c.isRepositoryProgram() {
		script, err = r.kept.prepare(c.Script)
	} else {
		script, err = prepareScript(shell, c.Script)
	}
	if err != nil {
		return shellProcess{}, fmt.Errorf("The command cannot be passed to the shell: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	defer script.close()
	identity, err := lookupIdentity(c.User)
	if err != nil {
		return shellProcess{}, fmt.Errorf("The command cannot be run as the user %.60q: %w.", c.User, err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	writers := out.Writers()
	pipes := make([]*pipe, len(writers))
	for i := range pipes {
		if pipes[i], err = newPipe(); err != nil {
			closePipes(pipes[:i])
			return shellProcess{}, fmt.Errorf("The command cannot be started: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
		}
		defer pipes[i].closeWriter()
	}
	var exited <-chan syscall.WaitStatus
	err = r.scopes.start(c.Scope, pipes[0].inode, func() (pid int, err error) {
		pid, exited, err = r.fork(shell[0], script, environ, c.Dir, pipes, identity)
		return pid, err
	})
	if err != nil {
		closePipes(pipes)
		return shellProcess{}, fmt.Errorf("The command cannot be started: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	for i, p := range pipes {
		r.startReader(p, writers[i])
	}
	return shellProcess{exited: exited, pipes: pipes, socket: script.takeReceiver()}, nil
}

func closePipes(pipes []*pipe) {
	for _, p := range pipes {
		p.r.Close() //nolint:errcheck // nothing was written
	}
}

func (r *Runner) fork(path string, script preparedScript, environ []string, dir string, pipes []*pipe, identity *syscall.Credential) (int, <-chan syscall.WaitStatus, error) {
	files := []uintptr{r.devNull.Fd(), uintptr(pipes[0].w), uintptr(pipes[len(pipes)-1].w)}
	switch {
	case script.socket != nil:
		files[0] = script.file.Fd()
		files = append(files, r.kept.inherited(script.socket)...)
	case script.file != nil:
		for len(files) < scriptFD {
			files = append(files, ^uintptr(0)) // closed in the child
		}
		files = append(files, script.file.Fd())
	}
	if identity != nil { // so that the command can open /dev/stdout
		for _, p := range pipes {
			_ = syscall.Fchown(p.w, int(identity.Uid), int(identity.Gid)) // as in a container without this user
		}
	}
	pid, exited, err := r.reaper.fork(path, script.argv, &syscall.ProcAttr{
		Dir:   dir,
		Env:   environ,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, Credential: identity},
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
func (r *Runner) startReader(p *pipe, out io.Writer) {
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

// wait waits for the shell, and kills the processes of the command when the command
// times out or is cancelled, or when its outer command ends.
func (r *Runner) wait(ctx context.Context, c Command, shell shellProcess, spared protectedSet, res *env.Result) (syscall.WaitStatus, error) {
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
		return 0, ErrOuterEnded // the kill of the outer command killed the shell
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
		kill := (&killer{protected: spared, scopes: &r.scopes, scope: c.Scope, isInit: r.isInit}).run()
		res.Killed, res.Survivors, res.KilledEarlier = kill.killed, kill.survivors, kill.killedEarlier
		if !c.Scope.isNested() {
			r.hasLeftovers = r.hasLeftovers || kill.survivors > 0
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
func (r *Runner) background(spared protectedSet, scope *Scope) []env.Process {
	leftover := func() []proc { return r.leftover(spared) }
	if scope.isNested() {
		leftover = func() []proc { return r.leftoverNested(spared, scope) }
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

// leftover returns the living processes that are not spared, and updates hasLeftovers.
func (r *Runner) leftover(spared protectedSet) []proc {
	if r.hasLeftovers = !r.reaper.reapChildren(); !r.hasLeftovers {
		return nil // the usual case needs no scan of all processes
	}
	t := scanProcs()
	protected := spared.contains(t)
	var left []proc
	r.hasLeftovers = false
	for _, p := range descendants(t) {
		if !p.isAlive() {
			continue
		}
		r.hasLeftovers = true
		if !protected(p) {
			left = append(left, p)
		}
	}
	return left
}

// leftoverNested is the variant of leftover for a nested command.
func (r *Runner) leftoverNested(spared protectedSet, scope *Scope) []proc {
	t := scanProcs()
	protected := (&killer{protected: spared, scopes: &r.scopes, scope: scope}).isProtected(t)
	return slices.DeleteFunc(descendants(t), func(p proc) bool { return !p.isAlive() || protected(p) })
}

// Close kills every process that commands started, which may take seconds even if ctx
// has ended. Then it waits for the readers of the output pipes, at most until ctx ends.
// A second call returns nil.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	r.guard.close()
	kill := (&killer{isInit: r.isInit}).run()
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
		r.kept.close()
		r.devNull.Close() //nolint:errcheck // nothing was written
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("close runner: %w", context.Cause(ctx))
	}
	if kill.survivors > 0 {
		return fmt.Errorf("close runner: %d processes cannot be killed", kill.survivors)
	}
	return nil
}

// exitCode returns the exit code as shells define it: 128+n if signal n killed the
// process. signal is n, or 0 if none did.
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
