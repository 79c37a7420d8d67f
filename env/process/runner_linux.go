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
	// grace is how long a finished command's output is awaited while
	// somebody else holds the pipe.
	grace = 20 * time.Millisecond
	// afterglow is how long a process found after the end of its command is
	// given before it counts as left running: many are just ending.
	afterglow = 3 * time.Millisecond
	// lastWait bounds the wait for a killed shell that will not die.
	lastWait = time.Second
)

// Runner runs commands and owns the processes they leave behind. Run may be
// called by one goroutine at a time, but for commands inside of one that runs
// (see Command.Place); Close may be called while it runs.
type Runner struct {
	owner  *owner
	oom    oomCounter
	null   *os.File // what commands read
	init   bool
	alive  bool // something may be running since the last command that ran by itself
	places places

	mu     sync.Mutex
	closed bool
	pipes  map[*pipe]struct{}
	wg     sync.WaitGroup // the readers of pipes
}

// NewOwner returns a Runner that takes this whole process for itself: it
// collects every child, kills every descendant, and adopts orphans. Nothing
// else in the process may start or await children while it is open.
func NewOwner() (*Runner, error) {
	o, err := newOwner()
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return &Runner{owner: o, null: null, init: os.Getpid() == 1, pipes: map[*pipe]struct{}{}}, nil
}

// Run runs one command and passes the kept part of its output to out, in
// pieces of at most 64 KiB or so while it runs. Result.Output stays empty. A command that
// cannot be run is a Result with Failure. The error is the context's cause
// when that ended the run, or ErrOver; everything the command started is dead
// then, as after a timeout. What runs inside of the command is over, too, when Run
// returns.
func (r *Runner) Run(ctx context.Context, c Command, out io.Writer) (env.Result, error) {
	if ctx.Err() != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, context.Cause(ctx)
	}
	if why := c.obstacle(); why != "" {
		return failure(why), nil
	}
	if err := c.Place.enter(); err != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, err
	}
	defer c.Place.leave()
	r.owner.barren() // collects what has died since the last command
	before := r.snapshot(c.Place)
	oom := r.oom.now()
	collected := NewOutput(out, c.OutputLimit, c.Markers)
	began := time.Now()
	res := env.Result{OOMKilled: -1}
	shell, err := r.start(c, collected)
	if errors.Is(err, syscall.EAGAIN) && !c.Place.nested() && r.alive {
		// What earlier commands left running has every process there may be.
		t := (&purge{init: r.init}).run()
		res.Killed, res.Survivors, res.Collateral = t.killed, t.survivors, true
		r.alive, before = t.survivors > 0, kept{}
		shell, err = r.start(c, collected)
	}
	if err != nil {
		return failure(err.Error()), nil
	}
	status, err := r.await(ctx, c, shell, before, &res)
	c.Place.end(false)
	c.Place.empty()
	res.Duration = time.Since(began)
	shell.pipe.settle(grace)
	collected.Finish(&res)
	if err == nil && !res.TimedOut {
		res.ExitCode, res.Signal = exitCode(status)
		res.Background = r.background(before, c.Place)
	}
	if now := r.oom.now(); oom >= 0 && now >= oom {
		res.OOMKilled = now - oom
	}
	return res, err
}

// snapshot looks at what is alive before a command. After a command that left
// nothing there is nothing to look for; inside of one there always is.
func (r *Runner) snapshot(place *Place) kept {
	if !place.nested() && !r.alive {
		return kept{}
	}
	var living []proc
	t := scan()
	members := descendants(t)
	for _, p := range members {
		if p.alive() {
			living = append(living, p)
		}
	}
	if place.nested() {
		r.places.look(t, living)
	}
	return keep(living)
}

// running is a shell that was started.
type running struct {
	exited <-chan syscall.WaitStatus
	pipe   *pipe
}

