// Package fake is a model provider for tests: a server with OpenAI's chat
// completions and Anthropic's messages, plain and streamed. Its replies come from
// a script, its failures from a plan.
//
// It imitates the providers' tool calls, thinking, caches, usage and errors, and
// fails in the ways listed by Faults. It records what it received and charged, so
// that tests can compare a client's usage and cost. It does not interpret prompts:
// replies depend on the instance and the step only.
//
//	script, err := scripted.Parse("replies.yaml", data)
//	server, err := fake.New(fake.Config{Script: script})
//	go server.Serve(listener) // any net.Listener; see MemoryListener
//	defer server.Close()
//	... server.Stats()
//
// # Replies
//
// The step of a request is the number of its assistant messages plus one. The
// instance is the value of the header X-Fake-Instance; or the longest instance ID
// of the script that occurs as a word before the first assistant message; or else a
// hash of these messages, which gets the replies under "*". Each request for the
// same instance and step gets the same reply.
//
// If a request offers a tool named bash, or a tool with a parameter "command", the
// ```bash, ```sh and ```shell blocks of a reply become calls of that tool; of the rest, only
// the text before the first block is sent. Tool calls in the script are sent as they are; if
// the request offers no such tool, their commands are sent as one bash block. Reasoning is
// sent as reasoning_content, or as a thinking block if the request enables thinking.
//
// # Usage and cost
//
// Usage comes from the script. For replies without usage, four bytes count as one
// token, and the prompt of the previous step as read from the cache. For Anthropic,
// only the prompt up to the last cache_control is cached: what is not read from the
// cache is written to it.
//
// A reply is charged when it is sent completely. Of unusable and incomplete replies, only
// the usage at the start of an Anthropic stream is charged; see Faults. A reply that the
// client does not read to its end is abandoned: a provider charges it, but the client cannot
// know its cost.
// A request ends just before its last bytes are sent, so a client that waits for
// them never has two requests in progress.
package fake

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// Config configures a server. Only Script is required.
type Config struct {
	Script *scripted.Script
	// Plan says which requests fail; nil means none.
	Plan *Plan
	// Models are the known models; others are not found. Empty accepts any.
	Models []string
	// CheckKey reports whether a key (from Authorization or x-api-key, "" if
	// missing) is valid; nil accepts any.
	CheckKey func(key string) bool
	// Price of the tokens. A cost in the script overrides it.
	Price model.Price
	// Tokens answers chat completions as vLLM does, with the ids and the log probabilities of
	// tokens for requests that ask for them. Replies are text. Plan and Price do not apply.
	Tokens bool
}

// New returns a server. Close stops it.
func New(c Config) (*Server, error) {
	if c.Script == nil {
		return nil, errors.New("configure fake model: no script; set Config.Script")
	}
	if c.Plan == nil {
		c.Plan = &Plan{}
	}
	if err := c.Plan.Validate(); err != nil {
		return nil, fmt.Errorf("configure fake model: %w", err)
	}
	s := &Server{config: c, requested: map[instanceStep]int{}, stats: Stats{Faults: map[string]int{}}, tokens: newTokenServer(c)}
	s.mux = s.routes()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)} // faults cut connections
	return s, nil
}
