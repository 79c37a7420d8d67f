//go:build full && linux

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/minibench/mini/env/docker/dockertest"
)

// These tests end a real mini in several ways, in an engine of their own, and check
// that nothing is left. They wait long, since the machine may be busy, and log the time.
const waitTimeout = 3 * time.Minute

// leakPlace holds an engine and the arguments of a batch.
type leakPlace struct {
	t      *testing.T
	daemon *dockertest.Daemon
	dir    string
	args   []string
	runs   int
}

func newLeakPlace(t *testing.T) *leakPlace {
	t.Helper()
	t.Parallel()
	p := &leakPlace{t: t, daemon: dockertest.StartDaemon(t), dir: t.TempDir()}
	var rows strings.Builder
	for i := range 4 {
		fmt.Fprintf(&rows, `{"instance_id":"x__y-%d","problem_statement":"p","image":"%s"}`+"\n", i, dockertest.SmallImage)
	}
	replies := "- |\n  ```bash\n  sleep 1\n  ```\n- |\n  ```bash\n  sleep 600\n  ```\n"
	for name, content := range map[string]string{"rows.jsonl": rows.String(), "replies.yaml": replies} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.args = []string{
		"bench", "--progress", "plain", "--subset", "rows.jsonl", "-w", "4", "--model-class", "scripted",
		"-c", "model.replies=replies.yaml", "-c", "environment.helper_dir=" + dockertest.HelperDir(t), "-c", "environment.timeout=600",
	}
	return p
}

// command returns a mini command that uses the engine, and its output.
func (p *leakPlace) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	var output bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "mini", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+p.daemon.Host(), "HOME="+p.dir, "GOTRACEBACK=none")
	cmd.Stdout, cmd.Stderr = &output, &output
	return cmd, &output
}

// batch starts mini bench, whose commands would run for ten minutes.
func (p *leakPlace) batch() *batch {
	p.t.Helper()
	p.runs++
	cmd, output := p.command(append(p.args, "-o", fmt.Sprintf("run-%d", p.runs))...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	b := &batch{t: p.t, cmd: cmd, output: output, ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		_ = cmd.Wait() // tests check cmd.ProcessState
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-b.ended
	})
	return b
}

// batch is a running mini bench. Its output can be read after ended is closed.
type batch struct {
	t      *testing.T
	cmd    *exec.Cmd
	output *bytes.Buffer
	ended  chan struct{}
}

func (b *batch) signal(sig os.Signal) {
	b.t.Helper()
	if err := b.cmd.Process.Signal(sig); err != nil {
		b.t.Errorf("signal %s: %v", sig, err)
	}
}

// wait returns the exit code.
func (b *batch) wait() int {
	b.t.Helper()
	select {
	case <-b.ended:
		return b.cmd.ProcessState.ExitCode()
	case <-time.After(5 * time.Minute):
		b.t.Fatal("mini does not end")
		return 0
	}
}

// containers returns the names and states of the containers in the engine: of the
// running ones, or of all.
func (p *leakPlace) containers(all bool) []string {
	p.t.Helper()
	c := p.daemon.Client()
	defer c.Close()
	list, err := c.ContainerList(context.WithoutCancel(p.t.Context()), container.ListOptions{All: all})
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, l := range list {
		name := strings.Join(l.Names, ",")
		if l.State == "dead" && name == "" {
			continue // the engine was killed while it removed this container
		}
		names = append(names, name+" "+l.State)
	}
	return names
}

