package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/runner"
)

// Desk follows orders.
type Desk interface {
	// Do says in a sentence what came of an order.
	Do(o runner.Order) (string, error)
	// Status says how the run stands.
	Status(ctx context.Context) Status
}

// Server takes orders for a run.
type Server struct {
	run, path string
	desk      Desk
	listener  *net.UnixListener
	ctx       context.Context // of what is answered
	stop      context.CancelFunc

	mu    sync.Mutex
	conns map[*net.UnixConn]bool
	wg    sync.WaitGroup
}

// maxClients bounds who is answered at once. Others wait in front of the door, for
// as long as those inside may take.
const maxClients = 8

// Listen takes orders for the run in a folder until Close. The caller holds the
// folder; desk is asked by several at once.
func Listen(run string, desk Desk) (*Server, error) {
	name, err := newName(run)
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}
	dir, err := findPlace(places(), name)
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}
	sweep(dir)
	s := &Server{run: run, path: filepath.Join(dir, name), desk: desk, conns: map[*net.UnixConn]bool{}}
	if s.listener, err = listen(s.path); err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}
	if err := ours(s.path).write(run); err != nil {
		return nil, fmt.Errorf("take orders: %w", errors.Join(err, s.listener.Close(), os.Remove(s.path)))
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s, nil
}

// listen makes a socket that is this user's alone before it has its name. Its
// folder lets nobody else in while it does not.
func listen(path string) (*net.UnixListener, error) {
	made := strings.TrimSuffix(path, ".sock") + ".new"
	c := net.ListenConfig{Control: closed}
	bound, err := c.Listen(context.Background(), "unix", made)
	if err != nil {
		return nil, err
	}
	l, ok := bound.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is no socket", made), bound.Close())
	}
	l.SetUnlinkOnClose(false)   // it gets another name
	err = os.Chmod(made, 0o600) // where closed had no effect
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(made))
	}
	return l, nil
}

// sweepMost bounds how many leftovers are looked at.
const sweepMost = 200

// sweep removes the sockets that nobody listens at: their minis were killed. One
// that has its name is being listened at from the start.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries[:min(len(entries), sweepMost)] {
		if !socketName.MatchString(e.Name()) || e.Type() != os.ModeSocket {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // it is there, or is not
		if refused(err) {
			_ = os.Remove(path) // or the next one does
		}
		if err == nil {
			_ = c.Close() // nothing was said
		}
	}
}

// accept lets in whoever knocks, so many at once.
func (s *Server) accept() {
	room := make(chan struct{}, maxClients)
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if !s.pause() { // as where there are too many open files
				return
			}
			continue
		}
		select {
		case room <- struct{}{}:
		case <-s.ctx.Done():
			_ = c.Close() // nothing was said
			return
		}
		s.wg.Go(func() {
			defer func() { <-room }()
			s.attend(c)
		})
	}
}

// pause waits a moment, and says whether to go on.
func (s *Server) pause() bool {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// attend answers one client, within the time that it has.
func (s *Server) attend(c *net.UnixConn) {
	defer c.Close() //nolint:errcheck // what was not said is not missed
	if !s.hold(c) {
		return
	}
	defer s.drop(c)
	uid, err := peer(c)
	if err != nil || uid != os.Getuid() && uid != 0 {
		return
	}
	if c.SetDeadline(time.Now().Add(patience)) != nil {
		return
	}
	var q Request
	if err := readLine(c, maxRequest, &q); err != nil {
		if errors.Is(err, errLine) {
			_ = writeLine(c, Reply{Kind: Bad, Error: "one line of JSON is needed, of at most 8 kB"}) // if it is read
		}
		return
	}
	_ = writeLine(c, s.answer(q)) // if it is read
}

// answer follows an order.
func (s *Server) answer(q Request) Reply {
	if q.Verb == StatusVerb {
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		defer cancel()
		status := s.desk.Status(ctx)
		return Reply{OK: true, Status: &status}
	}
	text, err := s.desk.Do(runner.Order{Action: runner.Action(q.Verb), Who: q.Who, By: runner.ByCtl})
	if err == nil {
		return Reply{OK: true, Text: text}
	}
	r := Reply{Kind: Refused, Error: err.Error()}
	if _, unknown := errors.AsType[*runner.UnknownError](err); unknown {
		r.Kind = Unknown
	} else if errors.Is(err, runner.ErrNotRunning) {
		r.Kind = Over
	}
	return r
}

func (s *Server) hold(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) drop(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close takes no more orders, and leaves nothing behind. nil takes none anyway.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	err := errors.Join(os.Remove(filepath.Join(s.run, File)), os.Remove(s.path), s.listener.Close())
	s.stop()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close() // its client is told nothing
	}
	s.conns = nil
	s.mu.Unlock()
	s.wg.Wait()
	if err != nil {
		return fmt.Errorf("take no more orders: %w", err)
	}
	return nil
}
