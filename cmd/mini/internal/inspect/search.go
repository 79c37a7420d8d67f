package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// inJSON is a text as it stands in a journal.
func inJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return s
	}
	return string(bytes.Trim(bytes.TrimSpace(b.Bytes()), `"`))
}

// Search counts the places of a trajectory that have a text: what was said,
// thought, run and printed, how it ended and the patch. Journals are gone
// through line by line; of others only those of one file are held.
func Search(ctx context.Context, it *Item, m *matcher) (hits int, err error) {
	if it.Path == "" || it.State == Broken {
		return 0, nil
	}
	var s searcher
	if it.Format == "" || it.Format == trajectories.Format {
		f, err := os.Open(it.Path)
		if err != nil {
			return 0, fmt.Errorf("search: %w", err)
		}
		defer f.Close() //nolint:errcheck // read only
		raw := m
		if m.raw != nil {
			raw = m.raw
		}
		for r, err := range trajectories.Skim(it.Path, f, s.wants) {
			if err != nil {
				return s.hits, err
			}
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			s.take(r, m, !raw.in(r.Data) && !bytes.Contains(r.Data, []byte(`"base64"`)))
		}
		return s.hits, nil
	}
	for f, err := range convert.All(it.Path) {
		if err != nil || f.Row != it.Row {
			continue
		}
		for r, err := range f.Records {
			if err != nil {
				return s.hits, err
			}
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			s.take(r, m, false)
		}
	}
	return s.hits, nil
}

// searcher counts what a reader would see once.
type searcher struct {
	hits int
	ran  int // executions that no observation has told of yet
}

func (*searcher) wants(t trajectories.Type) bool {
	switch t {
	case trajectories.TypeMessage, trajectories.TypeExecution, trajectories.TypeOutcome, trajectories.TypeDiff, trajectories.TypeCheck, trajectories.TypeCall, trajectories.TypeDecision, trajectories.TypeTool,
		trajectories.TypeSummary, trajectories.TypeCompaction:
		return true
	}
	return false
}

// take looks into a record; without says that its bytes cannot have the text.
func (s *searcher) take(r trajectories.Record, m *matcher, without bool) {
	switch r.Type {
	case trajectories.TypeExecution:
		s.ran++
	case trajectories.TypeMessage:
		if seen := s.pass(r); seen {
			return
		}
	}
	if without {
		return
	}
	for _, text := range s.texts(r) {
		if at, _ := m.find(text); at >= 0 {
			s.hits++
			return
		}
	}
}

// pass goes by a message, and says whether it tells of an execution that was looked
// at. Within a string its quotes would be escaped, so that the cause can be told
// without reading the message, which is as long as the output.
func (s *searcher) pass(r trajectories.Record) (seen bool) {
	switch {
	case bytes.Contains(r.Data, []byte(`"cause":"reply"`)):
		s.ran = 0
	case s.ran == 0:
	case bytes.Contains(r.Data, []byte(`"cause":"observation"`)), bytes.Contains(r.Data, []byte(`"cause":"command"`)):
		s.ran--
		return true
	}
	return false
}

// texts are those of a record that a reader is shown.
func (*searcher) texts(r trajectories.Record) []string {
	switch r.Type {
	case trajectories.TypeMessage:
		var msg trajectories.Message
		if json.Unmarshal(r.Data, &msg) != nil {
			return nil
		}
		if msg.Cause == trajectories.CauseReply {
			return append([]string{msg.Content, msg.Reasoning}, msg.Actions...)
		}
		return []string{msg.Content}
	case trajectories.TypeExecution:
		var x trajectories.Execution
		if json.Unmarshal(r.Data, &x) == nil {
			return []string{string(x.Output), x.Exception, x.Command}
		}
	case trajectories.TypeOutcome:
		var o trajectories.Outcome
		if json.Unmarshal(r.Data, &o) == nil {
			return []string{o.ExitStatus, o.Error, string(o.Submission), string(o.PartialPatch)}
		}
	case trajectories.TypeDiff:
		var d trajectories.Diff
		if json.Unmarshal(r.Data, &d) == nil {
			return []string{string(d.Patch), d.Error}
		}
	case trajectories.TypeDecision:
		var d trajectories.Decision
		if json.Unmarshal(r.Data, &d) == nil {
			_, text := decisionText(d.Ruling)
			return []string{text}
		}
	case trajectories.TypeTool:
		var c trajectories.ToolCall
		if json.Unmarshal(r.Data, &c) == nil {
			return append([]string{string(c.Errors), string(c.Details), c.Name}, c.Args...)
		}
	case trajectories.TypeCompaction:
		var c trajectories.Compaction
		if json.Unmarshal(r.Data, &c) == nil {
			return []string{compactionText(c)}
		}
	case trajectories.TypeSummary:
		return []string{summaryText(r)}
	case trajectories.TypeCheck:
		var c trajectories.Check
		if json.Unmarshal(r.Data, &c) == nil {
			return []string{c.Refusal, c.Error}
		}
	case trajectories.TypeCall:
		var c trajectories.Call
		if json.Unmarshal(trajectories.Lean(r.Data), &c) == nil {
			return []string{c.Error}
		}
	}
	return nil
}
