package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes of requests.
const (
	InProgress Outcome = "open"      // being answered
	Charged    Outcome = "charged"   // the reply was sent completely
	Refused    Outcome = "refused"   // the response was an error, planned or not
	Failed     Outcome = "faulty"    // no usable response, by plan or because the server closed
	Partial    Outcome = "partly"    // an unusable stream, by plan; the usage at its start is charged
	Abandoned  Outcome = "abandoned" // the client did not read the response to its end
)

// Request is the record of one request for a completion. It does not contain the
// key.
type Request struct {
	Number   int    // in order of arrival, from 1
	API      string // openai, anthropic, responses or gemini
	Model    string
	Stream   bool
	Key      bool // the request had a key
	Instance string
	Step     int // from 1
	Fault    string
	Outcome  Outcome
	Status   int // 0 if there was no response
	// RetryAfter is the wait that the response asked for.
	RetryAfter time.Duration
	// Usage and Cost are those of the reply, charged or not. If Outcome is
	// Partial, they are those of the charged part.
	Usage   model.Usage
	Cost    model.Cost
	Elapsed time.Duration
}

// Totals holds sums over replies.
type Totals struct {
	Replies int // without those of outcome Partial
	Usage   model.Usage
	Cost    model.Cost
}

// Stats are the requests that a server received and the costs it charged.
type Stats struct {
	Total    int
	Requests []Request
	// Charged is what the client has to pay. Abandoned is what a provider would
	// charge in addition, for replies that the client did not read.
	Charged, Abandoned Totals
	Faults             map[string]int // the requests that got each fault
}

// Stats returns a snapshot of the requests so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Faults = maps.Clone(stats.Faults)
	stats.Requests = make([]Request, len(s.requests))
	for i, r := range s.requests {
		stats.Requests[i] = *r
		stats.count(r)
	}
	return stats
}

// count adds a request to the totals.
func (s *Stats) count(r *Request) {
	switch r.Outcome {
	case Charged:
		s.Charged.Replies++
		s.Charged.add(r)
	case Partial:
		s.Charged.add(r)
	case Abandoned:
		s.Abandoned.Replies++
		s.Abandoned.add(r)
	default:
	}
}

// Summary returns the statistics in a few lines of text.
func (s Stats) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests\n", s.Total)
	fmt.Fprintf(&b, "%d replies charged: %s\n", s.Charged.Replies, s.Charged)
	if s.Abandoned.Replies > 0 {
		fmt.Fprintf(&b, "%d replies abandoned by the client: %s\n", s.Abandoned.Replies, s.Abandoned)
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(s.Faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, s.Faults[name]))
	}
	if len(faults) > 0 {
		fmt.Fprintf(&b, "faults: %s\n", strings.Join(faults, ", "))
	}
	return b.String()
}

// String implements fmt.Stringer.
func (t Totals) String() string {
	u := t.Usage
	text := fmt.Sprintf("%d prompt tokens (%d cached, %d written), %d completion tokens (%d reasoning)",
		u.Prompt, u.CacheRead, u.CacheWrite, u.Completion, u.Reasoning)
	if t.Cost > 0 {
		text += fmt.Sprintf(", $%.4f", float64(t.Cost))
	}
	return text
}

func (t *Totals) add(r *Request) {
	t.Usage = t.Usage.Add(r.Usage)
	t.Cost += r.Cost
}
