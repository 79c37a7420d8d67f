package fake

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// exchange is one request and its response.
type exchange struct {
	s       *Server
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	wire    wireFormat
	start   time.Time

	// Guarded by Server.mu, because Stats reads them.
	record      *Request
	admitted    bool // counted by the limiter
	settled     bool // no longer in progress
	limitStatus limitStatus
}

// answer handles a request for a completion, of either API.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f wireFormat) {
	x := s.startExchange(w, r, f)
	defer x.end()
	req, p := x.read()
	if p != nil {
		x.refuse(*p)
		return
	}
	reply, latency, p := x.findReply(req)
	if p != nil {
		x.refuse(*p)
		return
	}
	m := newMessage(reply, req, x.record.Number)
	fault, rule, exceeded := x.admit(m)
	if exceeded != nil {
		x.refuse(limited(f, exceeded, m.model))
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

// startExchange records a request.
func (s *Server) startExchange(w http.ResponseWriter, r *http.Request, f wireFormat) *exchange {
	x := &exchange{s: s, w: w, control: http.NewResponseController(w), r: r, wire: f, start: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Total++
	s.inProgress++
	s.stats.Concurrency = max(s.stats.Concurrency, s.inProgress)
	x.record = &Request{Number: s.stats.Total, Time: x.start, Concurrent: s.inProgress, API: f.api(), Key: key(r) != "", Outcome: InProgress}
	s.requests = append(s.requests, x.record)
	return x
}

// update changes the record of the request.
func (x *exchange) update(change func(e *Request)) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	change(x.record)
}

// read reads and validates the request.
func (x *exchange) read() (*request, *problem) {
	if !x.s.isKeyValid(x.r) {
		p := badKey(x.wire)
		return nil, &p
	}
	body, p := x.s.readBody(x.w, x.r)
	if p != nil {
		return nil, p
	}
	req, p := x.wire.parse(body)
	if p != nil {
		return nil, p
	}
	x.update(func(e *Request) {
		e.Model, e.Stream, e.Step = clip(req.model), req.stream, req.step()
		e.Instance = x.s.names.instance(x.r.Header, req)
	})
	if list := x.s.config.Models; len(list) > 0 && !slices.Contains(list, req.model) {
		p := noModel(x.wire, clip(req.model))
		return nil, &p
	}
	return req, nil
}

// findReply returns the script's reply and its latency.
func (x *exchange) findReply(req *request) (model.Reply, time.Duration, *problem) {
	reply, latency, err := x.s.config.Script.Reply(x.record.Instance, req.step()-1)
	if err == nil {
		return reply, latency, nil
	}
	text := "fake-model: " + err.Error()
	if strings.HasPrefix(x.record.Instance, unnamed) {
		text += "; the request does not name an instance of the script: add the id to agent.instance_template (docs/fake-model.md)"
	}
	p := invalid(text)
	p.code = "unknown_instance"
	if errors.Is(err, scripted.ErrExhausted) {
		p.code = "script_exhausted"
	}
	return reply, latency, p
}

// admit checks the limits and picks a fault.
func (x *exchange) admit(m *message) (Fault, Rule, *limitExceeded) {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	exceeded := s.limits.admit(now, m.usage.Prompt+m.usage.Completion)
	x.limitStatus = s.limits.status(now)
	if exceeded != nil {
		s.stats.Limited++
		x.record.Limit = exceeded.limit
		return Fault{}, Rule{}, exceeded
	}
	x.admitted = true
	if m.cost == 0 && s.config.Price.IsKnown() {
		m.cost = s.config.Price.CostOf(*m.usage)
	}
	x.record.Usage, x.record.Cost = *m.usage, m.cost
	fault, rule, ok := s.plan.pick(x.record)
	if ok {
		x.record.Fault = fault.Name
		s.stats.Faults[fault.Name]++
	}
	return fault, rule, nil
}

// refuse answers with an error.
func (x *exchange) refuse(p problem) {
	h := x.w.Header()
	p.setRetry(h)
	x.update(func(e *Request) { e.RetryAfter = p.retryAfter })
	x.send(p.status, delivery{
		contentType: cmp.Or(p.contentType, "application/json"), outcome: Refused,
		parts: [][]byte{x.wire.problem(p, x.id())},
	})
}

func (x *exchange) id() string { return "req_" + fakeID(x.record.Number) }

// wait waits for d. It returns false if the client left or the server was closed.
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
		return false
	}
}

// settle sets the outcome and removes the request from those in progress. send calls
// settle before it writes the last bytes: when a client sees the end of a response, the
// request is no longer in progress.
func (x *exchange) settle(o Outcome) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.record.Outcome = o
	if x.settled {
		return
	}
	x.settled = true
	x.record.Elapsed = time.Since(x.start)
	x.s.inProgress--
	if x.admitted {
		x.s.limits.release()
	}
}

// end makes sure that the request has an outcome, and passes its record to OnRequest.
func (x *exchange) end() {
	x.s.mu.Lock()
	outcome := x.record.Outcome
	x.s.mu.Unlock()
	if outcome == InProgress {
		x.settle(Failed)
	}
	x.s.mu.Lock()
	record := *x.record
	x.s.mu.Unlock()
	if x.s.config.OnRequest != nil {
		x.s.config.OnRequest(record)
	}
}
