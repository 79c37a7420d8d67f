package server

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/minibench/mini/env/helper"
)

// Bounds of those who connect.
const (
	// maxArriving is how many connections may have shown no token yet. One more
	// takes the place of the oldest.
	maxArriving = 32
	// arrival time is what a request may take to arrive, and an answer to be
	// taken.
	requestWait = 5 * time.Second
	answerWait  = 30 * time.Second
)

// What is said to who is not served.
const (
	sentenceToken    = "no command that runs now has this token; a program can ask for as long as the command that it belongs to runs"
	sentenceOver     = "the command that asks is over"
	sentenceStranger = "who asks is no process of this sandbox"
	sentenceFrame    = "this is not a request"
)

// arriver is a connection that has shown no token yet.
type arriver struct{ conn *os.File }

// open makes the socket, once. It is an abstract one: it needs no file system
// that can be written to, and ends with this process.
func (d *desk) open() (name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return "", errors.New("open socket: the conversation is over")
	case d.listener != nil:
		return d.name, nil
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("open socket: %w", err)
	}
	d.name = "mini-tool-" + rand.Text()
	err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "@" + d.name})
	if err == nil {
		err = syscall.Listen(fd, 4*maxArriving)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("open socket: %w", err), syscall.Close(fd))
	}
	d.listener = os.NewFile(uintptr(fd), d.name)
	listener := d.listener
	d.workers.Go(func() { d.accept(listener) })
	return d.name, nil
}

// close ends the socket and everybody who has connected. The commands are over.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	if d.listener != nil {
		d.listener.Close() //nolint:errcheck // nothing was written
	}
	for _, a := range d.arriving {
		a.conn.Close() //nolint:errcheck // likewise
	}
	d.mu.Unlock()
}

// accept serves connections until the listener is closed.
func (d *desk) accept(listener *os.File) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return
	}
	for {
		conn := -1
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			conn, _, failed = syscall.Accept4(int(fd), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
			return !errors.Is(failed, syscall.EAGAIN)
		})
		switch {
		case err != nil:
			return
		case failed == nil:
			a := &arriver{os.NewFile(uintptr(conn), "request")}
			if !d.arrive(a) {
				return
			}
			d.workers.Go(func() { d.serve(a) })
		case errors.Is(failed, syscall.EMFILE), errors.Is(failed, syscall.ENFILE), errors.Is(failed, syscall.ENOMEM):
			time.Sleep(10 * time.Millisecond) // until one ends
		}
	}
}

// arrive notes a connection, in the place of the oldest where there are too
// many. It is false when the desk is closed.
func (d *desk) arrive(a *arriver) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		a.conn.Close() //nolint:errcheck // nothing was written
		return false
	}
	if len(d.arriving) >= maxArriving {
		d.arriving[0].conn.Close() //nolint:errcheck // likewise
		d.arriving = slices.Delete(d.arriving, 0, 1)
	}
	d.arriving = append(d.arriving, a)
	return true
}

func (d *desk) arrived(a *arriver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arriving = slices.DeleteFunc(d.arriving, func(other *arriver) bool { return other == a })
}

// serve takes one request and answers it.
func (d *desk) serve(a *arriver) {
	defer a.conn.Close() //nolint:errcheck // who has asked is gone, or has the answer
	post, ask, why := d.receive(a)
	d.arrived(a)
	if why != "" {
		refuse(a.conn, why)
		return
	}
	n, r, why := d.pass(post, ask)
	if why != "" {
		refuse(a.conn, why)
		return
	}
	defer r.release() // also when the command is over
	left := make(chan struct{})
	d.workers.Go(func() { // ends with the connection at the latest
		defer close(left)
		a.conn.Read(make([]byte, 1)) //nolint:errcheck // whatever comes, and the end above all: it is no patient asker
	})
	select {
	case body := <-r.answer:
		reply(a.conn, body)
	case <-post.ending:
		select {
		case body := <-r.answer: // both at once
			reply(a.conn, body)
		default:
			refuse(a.conn, sentenceOver)
		}
	case <-left:
		d.gone(post, n, r)
	}
}

// receive reads a request, and finds out whose it is.
func (d *desk) receive(a *arriver) (*post, helper.Ask, string) {
	if !ours(a.conn) {
		return nil, helper.Ask{}, sentenceStranger
	}
	if err := a.conn.SetDeadline(time.Now().Add(requestWait)); err != nil {
		return nil, helper.Ask{}, sentenceFrame
	}
	f, err := helper.ReadFrame(bufio.NewReaderSize(a.conn, readAhead), helper.MaxAsk)
	if err != nil || f.Kind != helper.KindAsk {
		return nil, helper.Ask{}, sentenceFrame
	}
	ask, err := helper.DecodeAsk(f.Body)
	if err != nil {
		return nil, helper.Ask{}, sentenceFrame
	}
	p := d.find(ask.Token)
	if p == nil {
		return nil, helper.Ask{}, sentenceToken
	}
	if err := a.conn.SetDeadline(time.Time{}); err != nil {
		return nil, helper.Ask{}, sentenceFrame
	}
	return p, ask, ""
}

// ours says that the other end is a process that this one can see, of its own
// user or of root; root's own sandbox may have other users. An abstract socket can
// be reached from everywhere in its network, also from other containers.
func ours(conn *os.File) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || failed != nil || peer.Pid <= 0 {
		return false
	}
	self := uint32(os.Geteuid()) //nolint:gosec // user ids have 32 bits
	return self == 0 || peer.Uid == self || peer.Uid == 0
}

// refuse answers for the client.
func refuse(conn *os.File, why string) {
	body, err := helper.Answer{Errors: []byte("mini-tool: " + why + "\n"), ExitCode: 1}.Encode()
	if err == nil {
		reply(conn, body)
	}
}

// reply gives an answer to who waits for it, or not, if it is not taken.
func reply(conn *os.File, body []byte) {
	if err := conn.SetWriteDeadline(time.Now().Add(answerWait)); err != nil {
		return
	}
	helper.WriteFrame(conn, helper.Frame{Kind: helper.KindAnswer, Body: body}) //nolint:errcheck // who does not take it is as good as gone
}
