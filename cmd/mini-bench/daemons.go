//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// watcher adds up the processor time of the engine's processes; those of
// containers come and go.
type watcher struct {
	begin, now map[int]int64 // ticks by process
	quit       chan struct{}
	done       sync.WaitGroup
}

func watchDaemons() *watcher {
	w := &watcher{now: map[int]int64{}, quit: make(chan struct{})}
	w.look()
	w.begin = map[int]int64{}
	for pid, ticks := range w.now {
		w.begin[pid] = ticks
	}
	w.done.Go(func() {
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				w.look()
			case <-w.quit:
				return
			}
		}
	})
	return w
}

// stop returns what was used since the watch began.
func (w *watcher) stop() time.Duration {
	close(w.quit)
	w.done.Wait()
	w.look()
	var ticks int64
	for pid, n := range w.now {
		ticks += n - w.begin[pid]
	}
	return time.Duration(ticks) * tick
}

// look keeps the last account of each process, also of those that are gone.
func (w *watcher) look() {
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return
	}
	for _, file := range comms {
		name, err := os.ReadFile(file) //nolint:gosec // of /proc
		if err != nil || !strings.HasPrefix(string(name), "dockerd") && !strings.HasPrefix(string(name), "containerd") {
			continue
		}
		dir := filepath.Dir(file)
		stat, err := os.ReadFile(filepath.Join(dir, "stat")) //nolint:gosec // of /proc
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		const user, system = 11, 12 // fields 14 and 15 of proc_pid_stat(5)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || len(fields) <= system {
			continue
		}
		u, _ := strconv.ParseInt(fields[user], 10, 64)   // the kernel writes numbers
		s, _ := strconv.ParseInt(fields[system], 10, 64) // likewise
		w.now[pid] = u + s
	}
}
