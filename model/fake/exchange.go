package fake

import (
	"cmp"
	"errors"
	"io"
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
	record *Request
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
	fault, rule := x.charge(m)
	switch {
	case !x.wait(latency):
		x.abandon(Charged)
	case fault.problem != nil:
		x.refuse(fault.problem(x.wire))
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
	x.record = &Request{Number: s.stats.Total, API: f.api(), Key: key(r) != "", Outcome: InProgress}
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
	body, err := io.ReadAll(x.r.Body)
	if err != nil {
		return nil, invalid("We could not read the body of your request: it ended early.")
	}
	req, p := x.wire.parse(body)
	if p != nil {
		return nil, p
	}
	x.update(func(e *Request) {
		e.Model, e.Stream, e.Step = req.model, req.stream, req.step()
		e.Instance = x.s.instance(x.r.Header, req)
	})
	if list := x.s.config.Models; len(list) > 0 && !slices.Contains(list, req.model) {
		p := noModel(x.wire, req.model)
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
	text := "fake model: " + err.Error()
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

// charge records the usage and the cost of a reply, and picks its fault.
func (x *exchange) charge(m *message) (Fault, Rule) {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.cost == 0 && s.config.Price.IsKnown() {
		m.cost = s.config.Price.CostOf(*m.usage)
	}
	x.record.Usage, x.record.Cost = *m.usage, m.cost
	fault, rule := s.pickFault(x.record)
	if fault.Name != "" {
		x.record.Fault = fault.Name
		s.stats.Faults[fault.Name]++
	}
	return fault, rule
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

// settle sets the outcome. send calls settle before it writes the last bytes: when a
// client sees the end of a response, the request is no longer in progress.
func (x *exchange) settle(o Outcome) {
	x.update(func(e *Request) {
		if e.Outcome == InProgress {
			e.Elapsed = time.Since(x.start)
		}
		e.Outcome = o
	})
}

// end makes sure that the request has an outcome.
func (x *exchange) end() {
	x.update(func(e *Request) {
		if e.Outcome == InProgress {
			e.Outcome = Failed
		}
	})
}
