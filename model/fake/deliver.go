package fake

import (
	"net/http"
	"strconv"
)

// delivery is an answer, and how it is sent.
type delivery struct {
	contentType string
	parts       []part
	stream      bool
	length      int64             // what the header promises, 0 is the parts'
	pause       func(i int) bool  // before a part; false ends it
	outcome     Outcome           // once all was sent
	after       func(x *exchange) // what happens to the connection then
}

// deliver sends a reply in the manner of a fault.
func (x *exchange) deliver(m *message, req *request, f Fault, rule Rule) {
	d := delivery{contentType: "application/json", stream: req.stream, outcome: Charged}
	if f.Name != "" && !f.Charged {
		d.outcome = Faulty
	}
	if req.stream {
		d.contentType = "text/event-stream; charset=utf-8"
		d.parts = x.wire.events(m)
	} else {
		d.parts = thirds(jsonOf(x.wire.plain(m), ""))
	}
	wait := rule.Wait
	middle := max(1, len(d.parts)/2)
	switch f.manner {
	case whole:
	case stallFirst:
		if !x.wait(wait) {
			x.abandon(d.outcome)
			return
		}
	case stallMid:
		d.pause = func(i int) bool { return i != middle || x.wait(wait) }
	case resetFirst:
		x.settle(Faulty)
		x.reset()
		return
	default:
		d.spoil(f.manner, middle, x)
		if said := x.wire.said(m); said != nil && req.stream && f.manner.breaks() {
			d.outcome = Partly
			x.note(func(e *Request) { e.Usage, e.Cost = *said, x.s.config.Price.Of(*said) })
		}
	}
	x.send(http.StatusOK, d)
}

// spoil makes an answer one that is none.
func (d *delivery) spoil(how manner, middle int, x *exchange) {
	broken := problem{typ: "server_error", anthropicType: "api_error", message: "The server had an error while processing your request."}
	if how == errorEvent && !d.stream {
		how = errorBody
	}
	switch how {
	case resetMid, drop, cut:
		d.length = length(d.parts)
		d.parts = d.parts[:middle]
		if how == resetMid {
			d.after = (*exchange).reset
		} else if how == drop || !d.stream {
			d.after = func(*exchange) { panic(http.ErrAbortHandler) } // which closes the connection
		}
	case badJSON:
		if d.stream {
			torn := d.parts[middle].data
			d.parts[middle].data = append(append([]byte{}, torn[:len(torn)*2/3]...), "\n\n"...)
		} else {
			d.parts = d.parts[:middle]
		}
	case errorEvent:
		d.parts = append(d.parts[:middle:middle], part{data: x.wire.problemEvent(broken)})
	case errorBody:
		*d = delivery{contentType: "application/json", outcome: d.outcome, parts: []part{{data: x.wire.problem(broken, x.id())}}}
	default:
	}
}

// thirds cuts a plain answer in two halves and its end.
func thirds(body []byte) []part {
	half, end := len(body)/2, len(body)-2
	return []part{{data: body[:half]}, {data: body[half:end]}, {data: body[end:]}}
}

func length(parts []part) int64 {
	var n int64
	for _, p := range parts {
		n += int64(len(p.data))
	}
	return n
}

// send writes an answer.
func (x *exchange) send(status int, d delivery) {
	h := x.w.Header()
	x.wire.headers(h, x.id(), x.standing)
	h.Set("Content-Type", d.contentType)
	if d.stream {
		h.Set("Cache-Control", "no-cache")
	} else {
		h.Set("Content-Length", strconv.FormatInt(max(d.length, length(d.parts)), 10))
	}
	x.note(func(e *Request) { e.Status = status })
	if len(d.parts) == 0 {
		x.settle(d.outcome)
	}
	x.w.WriteHeader(status)
	for i, p := range d.parts {
		if d.pause != nil && (x.control.Flush() != nil || !d.pause(i)) {
			x.abandon(d.outcome)
			return
		}
		if !x.write(p, d, i == len(d.parts)-1) {
			x.abandon(d.outcome)
			return
		}
	}
	if x.control.Flush() != nil {
		x.abandon(d.outcome)
	} else if d.after != nil {
		d.after(x)
	}
}

// write sends a part; before the last bytes of all the request has ended.
func (x *exchange) write(p part, d delivery, last bool) bool {
	if x.r.Context().Err() != nil {
		return false
	}
	if last {
		x.settle(d.outcome)
	}
	n, err := x.w.Write(p.data)
	x.note(func(e *Request) { e.Bytes += int64(n) })
	return err == nil && (!d.stream || x.control.Flush() == nil)
}

// abandon is for an answer that could not be sent to its end. Where Close is
// why, it closes the connection too: a handler that returned before Close came
// to that would give a stream a good end.
func (x *exchange) abandon(would Outcome) {
	x.settle(x.left(would))
	if x.s.isClosed() {
		panic(http.ErrAbortHandler)
	}
}

// left is what becomes of a request whose answer could not be sent to its end:
// that is the client's doing, unless the server was closed.
func (x *exchange) left(would Outcome) Outcome {
	if x.s.isClosed() {
		return Faulty
	}
	if would == Charged {
		return Abandoned
	}
	return would
}

// reset ends the connection so that the client's system says it was reset,
// where connections can be.
func (x *exchange) reset() {
	conn, _, err := x.control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the next best
	}
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // without it, it is closed in good order
	}
	_ = conn.Close()
}
