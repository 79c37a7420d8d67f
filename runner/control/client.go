package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Ask gives an order to the run in a folder, which may be a stranger's: it leads to
// nobody but this user's minis. The error is a *NotRunningError where none listens.
func Ask(ctx context.Context, run string, q Request) (Reply, error) {
	l, err := readLease(run)
	if err != nil {
		return Reply{}, err
	}
	if err := l.near(run); err != nil {
		return Reply{}, err
	}
	if err := l.safe(run); err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", l.Path)
	if refused(err) {
		return Reply{}, &NotRunningError{run, whyOver}
	}
	if err != nil {
		return Reply{}, fmt.Errorf("ask the run: %w", err)
	}
	defer conn.Close() //nolint:errcheck // all has been read
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return Reply{}, errors.New("ask the run: no socket")
	}
	if uid, err := peer(c); err != nil || uid != os.Getuid() && os.Getuid() != 0 {
		return Reply{}, errors.Join(fmt.Errorf("%s: the run is another user's", run), err)
	}
	return exchange(ctx, c, q)
}

// exchange says one line and hears one.
func exchange(ctx context.Context, c *net.UnixConn, q Request) (Reply, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // ends what waits
	defer stop()
	if err := writeLine(c, q); err != nil {
		return Reply{}, fmt.Errorf("ask the run: %w", orCause(ctx, err))
	}
	var r Reply
	if err := readLine(c, maxReply, &r); err != nil {
		return Reply{}, fmt.Errorf("ask the run: it does not answer: %w", orCause(ctx, err))
	}
	return r, nil
}

func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// safe says whether a lease leads to a socket of mini's that this user may speak to.
func (l lease) safe(run string) error {
	if !filepath.IsAbs(l.Path) || len(l.Path) > maxPath || !socketName.MatchString(filepath.Base(l.Path)) {
		return fmt.Errorf("%s: %s is not what mini writes", run, File)
	}
	info, err := os.Lstat(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &NotRunningError{run, whyOver}
	}
	if err != nil {
		return fmt.Errorf("%s: the run is another user's: %w", run, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: %s is not what mini writes", run, File)
	}
	if who := owner(info); who != os.Getuid() && os.Getuid() != 0 {
		return fmt.Errorf("%s: the run is that of another user (%d)", run, who)
	}
	return nil
}

// refused says that nobody listens at a socket.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
