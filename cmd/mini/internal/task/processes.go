package task

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/env"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// processes are the IDs of the processes that commands have left running.
type processes struct {
	mu   sync.Mutex
	pids []int
}

func (p *processes) add(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids = append(p.pids, pid)
}

// Observe implements agent.Observer.
func (t *session) Observe(e events.Event) {
	if x, ok := events.Content(e).(trajectories.Execution); ok {
		for _, p := range x.Background {
			t.processes.add(p.PID)
		}
	}
	if t.headless != nil {
		t.headless.Observe(e)
	}
}

const (
	listTimeout    = 5 * time.Second
	maxProcesses   = 20
	maxCommandLine = 200 // bytes
)

// reportProcesses shows the processes that are still running at the end of a session on this machine. They
// end with the sandbox, so that nothing runs on without its owner.
func (t *session) reportProcesses(ctx context.Context, sandbox env.Environment) {
	t.processes.mu.Lock()
	pids := t.processes.pids
	t.processes.mu.Unlock()
	if len(pids) == 0 || !envopen.IsHostClass(t.sandboxes.Class) {
		return
	}
	script := "for p in " + strings.Trim(fmt.Sprint(pids), "[]") + `; do
		line=$(tr '\0\n' '  ' 2>/dev/null </proc/$p/cmdline) && [ -n "$line" ] && printf '%s %s\n' "$p" "$line"
	done 2>/dev/null`
	res, err := sandbox.Execute(ctx, env.Command{Script: script, Timeout: listTimeout})
	lines := strings.Split(strings.TrimSpace(string(res.Output)), "\n")
	if err != nil || lines[0] == "" {
		return
	}
	var list []string
	for _, line := range lines[:min(len(lines), maxProcesses)] {
		list = append(list, "  "+text.Printable(text.Clip(strings.TrimSpace(line), maxCommandLine)))
	}
	if n := len(lines) - maxProcesses; n > 0 {
		list = append(list, fmt.Sprintf("  and %d more", n))
	}
	t.frontend.ShowNotice(chat.Notice{Text: "Still running, and ended with the session:\n" + strings.Join(list, "\n")})
}
