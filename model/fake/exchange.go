package fake

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// exchange is one request and its answer.
type exchange struct {
	s       *Server
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	wire    wire
	begun   time.Time

	// Guarded by the server's lock, for the books are read meanwhile.
	entry    *Request
	admitted bool // the limiter counts it
	gone     bool // it is in hand no more
	standing standing
}

// answer serves a request for a completion.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f wire) {
	x := s.begin(w, r, f)
	defer x.end()
	req, p := x.read()
	if p != nil {
		x.refuse(*p)
		return
	}
	reply, latency, p := x.look(req)
	if p != nil {
		x.refuse(*p)
		return
	}
	m := newMessage(reply, req, x.entry.Number)
	fault, rule, over := x.admit(m)
	if over != nil {
		x.refuse(limited(f, over, m.model))
		return
	}
	switch {
	case !x.wait(latency):
		x.abandon(Charged)
	case fault.problem != nil:
		p := fault.problem(x.wire, m.model)
		p.retryAfter = rule.RetryAfter
		x.refuse(p)
	default:
		x.deliver(m, req, fault, rule)
	}
}

// begin puts a request into the books.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, f wire) *exchange {
	x := &exchange{s: s, w: w, control: http.NewResponseController(w), r: r, wire: f, begun: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books.Seen++
	s.inHand++
	s.books.Concurrency = max(s.books.Concurrency, s.inHand)
	x.entry = &Request{Number: s.books.Seen, Time: x.begun, AtOnce: s.inHand, API: f.api(), Key: key(r) != "", Outcome: Open}
	if len(s.seen) < maxSeen {
		s.seen = append(s.seen, x.entry)
	}
	return x
}

// note changes the books' entry.
func (x *exchange) note(change func(e *Request)) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	change(x.entry)
}

// read reads the request, and refuses what providers refuse.
func (x *exchange) read() (*request, *problem) {
	if !x.s.keyGood(x.r) {
		p := badKey(x.wire)
		return nil, &p
	}
	body, p := x.s.readBody(x.w, x.r)
	if p != nil {
		return nil, p
	}
	req, p := x.wire.parse(body, false)
	if p != nil {
		return nil, p
	}
	x.note(func(e *Request) {
		e.Model, e.Stream, e.Step = clip(req.model), req.stream, req.step()
		e.Instance = x.s.names.instance(x.r.Header, req)
	})
	if list := x.s.config.Models; len(list) > 0 && !slices.Contains(list, req.model) {
		p := noModel(x.wire, clip(req.model))
		return nil, &p
	}
	return req, nil
}

// look finds the reply.
func (x *exchange) look(req *request) (model.Reply, time.Duration, *problem) {
	reply, latency, err := x.s.config.Script.Reply(x.entry.Instance, req.step()-1)
	if err == nil {
		return reply, latency, nil
	}
	text := "fake-model: " + err.Error()
	if strings.HasPrefix(x.entry.Instance, unnamed) {
		text += "; the request names no instance of the file, as with the default prompts of mini bench: put the id into agent.instance_template (docs/fake-model.md)"
	}
	p := invalid(text)
	p.code = "unknown_instance"
	if errors.Is(err, scripted.ErrNoMore) {
		p.code = "script_exhausted"
	}
	return reply, latency, p
}

// admit asks the limits, and then the plan.
func (x *exchange) admit(m *message) (Fault, Rule, *over) {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	over := s.limits.admit(now, m.usage.Prompt+m.usage.Completion)
	x.standing = s.limits.standing(now)
	if over != nil {
		s.books.Limited++
		x.entry.Limit = over.limit
		return Fault{}, Rule{}, over
	}
	x.admitted = true
	if m.cost == 0 && s.config.Price.Known() {
		m.cost = s.config.Price.Of(*m.usage)
	}
	x.entry.Usage, x.entry.Cost = *m.usage, m.cost
	fault, rule, ok := s.plan.pick(x.entry)
	if ok {
		x.entry.Fault = fault.Name
		s.books.Faults[fault.Name]++
	}
	return fault, rule, nil
}

// refuse answers with a problem.
func (x *exchange) refuse(p problem) {
	h := x.w.Header()
	p.setRetry(h)
	x.note(func(e *Request) { e.RetryAfter = p.retryAfter })
	x.send(p.status, delivery{
		contentType: or(p.contentType, "application/json"), outcome: Refused,
		parts: []part{{data: x.wire.problem(p, x.id())}},
	})
}

func (x *exchange) id() string { return "req_" + fakeID(x.entry.Number) }

// wait returns false when the client left, or the server was closed.
func (x *exchange) wait(d time.Duration) bool {
	if d <= 0 {
		return x.r.Context().Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
	case <-x.s.closed:
	}
	return false
}

// settle says what became of the request, and takes it out of those in hand:
// before its last bytes, so that nobody has seen its end earlier.
func (x *exchange) settle(o Outcome) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.entry.Outcome = o
	if x.gone {
		return
	}
	x.gone = true
	x.entry.Elapsed = time.Since(x.begun)
	x.s.inHand--
	if x.admitted {
		x.s.limits.leave()
	}
}

// end closes the entry, however the answer ended.
func (x *exchange) end() {
	x.s.mu.Lock()
	outcome := x.entry.Outcome
	x.s.mu.Unlock()
	if outcome == Open {
		x.settle(Faulty)
	}
	x.s.mu.Lock()
	entry := *x.entry
	if entry.Number > maxSeen {
		x.s.books.count(&entry)
	}
	x.s.mu.Unlock()
	if x.s.config.Seen != nil {
		x.s.config.Seen(entry)
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
