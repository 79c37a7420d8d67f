package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
)

// head is what every line begins with.
type head struct {
	Seq      uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	Type     Kind      `json:"type"`
	Instance string    `json:"instance,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
}

// Encode is an event as one line of JSON, with its end of line:
//
//	{"seq":7,"time":"2026-11-20T09:30:00.5Z","type":"turn_started","step":2}
//
// Outputs are text where they are valid UTF-8, and {"base64": "..."} where not.
// What is no visible sign is escaped, so that a line does nothing to a terminal.
func Encode(s Stamped) ([]byte, error) {
	if s.Event == nil {
		return nil, errors.New("encode event: there is none")
	}
	h := head{Seq: s.Seq, Time: s.Time, Type: s.Event.Kind(), Instance: s.Instance, Attempt: s.Attempt}
	if r, ok := s.Event.(RunStarted); ok && h.Instance != "" { // a name stands once in an object
		r.Instance = ""
		s.Event = r
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(h); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	line.Truncate(line.Len() - len("}\n"))
	begun := line.Len()
	if err := e.Encode(s.Event); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	b := line.Bytes()
	if b[begun+1] == '}' { // an event without fields
		return append(b[:begun], "}\n"...), nil
	}
	b[begun] = ','
	return visible(b), nil
}

// visible escapes what the encoder leaves as it is and is no sign by itself:
// controls beyond ASCII, what turns the direction of texts, what goes onto the
// sign before it. It stands in strings only.
func visible(line []byte) []byte {
	if !bytes.ContainsFunc(line, hidden) {
		return line
	}
	var b bytes.Buffer
	for _, r := range string(line) {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

func hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return false
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff, // parts of Korean syllables
		r >= 0x1f3fb && r <= 0x1f3ff: // colours of skin
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.M, unicode.Other_Default_Ignorable_Code_Point)
}

// ErrKind is what Decode says of lines of a kind that it does not know, as of a
// later mini.
var ErrKind = errors.New("no known kind of event")

// Decode reads a line that Encode made. Fields that it does not know are passed
// over; where it does not know the kind the error wraps ErrKind, and what it
// returns has all but the event.
func Decode(line []byte) (Stamped, error) {
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return Stamped{}, fmt.Errorf("decode event: %w", err)
	}
	s := Stamped{Seq: h.Seq, Time: h.Time, Instance: h.Instance, Attempt: h.Attempt}
	read, ok := readers[h.Type]
	if !ok {
		return s, fmt.Errorf("decode event: %w: %.60q", ErrKind, h.Type)
	}
	e, err := read(line)
	if err != nil {
		return s, fmt.Errorf("decode event: %w", err)
	}
	s.Event = e
	return s, nil
}

// readers is never changed.
var readers = map[Kind]func([]byte) (Event, error){
	KindRunStarted:    reader[RunStarted],
	KindScrubStarted:  reader[ScrubStarted],
	KindScrubbed:      reader[Scrubbed],
	KindTurnStarted:   reader[TurnStarted],
	KindTextDelta:     reader[TextDelta],
	KindReplied:       reader[Replied],
	KindDecided:       reader[Decided],
	KindActionStarted: reader[ActionStarted],
	KindOutputChunk:   reader[OutputChunk],
	KindActionEnded:   reader[ActionEnded],
	KindFormatError:   reader[FormatError],
	KindTold:          reader[Told],
	KindLimitReached:  reader[LimitReached],
	KindToolCalled:    reader[ToolCalled],
	KindChildWorked:   reader[ChildWorked],
	KindCompacted:     reader[Compacted],
	KindEnded:         reader[Ended],
	KindLost:          reader[Lost],
}

func reader[E Event](line []byte) (Event, error) {
	var e E
	err := json.Unmarshal(line, &e)
	return e, err
}

// Writer writes events as lines of JSON, each with one Write and at once. It is
// safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	err error // the first failure; nothing is written after it
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one line. After a failure nothing more is written, and the same
// error is returned: half a line may be the last of what there is.
func (w *Writer) Write(s Stamped) error {
	line, err := Encode(s)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if _, err := w.w.Write(line); err != nil {
			w.err = fmt.Errorf("write event: %w", err)
		}
	}
	return w.err
}
