// Package fake is a provider of models that is none: a server with OpenAI's
// chat completions and Anthropic's messages, plain and streamed, whose replies
// come from a script, and which fails as it is told.
//
// It is for testing whatever talks to providers. It does what they do: tool
// calls, thinking, caches, usage, error objects, rate limits; it fails in every
// way of Faults; and it keeps books of what it saw and charged, so that a
// client's own accounts can be held against them. It knows nothing of agents,
// and what it says does not depend on what it is told.
//
//	script, err := scripted.Load("replies.yaml")
//	server, err := fake.New(fake.Config{Script: script})
//	go server.Serve(listener) // any net.Listener; see Memory
//	defer server.Close()
//	... fake.Books: server.Books()
//
// # Which reply
//
// The step of a request is one more than its assistant turns. The instance is
// what the header X-Fake-Instance says; else the longest name of the script (or
// the plan) that stands as a word in the messages before the first assistant
// turn; else the conversation itself, named by a hash of those messages, which
// then gets the replies under "*". The reply is the script's for that instance
// and step, whatever was said before: asked again, it is given again.
//
// Where a request offers a tool named bash, or one with a parameter "command",
// the ```bash blocks of a reply travel as calls of it, and the text before the
// first block as text; calls that the script spells out travel as they are, and
// as one block to who offers no tools. Reasoning goes out as reasoning_content, and as a
// thinking block where thinking was asked for.
//
// # Usage and bills
//
// The usage is the script's. Where it says none, four bytes are a token, and
// what the step before has sent already is read from the cache (with Anthropic
// only up to a cache_control, and what lies between is written).
//
// A reply that was completely sent is charged. One that the server broke off,
// or that was no reply, is not: Faults says which are. One that the client did
// not wait for is what providers charge and clients cannot know; it stands
// under Abandoned. A request counts as ended just before its last bytes leave,
// so that who sends the next one on seeing them is never two at once.
package fake

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// Config says what a server answers. Only Script is needed.
type Config struct {
	Script *scripted.Script
	// Plan is what goes wrong, and when; nil is nothing.
	Plan *Plan
	// Limits are enforced as providers do; zero values are none.
	Limits Limits
	// Models are those there are; the others are not found. Empty is any.
	Models []string
	// CheckKey says whether a key (of Authorization or x-api-key, "" for none)
	// is good; nil takes all.
	CheckKey func(key string) bool
	// Price of the tokens, for the books. A cost in the script wins.
	Price model.Price
	// MaxBody bounds a request, in bytes; default DefaultMaxBody.
	MaxBody int64
	// Seen is called with each request when it has ended; nil is not. It is
	// called by many goroutines.
	Seen func(Request)
}

// DefaultMaxBody is how long a request may be, in bytes, as at Anthropic.
const DefaultMaxBody = 32 << 20

const (
	headerTime = 10 * time.Second // for a client to send its headers
	bodyTime   = 60 * time.Second // and then its body
	idleTime   = 10 * time.Minute // between requests of a connection
	maxHeader  = 64 << 10
	maxName    = 200 // bytes that are kept of a name that a client sent
)

// New checks the configuration; Close ends what it returns.
func New(c Config) (*Server, error) {
	if c.Script == nil {
		return nil, errors.New("configure fake model: a script is needed")
	}
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if err := c.Limits.validate(); err != nil {
		return nil, fmt.Errorf("configure fake model: %w", err)
	}
	if c.Plan == nil {
		c.Plan = &Plan{}
	}
	if err := c.Plan.Validate(); err != nil {
		return nil, fmt.Errorf("configure fake model: %w", err)
	}
	s := &Server{
		config: c, names: newNames(c.Script.Names()),
		plan: newPlanner(c.Plan), limits: newLimiter(c.Limits), closed: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	s.books.Began = time.Now()
	s.books.Faults = map[string]int{}
	s.mux = s.routes()
	s.http = &http.Server{
		Handler: s, MaxHeaderBytes: maxHeader, ConnState: s.connection, ErrorLog: discard(),
		ReadHeaderTimeout: headerTime, ReadTimeout: headerTime + bodyTime, IdleTimeout: idleTime,
	}
	return s, nil
}
