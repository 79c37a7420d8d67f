package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/doctor"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/report"
)

// desk is where orders to a batch come in, from its live view and from mini ctl,
// and what both are told of it.
type desk struct {
	folder  *runner.Folder
	control runner.Control
	watch   control.Watch
	models  runner.Models
	images  *images.Store // nil where there is no engine
	server  *control.Server

	mu   sync.Mutex
	disk control.Disk
	stop context.CancelFunc
	done chan struct{} // closed when nobody measures any more
}

// measureEvery is how often the disks are looked at.
const measureEvery = 5 * time.Second

// open takes orders from now on. Where no other process can give any, the run goes
// on without, and log is told why.
func (d *desk) open(ctx context.Context, log *runner.Log) {
	d.done = make(chan struct{})
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	go d.measure(ctx)
	var err error
	if d.server, err = control.Listen(d.folder.Dir(), d); err != nil {
		d.server = nil
		log.Emit(runner.Event{Type: runner.Warning, Text: "mini ctl does not reach this run: " + err.Error()})
	}
}

// Close takes no more orders.
func (d *desk) Close() error {
	err := d.server.Close()
	d.stop()
	select {
	case <-d.done:
	case <-time.After(time.Second): // a disk of a server that is gone answers nobody, ever
	}
	return err
}

// Do implements control.Desk and tui.Desk.
func (d *desk) Do(o runner.Order) (string, error) {
	said, err := d.control.Do(o)
	if unknown, ok := errors.AsType[*runner.UnknownError](err); ok {
		if near := configs.Nearest(o.Who, unknown.Known); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
	}
	return said, err
}

// Status implements control.Desk.
func (d *desk) Status(context.Context) control.Status {
	s := control.Status{Run: d.folder.Dir(), PID: os.Getpid()}
	if path, err := filepath.Abs(s.Run); err == nil {
		s.Run = path
	}
	if standing, ok := d.control.Standing(); ok {
		s.Standing = &standing
	}
	var elapsed time.Duration
	s.Running, elapsed = d.watch.Rows(time.Now())
	s.Elapsed = elapsed.Seconds()
	s.Providers, s.Disk = d.Around()
	return s
}

// Around implements tui.Desk: what a run has around it, as it is known now.
func (d *desk) Around() ([]control.Provider, control.Disk) {
	providers := []control.Provider{}
	for _, e := range endpointsOf(d.models) {
		providers = append(providers, control.Provider{Endpoint: hostOf(e.BaseURL), ProviderState: stateOf(e.State)})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return providers, d.disk
}

// Journal implements tui.Desk.
func (d *desk) Journal(id string, attempt int) string { return d.folder.Journal(id, attempt) }

// measure looks at the disks now and then, until ctx ends.
func (d *desk) measure(ctx context.Context) {
	defer close(d.done)
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		disk := d.look()
		d.mu.Lock()
		d.disk = disk
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *desk) look() (disk control.Disk) {
	if n, ok := doctor.Free(d.folder.Dir()); ok {
		disk.Run = &n
	}
	if d.images == nil {
		return disk
	}
	s := d.images.Standing()
	if s.Known {
		disk.Engine = &s.Free
	}
	if s.Budget > 0 {
		disk.Budget = &s.Budget
		if s.Taken >= 0 {
			disk.Images = &s.Taken
		}
	}
	return disk
}

// endpointsOf are the endpoints that models ask, if they ask any.
func endpointsOf(models runner.Models) []governor.Endpoint {
	if m, ok := models.(interface{ provider() *providerNews }); ok {
		if g := m.provider().governors; g != nil {
			return g.States()
		}
	}
	return nil
}

// stateOf is a governor's state for people, with times from now on.
func stateOf(s governor.State) runner.ProviderState {
	left := func(t time.Time) float64 { return max(0, time.Until(t).Seconds()) }
	return runner.ProviderState{
		Limit: s.Limit, InFlight: s.InFlight, Waiting: s.Waiting, Pause: left(s.PausedUntil), Full: left(s.FullUntil),
	}
}

// hostOf is what may be seen of an address: it may hold a password.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the provider"
	}
	return report.Printable(u.Host)
}
