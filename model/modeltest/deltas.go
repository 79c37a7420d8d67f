package modeltest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
)

// deltaLog records the deltas of one Query.
type deltaLog struct {
	text, reasoning string
	deltas          []model.Delta
	returned        bool // Query has returned
}

// listen returns a listener that records and checks deltas.
func (d *deltaLog) listen(t *testing.T) func(model.Delta) {
	return func(delta model.Delta) {
		if d.returned {
			t.Error("a delta after Query returned")
		}
		if delta.Text == "" && delta.Reasoning == "" && !delta.Restart {
			t.Error("an empty delta")
		}
		d.text, d.reasoning = d.text+delta.Text, d.reasoning+delta.Reasoning
		d.deltas = append(d.deltas, delta)
	}
}

// queryDeltas sends a Query and records its deltas.
func queryDeltas(t *testing.T, m model.Model) (deltaLog, model.Reply, error) {
	var d deltaLog
	reply, err := ask(model.WithDeltas(t.Context(), d.listen(t)), m)
	d.returned = true
	return d, reply, err
}

// deltas tests that Query reports a streamed reply as it arrives, without keys.
func (p Provider) deltas(t *testing.T) {
	t.Run("the reply in pieces", func(t *testing.T) {
		got, reply, err := queryDeltas(t, p.connect(t, Settings{Key: Key, Stream: true}, p.serve(true)))
		if err != nil || got.text != reply.Message.Content || got.reasoning != reply.Message.Reasoning || len(got.deltas) < 3 {
			t.Errorf("deltas %+v of message %+v, %v", got.deltas, reply.Message, err)
		}
	})
	t.Run("not streamed", func(t *testing.T) {
		if got, _, err := queryDeltas(t, p.connect(t, Settings{Key: Key}, p.serve(false))); err != nil || len(got.deltas) > 0 {
			t.Errorf("deltas %+v, %v", got.deltas, err)
		}
	})
	t.Run("as it comes", func(t *testing.T) {
		seen := make(chan struct{})
		stream := p.StreamedPieces("first", "second")
		m := p.connect(t, Settings{Key: Key, Stream: true}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			begin, end, _ := strings.Cut(stream, "second")
			_, _ = w.Write([]byte(begin[:strings.LastIndex(begin, "\n\n")+2]))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-seen: // blocks if the model holds back the first delta
			case <-r.Context().Done():
			}
			_, _ = w.Write([]byte(begin[strings.LastIndex(begin, "\n\n")+2:] + "second" + end))
		})
		text := ""
		_, err := ask(model.WithDeltas(t.Context(), func(d model.Delta) {
			if text += d.Text; text == "first" {
				close(seen)
			}
		}), m)
		if err != nil || text != "firstsecond" {
			t.Errorf("%q, %v", text, err)
		}
	})
	t.Run("cut off", func(t *testing.T) {
		stream := p.StreamedPieces("first ", "second sk-pro")
		got, _, err := queryDeltas(t, p.connect(t, Settings{Key: Key, Stream: true},
			StaticHandler(http.StatusOK, "text/event-stream", stream[:strings.Index(stream, "second sk-pro")+len("second sk-pro\"}}]}\n\n")])))
		if err == nil || !strings.HasPrefix(got.text, "first ") {
			t.Errorf("text %q, %v", got.text, err)
		}
	})
	t.Run("keys", p.splitKeys)
}

// splitKeys tests that a key is redacted if it arrives whole, split in two at any
// place, or in single letters.
func (p Provider) splitKeys(t *testing.T) {
	var letters []string
	for _, c := range "a " + Key + " b" {
		letters = append(letters, string(c))
	}
	tests := map[string][]string{"letters": letters, "whole": {"a ", Key, " b"}}
	for i := 1; i < len(Key); i++ {
		tests[Key[:i]] = []string{"a " + Key[:i], Key[i:] + " b"}
	}
	for name, pieces := range tests {
		got, reply, err := queryDeltas(t, p.connect(t, Settings{Key: Key, Stream: true}, StaticHandler(http.StatusOK, "text/event-stream", p.StreamedPieces(pieces...))))
		if err != nil || got.text != "a [redacted] b" || reply.Message.Content != got.text {
			t.Errorf("%s: text %q, %v", name, got.text, err)
		}
		for _, d := range got.deltas {
			if ContainsKey(d.Text) {
				t.Errorf("%s: delta %q contains the key", name, d.Text)
			}
		}
	}
	// Text that looks like the start of a key but is none is sent, at the latest at the end.
	for _, pieces := range [][]string{{"ask", "ing a sk", "-proj"}, {"s", "k", "-", "s", "k-proj-", "x"}, {Key[:len(Key)-1]}} {
		got, _, err := queryDeltas(t, p.connect(t, Settings{Key: Key, Stream: true}, StaticHandler(http.StatusOK, "text/event-stream", p.StreamedPieces(pieces...))))
		if err != nil || got.text != strings.Join(pieces, "") {
			t.Errorf("text %q of %q, %v", got.text, pieces, err)
		}
	}
}
