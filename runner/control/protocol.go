package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minibench/mini/runner"
)

// StatusVerb asks how the run stands. The other verbs are a runner.Action each.
const StatusVerb = "status"

// Verbs are all that can be asked for, in the order of their importance.
func Verbs() []string {
	return []string{StatusVerb, string(runner.Pause), string(runner.Resume), string(runner.Drain), string(runner.Requeue), string(runner.Kill)}
}

// Named says whether a verb is about one instance.
func Named(verb string) bool { return verb == string(runner.Requeue) || verb == string(runner.Kill) }

// Request is what one line asks for.
type Request struct {
	Verb string `json:"verb"`
	Who  string `json:"id,omitempty"` // an instance, or a sample of it: "id#2"
}

// Reply is what the answer's line says.
type Reply struct {
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"` // what came of it
	// Kind sorts what is wrong, and Error says it.
	Kind   Kind    `json:"kind,omitempty"`
	Error  string  `json:"error,omitempty"`
	Status *Status `json:"status,omitempty"`
}

// Kind is a kind of refusal.
type Kind string

// Why an order is refused.
const (
	Over    Kind = "over"    // there is no run any more
	Unknown Kind = "unknown" // the run has no such instance
	Refused Kind = "refused" // there is nothing to be done, as for one that has ended
	Bad     Kind = "bad"     // the line is none of this protocol
)

// Bounds of what is read, in bytes, and of how long anybody is waited for.
const (
	maxRequest = 8 << 10
	maxReply   = 32 << 20
	patience   = 5 * time.Second
)

// errLine says that somebody does not speak this protocol.
var errLine = errors.New("no line of JSON")

// readLine reads one line of JSON of at most limit bytes.
func readLine(r io.Reader, limit int64, v any) error {
	line, err := bufio.NewReader(io.LimitReader(r, limit)).ReadBytes('\n')
	if err != nil {
		if errors.Is(err, io.EOF) { // also where it is longer
			return errLine
		}
		return err
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w: %w", errLine, err)
	}
	return nil
}

// writeLine writes one line of JSON.
func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
