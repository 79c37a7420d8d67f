package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// maxSeen bounds the requests that the books list one by one.
const maxSeen = 1_000_000

// Outcome says what became of a request.
type Outcome string

// The outcomes of requests.
const (
	Open      Outcome = "open"      // it is being answered
	Charged   Outcome = "charged"   // the reply was sent to its end
	Refused   Outcome = "refused"   // the answer was an error, by plan or not
	Faulty    Outcome = "faulty"    // the answer was none, by plan
	Partly    Outcome = "partly"    // it broke off, by plan; what its beginning said that it takes is charged
	Abandoned Outcome = "abandoned" // the client did not wait for the end
)

// Request is one request for a completion. Of the key it says only whether
// there was one.
type Request struct {
	Number   int       `json:"number"` // from 1, in the order in which they came
	Time     time.Time `json:"time"`
	AtOnce   int       `json:"at_once"` // requests in hand when it came, with it
	API      string    `json:"api"`     // openai or anthropic
	Model    string    `json:"model,omitempty"`
	Stream   bool      `json:"stream,omitempty"`
	Key      bool      `json:"key"`
	Instance string    `json:"instance,omitempty"`
	Step     int       `json:"step,omitempty"` // from 1
	Fault    string    `json:"fault,omitempty"`
	// Limit is which of the limits refused it: requests, tokens, concurrent.
	Limit   string  `json:"limit,omitempty"`
	Outcome Outcome `json:"outcome"`
	Status  int     `json:"status"` // 0 where no answer was begun
	// RetryAfter is what the answer asked to wait.
	RetryAfter time.Duration `json:"-"`
	// Usage and Cost are those of the reply, charged or not, and of the charged
	// part where the outcome is Partly.
	Usage   model.Usage   `json:"usage"`
	Cost    model.Cost    `json:"cost"`
	Bytes   int64         `json:"bytes"` // of the body, as far as it was sent
	Elapsed time.Duration `json:"-"`
}

// MarshalJSON gives durations in seconds.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	return json.Marshal(struct {
		plain
		RetryAfter float64 `json:"retry_after_s,omitempty"`
		Elapsed    float64 `json:"elapsed_s"`
	}{plain(r), r.RetryAfter.Seconds(), r.Elapsed.Seconds()})
}

// Bill is a sum of replies.
type Bill struct {
	Replies int         `json:"replies"` // whole ones
	Usage   model.Usage `json:"usage"`
	Cost    model.Cost  `json:"cost"`
}

// Books are what a server saw and charged.
type Books struct {
	Began time.Time `json:"began"`
	// Seen counts the requests; Requests are the first million of them.
	Seen     int       `json:"seen"`
	Requests []Request `json:"requests"`
	// Charged is what the client has to pay; Abandoned what a provider would
	// charge beside that, for replies nobody waited for.
	Charged   Bill `json:"charged"`
	Abandoned Bill `json:"abandoned"`
	// Limited counts the requests that the limits refused, Faults those that
	// each fault was given to.
	Limited int            `json:"limited"`
	Faults  map[string]int `json:"faults"`
	// Concurrency is the highest number of requests at one time, those that
	// were refused included.
	Concurrency int `json:"concurrency"`
}

// MarshalJSON adds how busy it was.
func (b Books) MarshalJSON() ([]byte, error) {
	type plain Books
	busy := func(window time.Duration) map[string]int64 {
		requests, tokens := b.Busiest(window, 0)
		return map[string]int64{"requests": int64(requests), "tokens": tokens}
	}
	return json.Marshal(struct {
		plain
		Busiest map[string]any `json:"busiest"`
	}{plain(b), map[string]any{"second": busy(time.Second), "minute": busy(time.Minute)}})
}

// AtOnce returns the highest number of requests at one time, those that were
// refused included, leaving out what came within skip from the first one on:
// a client needs a moment to find out what it may do.
func (b Books) AtOnce(skip time.Duration) int {
	most := 0
	for _, r := range b.Requests {
		if r.Time.Sub(b.Requests[0].Time) >= skip {
			most = max(most, r.AtOnce)
		}
	}
	return most
}

// Busiest returns the most requests and the most tokens (of prompts and replies,
// charged or not) within any time of that length, leaving out what came within
// skip from the first one on.
func (b Books) Busiest(window, skip time.Duration) (requests int, tokens int64) {
	first, n, sum := 0, 0, int64(0)
	for i, r := range b.Requests {
		if r.Time.Sub(b.Requests[0].Time) < skip {
			first = i + 1
			continue
		}
		n, sum = n+1, sum+r.tokens()
		for r.Time.Sub(b.Requests[first].Time) >= window {
			n, sum = n-1, sum-b.Requests[first].tokens()
			first++
		}
		requests, tokens = max(requests, n), max(tokens, sum)
	}
	return requests, tokens
}

func (r Request) tokens() int64 { return r.Usage.Prompt + r.Usage.Completion }

// Books returns what was seen until now.
func (s *Server) Books() Books {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.books
	b.Faults = maps.Clone(b.Faults)
	b.Requests = make([]Request, len(s.seen))
	for i, r := range s.seen {
		b.Requests[i] = *r
		b.count(r)
	}
	return b
}

// count adds a request to the sums.
func (b *Books) count(r *Request) {
	switch r.Outcome {
	case Charged:
		b.Charged.Replies++
		b.Charged.add(r)
	case Partly:
		b.Charged.add(r)
	case Abandoned:
		b.Abandoned.Replies++
		b.Abandoned.add(r)
	default:
	}
}

// Summary is the books in a few lines.
func (b Books) Summary() string {
	var s strings.Builder
	perSecond, _ := b.Busiest(time.Second, 0)
	perMinute, _ := b.Busiest(time.Minute, 0)
	fmt.Fprintf(&s, "%d requests: at most %d at a time, %d in a second, %d in a minute\n", b.Seen, b.Concurrency, perSecond, perMinute)
	fmt.Fprintf(&s, "%d replies charged: %s\n", b.Charged.Replies, b.Charged)
	if b.Abandoned.Replies > 0 {
		fmt.Fprintf(&s, "%d replies not waited for: %s\n", b.Abandoned.Replies, b.Abandoned)
	}
	if b.Limited > 0 {
		fmt.Fprintf(&s, "%d refused by the limits\n", b.Limited)
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(b.Faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, b.Faults[name]))
	}
	if len(faults) > 0 {
		fmt.Fprintf(&s, "faults: %s\n", strings.Join(faults, ", "))
	}
	return s.String()
}

// String implements fmt.Stringer.
func (b Bill) String() string {
	u := b.Usage
	text := fmt.Sprintf("%d prompt tokens (%d cached, %d written), %d completion tokens (%d reasoning)",
		u.Prompt, u.CacheRead, u.CacheWrite, u.Completion, u.Reasoning)
	if b.Cost > 0 {
		text += fmt.Sprintf(", $%.4f", float64(b.Cost))
	}
	return text
}

func (b *Bill) add(r *Request) {
	b.Usage = b.Usage.Add(r.Usage)
	b.Cost += r.Cost
}
