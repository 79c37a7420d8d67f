package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker/imagestore"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
)

// controller handles requests of the live view and mini ctl and reports the status of the run.
type controller struct {
	folder  *runner.Folder
	control runner.Control
	tracker control.Tracker
	models  *modelopen.Models
	images  *imagestore.Store // nil without a container engine
	server  *control.Server
}

// listen accepts requests of mini ctl. If that fails the run continues with a warning.
func (d *controller) listen(log *runner.Log) {
	var err error
	if d.server, err = control.Listen(d.folder.Dir(), d); err != nil {
		d.server = nil
		log.Emit(runner.Event{Type: runner.Warning, Text: "mini ctl does not reach this run: " + err.Error()})
	}
}

// Execute implements control.Controller and live.Controller.
func (d *controller) Execute(o runner.ControlRequest) (string, error) {
	said, err := d.control.Do(o)
	if unknown, ok := errors.AsType[*runner.UnknownTaskError](err); ok {
		if near := configs.ClosestName(o.TaskID, unknown.Known); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
	}
	return said, err
}

// Status implements control.Controller.
func (d *controller) Status(context.Context) control.Status {
	s := control.Status{Run: d.folder.Dir(), PID: os.Getpid()}
	if path, err := filepath.Abs(s.Run); err == nil {
		s.Run = path
	}
	if queue, ok := d.control.QueueStatus(); ok {
		s.Queue = &queue
	}
	var elapsed time.Duration
	s.Running, elapsed = d.tracker.Running(time.Now())
	s.Elapsed = elapsed.Seconds()
	s.Providers, s.Disk = d.Resources()
	return s
}

// Resources implements live.Controller: the state of providers and disks.
func (d *controller) Resources() ([]control.Provider, control.Disk) {
	providers := []control.Provider{}
	for _, e := range d.models.Limiters.States() {
		providers = append(providers, control.Provider{Endpoint: progress.Host(e.BaseURL), ProviderState: progress.ProviderState(e.State)})
	}
	return providers, d.disk()
}

// JournalPath implements live.Controller.
func (d *controller) JournalPath(id string, attempt int) string { return d.folder.Journal(id, attempt) }

// disk is how much room there is now.
func (d *controller) disk() (disk control.Disk) {
	if n, ok := doctor.FreeSpace(d.folder.Dir()); ok {
		disk.RunFree = &n
	}
	if d.images == nil {
		return disk
	}
	s := d.images.Status()
	if s.FreeKnown {
		disk.EngineFree = &s.Free
	}
	if s.Budget > 0 {
		disk.ImageBudget = &s.Budget
		if s.Used >= 0 {
			disk.Images = &s.Used
		}
	}
	return disk
}