// until waits until the condition is true, and returns for how long it waited.
func (p *leakPlace) until(description string, condition func() bool) time.Duration {
	p.t.Helper()
	begin := time.Now()
	for !condition() {
		if time.Since(begin) > waitTimeout {
			p.t.Fatalf("after %s still not: %s; there are %q", waitTimeout, description, p.containers(true))
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begin)
}

// checkCleanup checks that no container runs soon after the end of a mini, and that
// none is left in any state after mini clean.
func (p *leakPlace) checkCleanup(ended time.Time) {
	p.t.Helper()
	p.until("no container runs", func() bool { return len(p.containers(false)) == 0 })
	took := time.Since(ended)
	left := p.containers(true)
	// It is repeated, because a slow engine may create a container after mini was killed.
	p.until("nothing is left after mini clean", func() bool {
		cmd, output := p.command("clean", "--json")
		if err := cmd.Run(); err != nil {
			p.t.Fatalf("mini clean: %v: %s", err, output)
		}
		return len(p.containers(true)) == 0
	})
	p.t.Logf("nothing ran after %s; %d in another state: %q", took.Round(time.Millisecond), len(left), left)
}

// removeHelperVolume removes the helper's volume, so that the next start fills it
// again.
func (p *leakPlace) removeHelperVolume() {
	p.t.Helper()
	c := p.daemon.Client()
	defer c.Close()
	list, err := c.VolumeList(p.t.Context(), volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", "mini-helper-"))})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, v := range list.Volumes {
		if err := c.VolumeRemove(p.t.Context(), v.Name, false); err != nil {
			p.t.Error(err)
		}
	}
}

// TestKilledAtAnyMoment kills mini with SIGKILL or SIGABRT at random moments of the
// start and of the first commands.
func TestKilledAtAnyMoment(t *testing.T) {
	const rounds = 8
	p := newLeakPlace(t)
	for i := range rounds {
		if i%2 == 0 {
			p.removeHelperVolume()
		}
		var sig os.Signal = syscall.SIGKILL
		if i%8 == 7 {
			sig = syscall.SIGABRT // the runtime ends the process as it does for a panic
		}
		// Each round kills mini in another part of the start.
		const span = 1600 * time.Millisecond
		const slice = span / rounds
		delay := time.Duration(i)*slice + rand.N(slice)
		b := p.batch()
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-b.ended:
			t.Fatalf("it ended by itself: %s", b.output)
		}
		b.signal(sig)
		b.wait()
		ended := time.Now()
		t.Logf("round %d: %s after %s", i, sig, delay.Round(time.Millisecond))
		time.Sleep(500 * time.Millisecond) // the engine may be starting a container
		p.checkCleanup(ended)
	}
}

// startWorking starts a batch and returns when its four containers run.
func (p *leakPlace) startWorking() *batch {
	p.t.Helper()
	b := p.batch()
	p.until("four containers run", func() bool {
		select {
		case <-b.ended:
			p.t.Fatalf("it ended by itself: %s", b.output)
		default:
		}
		return len(p.containers(false)) == 4
	})
	return b
}

func TestSignalsLeaveNothing(t *testing.T) {
	p := newLeakPlace(t)
	t.Run("SIGTERM", func(t *testing.T) {
		b := p.startWorking()
		b.signal(syscall.SIGTERM)
		code, ended := b.wait(), time.Now()
		if code != 130 {
			t.Errorf("exit code %d: %s", code, b.output)
		}
		if left := p.containers(true); len(left) > 0 {
			t.Errorf("when mini has ended in good order: %q", left)
		}
		p.checkCleanup(ended)
	})
	t.Run("SIGINT twice", func(t *testing.T) {
		b := p.startWorking()
		b.signal(syscall.SIGINT)
		b.signal(syscall.SIGINT)
		code, ended := b.wait(), time.Now()
		if code != 130 {
			t.Errorf("exit code %d: %s", code, b.output)
		}
		p.checkCleanup(ended)
	})
}

// If the engine restarts, mini retries the attempts, and no container of the earlier
// tries is left.
func TestRestartOfTheEngineLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dockertest.Daemon){
		"killed":  (*dockertest.Daemon).Kill,
		"stopped": (*dockertest.Daemon).Stop,
	} {
		t.Run(name, func(t *testing.T) {
			p := newLeakPlace(t)
			p.args = append(p.args, "-c", "run.max_tries=30") // for an engine that starts slowly
			b := p.startWorking()
			end(p.daemon)
			p.daemon.Start()
			p.until("tried again, and nothing beside", func() bool { return len(p.containers(false)) == 4 && len(p.containers(true)) == 4 })
			b.signal(syscall.SIGTERM)
			code, ended := b.wait(), time.Now()
			if code != 130 {
				t.Errorf("exit code %d: %s", code, b.output)
			}
			if !strings.Contains(b.output.String(), "DaemonUnavailable") {
				t.Errorf("nothing is said of the engine: %s", b.output)
			}
			p.checkCleanup(ended)
		})
	}
}

