package server

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/process"
)

// desk is where requests of commands come in, over a socket that there is from
// the first command on that may ask. It passes them on to the client, and the
// answers back.
type desk struct {
	out *frames

	mu       sync.Mutex
	name     string   // of the socket
	listener *os.File // nil before there is one
	closed   bool
	posts    map[uint32]*post // by the ids of their commands
	arriving []*arriver       // those who have not shown a token yet, in the order in which they came
	workers  sync.WaitGroup
}

// post is a command that may ask, or that runs inside of one that may.
type post struct {
	id     uint32
	outer  *post // nil where it runs by itself
	depth  int
	token  string // empty where it may not ask
	job    *job
	place  *process.Place
	clock  *helper.Clock
	inner  sync.WaitGroup // the jobs of commands inside
	ending chan struct{}  // closed when no request of the command is passed on any more

	// passing is held while a frame about a request is sent: none is after the
	// last word on the command.
	passing sync.Mutex
	over    bool

	// Guarded by the desk.
	last    uint32
	waiting map[uint32]*request
}

// request is one that the client has not answered yet.
type request struct {
	answer  chan []byte // of capacity one
	release func()      // lets the command's clock run on
}

// add makes the post of a command. The variables are those that it needs to ask.
func (d *desk) add(p *post, asks bool, local []string, timeout time.Duration) (variables map[string]string, err error) {
	if asks {
		name, err := d.open()
		if err != nil {
			return nil, err
		}
		p.token = rand.Text()
		variables = map[string]string{
			helper.SocketVariable: name,
			helper.TokenVariable:  p.token,
			helper.LocalVariable:  strings.Join(local, ","),
		}
	}
	mark := ""
	if asks {
		mark = helper.TokenVariable + "=" + p.token
	}
	p.waiting, p.ending = map[uint32]*request{}, make(chan struct{})
	if p.outer == nil {
		p.place, p.clock = process.NewPlace(nil, mark), helper.NewClock(timeout, nil)
	} else {
		p.place, p.clock = process.NewPlace(p.outer.place, mark), helper.NewClock(timeout, p.outer.clock)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.posts[p.id] = p
	return variables, nil
}

// enter finds the post that a command is to run inside of, and has it wait for
// that one; nil when it is over.
func (d *desk) enter(id uint32) *post {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.posts[id]
	if p == nil || p.token == "" {
		return nil
	}
	p.inner.Add(1)
	return p
}

// remove ends a post, its requests, and waits for the last words on what ran
// inside of it.
func (d *desk) remove(p *post) {
	p.clock.Stop()
	p.passing.Lock()
	p.over = true
	p.passing.Unlock()
	close(p.ending)
	d.mu.Lock()
	delete(d.posts, p.id)
	d.mu.Unlock()
	p.inner.Wait()
}

// cancel ends a command that runs inside of another one, if there is one with
// this id.
func (d *desk) cancel(id uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.posts[id]; p != nil {
		p.job.cancel(errCancel)
	}
}

// answer brings an answer of the client's to who waits for it, if anybody does.
func (d *desk) answer(f helper.Frame) error {
	n, body, err := helper.CutNumber(f.Body)
	if err != nil {
		return err
	}
	if len(body) > helper.MaxAnswer {
		return fmt.Errorf("%w: answer of %d bytes", helper.ErrFrame, len(body))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.posts[f.ID]
	if p == nil || p.waiting[n] == nil {
		return nil // the command has just ended
	}
	r := p.waiting[n]
	delete(p.waiting, n)
	r.release()
	r.answer <- body // the first and last
	return nil
}

// find returns the command that a token belongs to. The time it takes tells
// nothing of tokens.
func (d *desk) find(token string) *post {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found *post
	for _, p := range d.posts {
		if p.token != "" && subtle.ConstantTimeCompare([]byte(p.token), []byte(token)) == 1 {
			found = p
		}
	}
	return found
}

// pass sends a request on to the client. It says in a sentence why it does not.
func (d *desk) pass(p *post, ask helper.Ask) (n uint32, r *request, why string) {
	ask.Token = ""
	body, err := ask.Encode()
	if err != nil {
		return 0, nil, "the request cannot be passed on: " + err.Error()
	}
	p.passing.Lock() // also for the order of the numbers
	defer p.passing.Unlock()
	if p.over {
		return 0, nil, sentenceOver
	}
	d.mu.Lock()
	if len(p.waiting) >= helper.MaxAsks {
		d.mu.Unlock()
		return 0, nil, fmt.Sprintf("%d requests of this command are under way, and no more can be; try again when one has been answered", helper.MaxAsks)
	}
	p.last++
	n, r = p.last, &request{answer: make(chan []byte, 1), release: p.clock.Hold()}
	p.waiting[n] = r
	d.mu.Unlock()
	if err := d.out.send(helper.Frame{Kind: helper.KindAsk, ID: p.id, Body: helper.WithNumber(n, body)}); err != nil {
		return 0, nil, sentenceOver // the conversation is
	}
	return n, r, ""
}

// gone tells the client that nobody awaits an answer any more.
func (d *desk) gone(p *post, n uint32, r *request) {
	r.release()
	p.passing.Lock()
	defer p.passing.Unlock()
	d.mu.Lock()
	awaited := p.waiting[n] == r
	d.mu.Unlock()
	if !p.over && awaited {
		d.out.send(helper.Frame{Kind: helper.KindGone, ID: p.id, Body: helper.WithNumber(n, nil)}) //nolint:errcheck // the end of the input follows
	}
}
