package fake

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// delivery is a response and how it is sent.
type delivery struct {
	contentType string
	parts       [][]byte
	stream      bool
	missing     int     // bytes announced in the header but not sent
	outcome     Outcome // outcome of the request once everything is sent
}

// deliver sends a reply, modified by a fault.
func (x *exchange) deliver(m *message, req *request, f Fault, rule Rule) {
	d := delivery{contentType: "application/json", stream: req.stream, outcome: Charged}
	if req.stream {
		d.contentType = "text/event-stream; charset=utf-8"
		d.parts = x.wire.events(m)
	} else {
		body := jsonOf(x.wire.plain(m), "")
		half, end := len(body)/2, len(body)-2
		d.parts = [][]byte{body[:half], body[half:end], body[end:]}
	}
	switch f.mode {
	case deliverWhole:
	case deliverStalled:
		if !x.wait(cmp.Or(rule.Wait, 30*time.Second)) {
			x.abandon(d.outcome)
			return
		}
	case deliverReset:
		x.settle(Failed)
		x.reset()
		return
	case deliverCut, deliverBadJSON:
		d.corrupt(f.mode)
		if partial := x.wire.startUsage(m); partial != nil && req.stream {
			d.outcome = Partial
			x.update(func(e *Request) { e.Usage, e.Cost = *partial, x.s.config.Price.CostOf(*partial) })
		}
	}
	x.send(http.StatusOK, d)
}

// corrupt makes a response unusable.
func (d *delivery) corrupt(mode deliveryMode) {
	d.outcome = Failed
	middle := max(1, len(d.parts)/2)
	if mode == deliverBadJSON && d.stream {
		part := d.parts[middle]
		d.parts[middle] = append(slices.Clone(part[:len(part)*2/3]), "\n\n"...)
		return
	}
	if mode == deliverCut && !d.stream {
		d.missing = length(d.parts[middle:])
	}
	d.parts = d.parts[:middle]
}

func length(parts [][]byte) int {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// send writes a response. The request counts as ended before the last bytes are
// written.
func (x *exchange) send(status int, d delivery) {
	h := x.w.Header()
	x.wire.headers(h, x.id())
	h.Set("Content-Type", d.contentType)
	if d.stream {
		h.Set("Cache-Control", "no-cache")
	} else {
		h.Set("Content-Length", strconv.Itoa(length(d.parts)+d.missing))
	}
	x.update(func(e *Request) { e.Status = status })
	x.w.WriteHeader(status)
	for i, p := range d.parts {
		if x.r.Context().Err() != nil {
			x.abandon(d.outcome)
			return
		}
		if i == len(d.parts)-1 {
			x.settle(d.outcome)
		}
		_, err := x.w.Write(p)
		if err == nil && d.stream {
			err = x.control.Flush()
		}
		if err != nil {
			x.abandon(d.outcome)
			return
		}
	}
	if x.control.Flush() != nil {
		x.abandon(d.outcome)
	} else if d.missing > 0 {
		panic(http.ErrAbortHandler) // closes the connection
	}
}

// abandon records that a response could not be sent completely, because the client
// left or the server was closed. completed is the outcome of a complete response.
func (x *exchange) abandon(completed Outcome) {
	x.s.mu.Lock()
	closed := x.s.closed
	x.s.mu.Unlock()
	switch {
	case closed:
		x.settle(Failed)
	case completed == Charged:
		x.settle(Abandoned)
	default:
		x.settle(completed)
	}
}

// reset resets the connection. It closes a connection that cannot be reset.
func (x *exchange) reset() {
	conn, _, err := x.control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection instead
	}
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // without it the connection is closed normally
	}
	_ = conn.Close()
}