// If mini is killed after the engine has created a container and before mini knows of
// it, the container has its labels and is removed.
func TestKilledBetweenCreateAndStart(t *testing.T) {
	p := newLeakPlace(t)
	b := p.startWorking()
	c := p.daemon.Client()
	defer c.Close()
	list, err := c.ContainerList(t.Context(), container.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := list[0].Labels
	for _, name := range []string{"mini-window", "mini-fill-window"} {
		made, err := c.ContainerCreate(t.Context(), &container.Config{Image: dockertest.SmallImage, Cmd: []string{"true"}, Labels: labels}, nil, nil, nil, name)
		if err != nil {
			t.Fatal(err, made.ID)
		}
	}
	b.signal(syscall.SIGKILL)
	b.wait()
	// The engine lists a container for a while after it began to remove it.
	p.until("only the two are left", func() bool { return len(p.containers(true)) == 2 })
	cmd, output := p.command("clean", "--dry-run")
	if err := cmd.Run(); err != nil || !strings.Contains(output.String(), "container mini-window (instance x__y-") || !strings.Contains(output.String(), "run run-1") {
		t.Errorf("%v: %s", err, output)
	}
	if left := p.containers(true); len(left) != 2 {
		t.Errorf("after a dry run: %q", left)
	}
	next := p.startWorking() // the start removes leftovers
	next.signal(syscall.SIGTERM)
	next.wait()
	ended := time.Now()
	for _, want := range []string{"container mini-window (instance x__y-", "container mini-fill-window ("} {
		if !strings.Contains(next.output.String(), "removed leftovers of a killed mini: "+want) {
			t.Errorf("the next start does not say %q: %s", want, next.output)
		}
	}
	p.checkCleanup(ended)
}

// After a reboot, mini cannot prove that the owner of a container is dead. mini clean
// keeps and lists the container, and removes it with --unknown.
func TestCleanOfAnotherBoot(t *testing.T) {
	p := newLeakPlace(t)
	b := p.startWorking()
	c := p.daemon.Client()
	defer c.Close()
	list, err := c.ContainerList(t.Context(), container.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := list[0].Labels
	labels["mini.owner"] = regexp.MustCompile(`"boot":"[^"]*"`).ReplaceAllString(labels["mini.owner"], `"boot":"another"`)
	if _, err := c.ContainerCreate(t.Context(), &container.Config{Image: dockertest.SmallImage, Cmd: []string{"true"}, Labels: labels}, nil, nil, nil, "mini-boot"); err != nil {
		t.Fatal(err)
	}
	b.signal(syscall.SIGKILL)
	b.wait()
	p.until("only mini-boot is left", func() bool { return len(p.containers(true)) == 1 })
	for _, tt := range []struct{ args, want string }{
		{"clean", "kept: container mini-boot (instance x__y-"},
		{"clean", ", which may still run; created; "},
		{"clean", "remove them with --unknown"},
		{"clean --unknown --dry-run", "container mini-boot ("},
	} {
		cmd, output := p.command(strings.Fields(tt.args)...)
		if err := cmd.Run(); err != nil || !strings.Contains(output.String(), tt.want) {
			t.Errorf("mini %s: %v, %s; want %q", tt.args, err, output, tt.want)
		}
		if left := p.containers(true); len(left) != 1 {
			t.Errorf("after mini %s: %q", tt.args, left)
		}
	}
	cmd, output := p.command("clean", "--unknown")
	if err := cmd.Run(); err != nil || strings.Contains(output.String(), "kept:") {
		t.Errorf("%v: %s", err, output)
	}
	p.checkCleanup(time.Now())
}
