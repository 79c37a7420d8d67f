// Package control takes orders to a run that goes on from other processes of its
// user, and gives them: HTTP with JSON on a unix socket.
//
// The socket is in the user's runtime folder, under a short name, since the path
// of a socket has 107 bytes at most. control.json in the folder of the run says
// where, as long as the run goes on. Only the user, and root, are heard.
//
//	s, err := control.Listen(folder.Dir(), desk)
//	defer s.Close()
//
//	reply, err := control.Ask(ctx, dir, control.Request{Verb: "pause"})
//
// It does not know how an order is followed: that is runner.Control.
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
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/rootdir"
)

// StatusVerb asks how the run stands. The other verbs are a runner.Action each.
const StatusVerb = "status"

// Verbs are all that can be asked for, in the order of their importance.
func Verbs() []string {
	return []string{StatusVerb, string(runner.Pause), string(runner.Resume), string(runner.Drain), string(runner.Requeue), string(runner.Kill)}
}

// Named says whether a verb is about one instance.
func Named(verb string) bool { return verb == string(runner.Requeue) || verb == string(runner.Kill) }

// Request is what is asked for: the body of a POST.
type Request struct {
	Verb string `json:"verb"`
	Who  string `json:"id,omitempty"` // an instance, or a sample of it: "id#2"
}

// Reply is the body of the answer.
type Reply struct {
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"` // what came of it
	// Kind sorts what is wrong, and Error says it.
	Kind   Kind    `json:"kind,omitempty"`
	Error  string  `json:"error,omitempty"`
	Status *Status `json:"status,omitempty"`
}

// Kind is a kind of refusal.
type Kind string

// Why an order is refused.
const (
	Over    Kind = "over"    // there is no run any more
	Unknown Kind = "unknown" // the run has no such instance
	Refused Kind = "refused" // there is nothing to be done, as for one that has ended
	Bad     Kind = "bad"     // the body is no Request
)

// Bounds of what is read, in bytes, and of how long anybody is waited for.
const (
	maxRequest = 8 << 10
	maxReply   = 32 << 20
	patience   = 5 * time.Second
)

// File says in the folder of a run where its socket is, as long as it goes on.
const File = datasets.ControlFile

// format of that file.
const format = "mini-control-2"

// maxLease bounds that file, in bytes.
const maxLease = 8 << 10

// lease says where the socket of a run is, and whose.
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
	defer dir.Close() //nolint:errcheck // nothing is left to be written
	return dir.WriteFile(filepath.Join(run, File), append(data, '\n'))
}

// hostname is that of this machine; empty where it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// NotRunningError says that nobody takes orders for a run.
type NotRunningError struct {
	Run string
	Why string
}

func (e *NotRunningError) Error() string { return fmt.Sprintf("%s: %s", e.Run, e.Why) }

// Of runs that take no orders.
const (
	whyNone = "no batch is running there that takes orders"
	whyOver = "the run is over"
)

// readLease reads where the socket of a run is. The folder may be anybody's.
func readLease(run string) (lease, error) {
	dir, err := rootdir.Open(run)
	if err != nil {
		return lease{}, err
	}
	defer dir.Close() //nolint:errcheck // read only
	path := filepath.Join(run, File)
	data, err := dir.ReadFile(path, maxLease)
	if errors.Is(err, fs.ErrNotExist) {
		return lease{}, &NotRunningError{run, whyNone}
	}
	var l lease
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return lease{}, fmt.Errorf("%s is not what mini writes: %w", path, err)
	}
	if l.Format != format {
		return lease{}, fmt.Errorf("read %s: the format is %.40q, and this mini knows %s", path, l.Format, format)
	}
	return l, nil
}