func (r *Runner) start(c Command, out *Output) (running, error) {
	environ := c.environ()
	shell, ok := FindShell(c.Shell, environ)
	if !ok {
		return running{}, fmt.Errorf("There is no shell to run the command with (looked for %s).", wanted(c.Shell)) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	script, err := prepare(shell, c.Script)
	if err != nil {
		return running{}, fmt.Errorf("The command cannot be passed to the shell: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	defer script.close()
	p, err := newPipe()
	if err != nil {
		return running{}, fmt.Errorf("The command cannot be started: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	defer p.closeWriter()
	var exited <-chan syscall.WaitStatus
	err = r.places.start(c.Place, p.inode, func() (pid int, err error) {
		pid, exited, err = r.fork(shell[0], script, environ, c.Dir, p)
		return pid, err
	})
	if err != nil {
		p.r.Close()                                                             //nolint:errcheck // nothing was written
		return running{}, fmt.Errorf("The command cannot be started: %w.", err) //nolint:staticcheck,revive // a sentence for Result.Failure
	}
	r.follow(p, out)
	return running{exited: exited, pipe: p}, nil
}

func (r *Runner) fork(path string, script prepared, environ []string, dir string, p *pipe) (int, <-chan syscall.WaitStatus, error) {
	files := []uintptr{r.null.Fd(), uintptr(p.w), uintptr(p.w)}
	if script.file != nil {
		for len(files) < scriptFD {
			files = append(files, ^uintptr(0)) // closed in the child
		}
		files = append(files, script.file.Fd())
	}
	pid, exited, err := r.owner.fork(path, script.argv, &syscall.ProcAttr{
		Dir:   dir,
		Env:   environ,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, err
	}
	// When memory runs out, the kernel is to take the command first.
	offer("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", "1000")
	return pid, exited, nil
}

// offer writes to a file of the kernel's with nothing but the system calls. The
// process it is about may be gone, and nothing depends on it.
func offer(file, text string) {
	fd, err := syscall.Open(file, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	syscall.Write(fd, []byte(text)) //nolint:errcheck // as said
	syscall.Close(fd)               //nolint:errcheck // likewise
}

// follow starts the reader of p.
func (r *Runner) follow(p *pipe, out *Output) {
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

// await waits for the shell, and kills what the command started when its time
// is over.
func (r *Runner) await(ctx context.Context, c Command, shell running, before kept, res *env.Result) (syscall.WaitStatus, error) {
	expired := c.Expired
	if expired == nil && c.Timeout > 0 {
		timer := time.NewTimer(c.Timeout)
		defer timer.Stop()
		expired = timer.C
	}
	var err error
	select {
	case status := <-shell.exited:
		if !c.Place.outerKilled() {
			return status, nil
		}
		res.ExitCode = -1
		c.Place.end(true)
		return 0, ErrOver // it did not end by itself
	case <-expired:
		res.TimedOut = true
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.Place.outerOver():
		err = ErrOver
	}
	res.ExitCode = -1
	c.Place.end(true)
	patience := lastWait
	if errors.Is(err, ErrOver) && c.Place.outerKilled() {
		patience += 2 * killTime // the kill of the other one hits this one
	} else {
		t := (&purge{kept: before, places: &r.places, place: c.Place, init: r.init}).run()
		res.Killed, res.Survivors, res.Collateral = t.killed, t.survivors, t.collateral
		if !c.Place.nested() {
			r.alive = r.alive || t.survivors > 0
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-shell.exited:
	case <-timer.C:
	}
	r.owner.barren() // collects the dead
	return 0, err
}

// background lists what the command left running, oldest first.
func (r *Runner) background(before kept, place *Place) []env.Process {
	leftover := func() []proc { return r.leftover(before) }
	if place.nested() {
		leftover = func() []proc { return r.leftInside(before, place) }
	}
	left := leftover()
	if len(left) > 0 {
		time.Sleep(afterglow)
		left = slices.DeleteFunc(leftover(), proc.dying)
	}
	var list []env.Process
	for _, p := range left[:min(len(left), env.MaxBackground)] {
		list = append(list, env.Process{PID: p.pid, Name: p.name})
	}
	return list
}

func (r *Runner) leftover(before kept) []proc {
	if r.alive = !r.owner.barren(); !r.alive {
		return nil // the usual case, told without a look at every process
	}
	t := scan()
	protects := before.within(t)
	var left []proc
	r.alive = false
	for _, p := range descendants(t) {
		if !p.alive() {
			continue
		}
		r.alive = true
		if !protects(p) {
			left = append(left, p)
		}
	}
	return left
}

// leftInside is leftover of a command inside of another one.
func (r *Runner) leftInside(before kept, place *Place) []proc {
	t := scan()
	protects := (&purge{kept: before, places: &r.places, place: place}).protection(t)
	return slices.DeleteFunc(descendants(t), func(p proc) bool { return !p.alive() || protects(p) })
}

// Close kills everything that commands started and waits for it, at most until
// ctx ends. A second call returns nil.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	t := (&purge{init: r.init}).run()
	r.mu.Lock()
	for p := range r.pipes {
		p.r.Close() //nolint:errcheck // its reader may have closed it
	}
	r.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the readers, which end with their closed pipes
		r.wg.Wait()
		r.owner.close()
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

// exitCode is the shell's view: 128+n for a death by signal n.
func exitCode(ws syscall.WaitStatus) (code, signal int) {
	if ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}

func wanted(shell []string) string {
	if len(shell) == 0 || shell[0] == "bash" {
		return "bash and sh"
	}
	return shell[0]
}
