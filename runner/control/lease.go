package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/rootdir"
)

// File says in the folder of a run where its socket is, as long as it goes on.
const File = datasets.ControlFile

// format of that file.
const format = "mini-control-1"

// maxLease bounds that file, in bytes.
const maxLease = 8 << 10

// lease says where the socket of a run is, and whose.
type lease struct {
	Format  string    `json:"format"`
	Path    string    `json:"path"`
	PID     int       `json:"pid"`
	UID     int       `json:"uid"`
	Host    string    `json:"host"` // a hash of host name and machine id
	Name    string    `json:"hostname"`
	Boot    string    `json:"boot,omitempty"` // of the kernel
	Started time.Time `json:"started"`
}

// ours is the lease of this process.
func ours(path string) lease {
	l := here()
	l.Path, l.PID, l.UID, l.Started = path, os.Getpid(), os.Getuid(), time.Now()
	return l
}

// here is what leases say of this machine.
func here() lease {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		machine = nil // not every system has one
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil
	}
	sum := sha256.Sum256([]byte(name + "\n" + string(machine))) // machine ids are not for others to see
	return lease{Format: format, Host: hex.EncodeToString(sum[:8]), Name: name, Boot: strings.TrimSpace(string(boot))}
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

// NotRunningError says that nobody takes orders for a run.
type NotRunningError struct {
	Run string
	Why string
}

func (e *NotRunningError) Error() string { return fmt.Sprintf("%s: %s", e.Run, e.Why) }

// Of runs that take no orders.
const (
	whyNone  = "no batch is running there that takes orders"
	whyOver  = "the run is over"
	whyReset = "the run is over: the machine was started anew since"
)

// readLease reads where the socket of a run is. The folder may be anybody's.
func readLease(run string) (lease, error) {
	path := filepath.Join(run, File)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lease{}, &NotRunningError{run, whyNone}
	}
	if err != nil {
		return lease{}, fmt.Errorf("read %s: %w", path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxLease {
		return lease{}, fmt.Errorf("%s is not what mini writes", path)
	}
	f, err := os.Open(path) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return lease{}, fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close() //nolint:errcheck // read only
	var l lease
	data, err := io.ReadAll(io.LimitReader(f, maxLease))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return lease{}, fmt.Errorf("read %s: %w", path, err)
	}
	if l.Format != format {
		return lease{}, fmt.Errorf("read %s: the format is %.40q, and this mini knows %s", path, l.Format, format)
	}
	return l, nil
}

// near says why a lease leads nowhere from here.
func (l lease) near(run string) error {
	me := here()
	switch {
	case l.Host != me.Host:
		return &NotRunningError{run, fmt.Sprintf("the batch runs, or ran, on another machine (%.80q); call mini ctl there", l.Name)}
	case l.Boot != me.Boot:
		return &NotRunningError{run, whyReset}
	}
	return nil
}
