package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
)

// Send sends a request to the batch that runs in a folder. Unless this user is
// root, it connects only to a socket of the same user, because the folder is not
// trusted. The error is a *NotRunningError if no batch listens, or the batch is
// on another machine.
func Send(ctx context.Context, run string, req Request) (Reply, error) {
	l, err := readLease(run)
	if err != nil {
		return Reply{}, err
	}
	if l.Host != hostname() {
		return Reply{}, &NotRunningError{run, fmt.Sprintf("the batch is on another machine (%.80q); run mini ctl there", l.Host)}
	}
	if err := l.checkSocket(run); err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return Reply{}, err
	}
	httpReq, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://mini/", bytes.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, run, l.Path) },
	}}
	httpResp, err := client.Do(httpReq)
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err // the URL means nothing to the user
	}
	if notRunning, ok := errors.AsType[*NotRunningError](err); ok {
		return Reply{}, notRunning
	}
	if err != nil {
		return Reply{}, fmt.Errorf("ask the run: %w", err)
	}
	defer httpResp.Body.Close() //nolint:errcheck // the body has been read
	var r Reply
	if err := json.NewDecoder(io.LimitReader(httpResp.Body, maxReply)).Decode(&r); err != nil {
		return Reply{}, fmt.Errorf("ask the run: read the answer: %w", err)
	}
	return r, nil
}

// dial connects to the socket of a run if the listening process belongs to this
// user, or this user is root.
func dial(ctx context.Context, run, path string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if isRefused(err) {
		return nil, &NotRunningError{run, reasonEnded}
	}
	if err != nil {
		return nil, err
	}
	if uid, err := peerUID(conn); err != nil || uid != os.Getuid() && os.Getuid() != 0 {
		return nil, errors.Join(fmt.Errorf("%s: the run is another user's", run), err, conn.Close())
	}
	return conn, nil
}

// checkSocket checks that a lease names a socket of mini that this user may use.
func (l lease) checkSocket(run string) error {
	if !filepath.IsAbs(l.Path) || len(l.Path) > maxPath || !isSocketName(filepath.Base(l.Path)) {
		return fmt.Errorf("%s: %s is not a file of mini", run, FileName)
	}
	info, err := os.Lstat(l.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotRunningError{run, reasonEnded}
	case err != nil:
		return fmt.Errorf("%s: the run is another user's: %w", run, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: %s is not a file of mini", run, FileName)
	case ownerUID(info) != os.Getuid() && os.Getuid() != 0:
		return fmt.Errorf("%s: the run is that of another user (%d)", run, ownerUID(info))
	}
	return nil
}

// isRefused reports whether err means that no process listens on a socket.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
