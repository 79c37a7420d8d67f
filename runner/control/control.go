// Package control lets other processes of the same user control a running batch:
// pause, resume, drain, kill, requeue and status, as JSON over HTTP on a Unix
// socket.
//
// The socket is in the user's runtime directory, because the path of a socket is
// limited to 107 bytes and that of a run's folder may be longer. While the batch
// runs, control.json in the run's folder has the path of the socket. Only the user
// and root may connect.
//
//	s, err := control.Listen(folder.Dir, controller)
//	defer s.Close()
//
//	reply, err := control.Send(ctx, dir, control.Request{Action: "pause"})
//
// runner.Control implements the actions.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner"
)

// StatusAction requests the Status. The other actions are those of runner.Action.
const StatusAction = "status"

// Actions returns all actions, the most common first.
func Actions() []string {
	return []string{StatusAction, string(runner.Pause), string(runner.Resume), string(runner.Drain), string(runner.Requeue), string(runner.Kill)}
}

// NeedsTask reports whether an action needs Request.TaskID.
func NeedsTask(action string) bool {
	return action == string(runner.Requeue) || action == string(runner.Kill)
}

// Request is the body of an HTTP request.
type Request struct {
	Action string `json:"verb"`
	TaskID string `json:"id,omitempty"` // a task: an instance, or "id#2" for one repetition
}

// Reply is the body of an HTTP response.
type Reply struct {
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"` // the effect of the action
	// Kind is the class of an error, Error its text.
	Kind   ErrorKind `json:"kind,omitempty"`
	Error  string    `json:"error,omitempty"`
	Status *Status   `json:"status,omitempty"`
}

// ErrorKind is a class of errors.
type ErrorKind string

// The classes of errors.
const (
	NotRunning  ErrorKind = "over"    // no run is in progress
	UnknownTask ErrorKind = "unknown" // the run has no such task
	Refused     ErrorKind = "refused" // the action is not possible, for example because the task has ended
	BadRequest  ErrorKind = "bad"     // the HTTP request is not a POST, or its body is not a Request
)

// Limits on the sizes of bodies, in bytes, and on waiting.
const (
	maxRequest = 8 << 10
	maxReply   = 32 << 20
	timeout    = 5 * time.Second
)

// FileName is the name of the lease file in the run's folder.
const FileName = datasets.ControlFile

// format is the format version of the lease file.
const format = "mini-control-2"

// maxLease limits the size of the lease file, in bytes.
const maxLease = 8 << 10

// lease is the contents of the lease file: the socket of a run and the process that
// owns it.
type lease struct {
	Format  string    `json:"format"`
	Path    string    `json:"path"`
	PID     int       `json:"pid"`
	UID     int       `json:"uid"`
	Host    string    `json:"hostname"`
	Started time.Time `json:"started"`
}

func (l lease) write(run string) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	dir, err := rootdir.Open(run)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // the file has been written
	return dir.WriteFile(filepath.Join(run, FileName), append(data, '\n'))
}

// hostname returns the name of this machine; "" if unknown.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// NotRunningError reports that no batch accepts requests for a run.
type NotRunningError struct {
	Run    string
	Reason string
}

func (e *NotRunningError) Error() string { return fmt.Sprintf("%s: %s", e.Run, e.Reason) }

// Reasons of NotRunningError.
const (
	reasonNone  = "no running batch accepts requests there"
	reasonEnded = "the run has ended"
)

// readLease reads the lease file of a run. The file is not trusted.
func readLease(run string) (lease, error) {
	dir, err := rootdir.Open(run)
	if err != nil {
		return lease{}, err
	}
	defer dir.Close() //nolint:errcheck // read only
	path := filepath.Join(run, FileName)
	data, err := dir.ReadFile(path, maxLease)
	if errors.Is(err, fs.ErrNotExist) {
		return lease{}, &NotRunningError{run, reasonNone}
	}
	var l lease
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return lease{}, fmt.Errorf("%s is not a file of mini: %w", path, err)
	}
	if l.Format != format {
		return lease{}, fmt.Errorf("read %s: the format is %.40q, want %s", path, l.Format, format)
	}
	return l, nil
}
