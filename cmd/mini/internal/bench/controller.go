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
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/control"
)

// controller executes the requests of the live view and of mini ctl, and reports the status of
// the run.
type controller struct {
	folder  *runner.Folder
	control runner.Control
	state   *batch.State
	models  *modelopen.Models
	images  *imagestore.Store // nil without a container engine
	server  *control.Server
}

// listen starts the server for mini ctl. If that fails, it logs a warning and the run continues.
func (c *controller) listen(log *runner.EventLog) {
	var err error
	if c.server, err = control.Listen(c.folder.Dir, c); err != nil {
		c.server = nil
		log.Emit(runner.Event{Type: runner.Warning, Text: "mini ctl does not reach this run: " + err.Error()})
	}
}

// Execute implements control.Controller and live.Controller.
func (c *controller) Execute(request runner.ControlRequest) (string, error) {
	text, err := c.control.Do(request)
	if unknown, ok := errors.AsType[*runner.UnknownTaskError](err); ok {
		if near := configs.ClosestName(request.TaskID, unknown.Known); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
	}
	return text, err
}

// Status implements control.Controller.
func (c *controller) Status(context.Context) control.Status {
	s := control.Status{Run: c.folder.Dir, PID: os.Getpid()}
	if path, err := filepath.Abs(s.Run); err == nil {
		s.Run = path
	}
	if queue, ok := c.control.QueueStatus(); ok {
		s.Queue = &queue
	}
	s.SetBatch(c.state, time.Now())
	s.Providers, s.Disk = c.Resources()
	return s
}

// Resources implements live.Controller: the state of providers and disks.
func (c *controller) Resources() ([]control.Provider, control.Disk) {
	providers := []control.Provider{}
	for _, e := range c.models.Limiters.States() {
		providers = append(providers, control.Provider{Endpoint: progress.Host(e.BaseURL), ProviderState: progress.ProviderState(e.State)})
	}
	return providers, c.disk()
}

// JournalPath implements live.Controller.
func (c *controller) JournalPath(id string, attempt int) string { return c.folder.Journal(id, attempt) }

// disk returns the free space for the run folder and for the engine and, with a budget for images,
// that budget and the space that images use. Unknown figures are nil.
func (c *controller) disk() (disk control.Disk) {
	if n, ok := doctor.FreeSpace(c.folder.Dir); ok {
		disk.RunFree = &n
	}
	if c.images == nil {
		return disk
	}
	s := c.images.Status()
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
