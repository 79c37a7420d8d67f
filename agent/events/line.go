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

// Version is the version of the lines, which the line of RunStarted names.
const Version = 1

// lineHeader has the fields at the start of every line.
type lineHeader struct {
	Seq      uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	Type     Kind      `json:"type"`
	Version  int       `json:"version,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
}

// Encode returns an event as one line of JSON, including the newline:
//
//	{"seq":7,"time":"2026-11-20T09:30:00.5Z","type":"turn_started","step":2}
//
// Outputs are strings if they are valid UTF-8, else {"base64": "..."}.
// Invisible characters are escaped, so that a line has no effect on a terminal.
func Encode(e Envelope) ([]byte, error) {
	if e.Event == nil || e.Event.Kind() == "" {
		return nil, errors.New("encode event: it has no line")
	}
	h := lineHeader{Seq: e.Seq, Time: e.Time, Type: e.Event.Kind(), Instance: e.Instance, Attempt: e.Attempt}
	fields := any(e.Event)
	switch event := e.Event.(type) {
	case RunStarted:
		h.Version = Version
		if h.Instance != "" { // the header has the instance already
			event.Instance = ""
		}
		fields = event
	case PhaseStarted:
		if h.Type == KindScrubStarted {
			fields = struct{}{}
		}
	case Recorded:
		_, fields = event.line()
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	line.Truncate(line.Len() - len("}\n"))
	headerLen := line.Len()
	if err := enc.Encode(fields); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	b := line.Bytes()
	if b[headerLen+1] == '}' { // the event has no fields
		return append(b[:headerLen], "}\n"...), nil
	}
	b[headerLen] = ','
	return escapeInvisible(b), nil
}

// escapeInvisible escapes characters that the encoder does not escape and that
// can change the display, such as DEL, controls beyond ASCII, bidirectional
// controls and combining marks. They occur only inside JSON strings.
func escapeInvisible(line []byte) []byte {
	if !bytes.ContainsFunc(line, isInvisible) {
		return line
	}
	var b bytes.Buffer
	for _, r := range string(line) {
		switch {
		case !isInvisible(r):
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

func isInvisible(r rune) bool {
	switch {
	case r < 0x7f:
		return false
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff, // Hangul jamo
		r >= 0x1f3fb && r <= 0x1f3ff: // skin tone modifiers
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.M, unicode.Other_Default_Ignorable_Code_Point)
}

// ErrUnknownKind is wrapped by Decode's error for lines of an unknown kind, for
// example of a later version of mini.
var ErrUnknownKind = errors.New("unknown kind of event")

// Decode reads a line that Encode wrote. It ignores unknown fields. If the kind
// is unknown, the error wraps ErrUnknownKind, and the result has all fields
// except Event.
func Decode(line []byte) (Envelope, error) {
	var h lineHeader
	if err := json.Unmarshal(line, &h); err != nil {
		return Envelope{}, fmt.Errorf("decode event: %w", err)
	}
	envelope := Envelope{Seq: h.Seq, Time: h.Time, Instance: h.Instance, Attempt: h.Attempt}
	read, ok := decoders[h.Type]
	if !ok {
		return envelope, fmt.Errorf("decode event: %w: %.60q", ErrUnknownKind, h.Type)
	}
	e, err := read(line)
	if err != nil {
		return envelope, fmt.Errorf("decode event: %w", err)
	}
	envelope.Event = e
	return envelope, nil
}

var decoders = map[Kind]func([]byte) (Event, error){
	KindRunStarted:    decode[RunStarted],
	KindScrubStarted:  decodePhase(PhaseScrubbing),
	KindScrubbed:      decodeRecord[scrubLine],
	KindTurnStarted:   decodePhase(PhaseThinking),
	KindTextDelta:     decode[TextDelta],
	KindReplied:       decodeRecord[replyLine],
	KindDecided:       decodeRecord[decisionLine],
	KindActionStarted: decodePhase(PhaseRunning),
	KindOutputChunk:   decode[OutputChunk],
	KindActionEnded:   decodeRecord[executionLine],
	KindFormatError:   decodeRecord[messageLine],
	KindUserMessage:   decodeRecord[messageLine],
	KindLimitReached:  decode[LimitReached],
	KindToolCalled:    decodeRecord[toolLine],
	KindChildProgress: decode[ChildProgress],
	KindFilesChanged:  decode[FilesChanged],
	KindCompacted:     decodeRecord[compactionLine],
	KindRunEnded:      decodeRecord[outcomeLine],
	KindDropped:       decode[Dropped],
}

func decode[E Event](line []byte) (Event, error) {
	var e E
	err := json.Unmarshal(line, &e)
	return e, err
}

func decodePhase(p Phase) func([]byte) (Event, error) {
	return func(line []byte) (Event, error) {
		e := PhaseStarted{Phase: p}
		err := json.Unmarshal(line, &e)
		return e, err
	}
}

func decodeRecord[L interface{ event() Recorded }](line []byte) (Event, error) {
	var l L
	err := json.Unmarshal(line, &l)
	return l.event(), err
}

// Writer writes events as lines of JSON, one Write call each, without
// buffering. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	err error // first error of w; nothing is written after it
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one line. After an error of the io.Writer it writes nothing more
// and returns the same error, because the last line may be incomplete.
func (w *Writer) Write(envelope Envelope) error {
	line, err := Encode(envelope)
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
