package events

import (
	"cmp"
	"encoding/json"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The lines of records. The method event returns the record with what the line has of it.
type (
	scrubLine struct {
		OK             bool                 `json:"ok"`
		Prepared       bool                 `json:"prepared,omitempty"`
		ObjectsRemoved int                  `json:"objects_removed,omitempty"`
		RefsRemoved    int                  `json:"refs_removed,omitempty"`
		Duration       trajectories.Seconds `json:"duration"`
	}
	replyLine struct {
		Step       int                  `json:"step"`
		Text       string               `json:"text"`
		Reasoning  string               `json:"reasoning,omitempty"`
		Model      string               `json:"model,omitempty"`
		Usage      model.Usage          `json:"usage"`
		Cost       model.Cost           `json:"cost"`
		TotalUsage model.Usage          `json:"total_usage"`
		TotalCost  model.Cost           `json:"total_cost"`
		Duration   trajectories.Seconds `json:"duration,omitempty"`
		Commands   []string             `json:"commands,omitempty"`
	}
	messageLine struct { // of the user, or a format error, which has no cause
		Step  int                `json:"step"`
		Cause trajectories.Cause `json:"cause,omitempty"`
		Text  string             `json:"text"`
	}
	decisionLine struct {
		Step int `json:"step"`
		trajectories.CommandDecision
	}
	toolLine struct {
		Step     int                  `json:"step"`
		Name     string               `json:"name"`
		Args     []string             `json:"args,omitempty"`
		ExitCode int                  `json:"exit_code"`
		Duration trajectories.Seconds `json:"duration"`
		Details  json.RawMessage      `json:"details,omitempty"`
	}
	executionLine struct {
		Step      int                  `json:"step"`
		Command   string               `json:"command"`
		ByUser    bool                 `json:"user,omitempty"`
		ExitCode  int                  `json:"exit_code"`
		Signal    int                  `json:"signal,omitempty"`
		TimedOut  bool                 `json:"timed_out,omitempty"`
		Duration  trajectories.Seconds `json:"duration"`
		Bytes     int64                `json:"bytes"`
		Truncated bool                 `json:"truncated,omitempty"`
		Head      int                  `json:"head,omitempty"`
		Exception string               `json:"exception,omitempty"`
	}
	compactionLine struct {
		Step           int    `json:"step"`
		Policy         string `json:"policy"`
		MessagesBefore int    `json:"messages_before"`
		MessagesAfter  int    `json:"messages_after"`
		TokensBefore   int64  `json:"tokens_before,omitempty"`
		TokensAfter    int64  `json:"tokens_after,omitempty"`
		Fallback       string `json:"fallback,omitempty"`
	}
	outcomeLine struct {
		Outcome trajectories.Outcome `json:"outcome"`
	}
)

// line returns the kind and the fields of the record's line. The kind is empty if the
// record has none: an execution without an exit code is one that another agent reported.
func (e Recorded) line() (kind Kind, fields any) {
	switch d := e.Data.(type) {
	case trajectories.Scrub:
		return KindScrubbed, scrubLine{d.OK, d.Prepared, d.ObjectsRemoved, d.RefsRemoved, d.Duration}
	case trajectories.Message:
		return e.messageLine(d)
	case trajectories.CommandDecision:
		if d.Previous = nil; d.Action != trajectories.Allow {
			d.Action = trajectories.Deny
		}
		return KindDecided, decisionLine{e.Step, d}
	case trajectories.ToolCall:
		return KindToolCalled, toolLine{e.Step, d.Name, d.Args, d.ExitCode, d.Duration, d.Details}
	case trajectories.Execution:
		if !d.ExitCodeUnknown {
			return KindActionEnded, executionLine{
				e.Step, d.Command, d.ByUser, d.ExitCode, d.Signal, d.TimedOut, d.Duration, d.Bytes, d.Truncated, d.Head, d.Exception,
			}
		}
	case trajectories.Compaction:
		return KindCompacted, compactionLine{
			e.Step, d.Policy, d.MessagesBefore, d.MessagesAfter, d.TokensBefore, d.TokensAfter, d.Fallback,
		}
	case trajectories.Outcome:
		return KindRunEnded, outcomeLine{d}
	}
	return "", nil
}

// messageLine is line for a message.
func (e Recorded) messageLine(m trajectories.Message) (kind Kind, fields any) {
	switch m.Cause {
	case trajectories.CauseReply:
		call := cmp.Or(e.Call, &trajectories.Call{})
		return KindReplied, replyLine{
			e.Step, m.Content, m.Reasoning, call.Model, call.Usage, call.Cost, e.Spent.Usage, e.Spent.Cost, call.Duration - call.Waited, m.Actions,
		}
	case trajectories.CauseFormatError:
		return KindFormatError, messageLine{Step: e.Step, Text: m.Content}
	case trajectories.CauseRejection, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseUserCommand:
		return KindUserMessage, messageLine{e.Step, m.Cause, m.Content}
	}
	return "", nil
}

func (l scrubLine) event() Recorded {
	return Recorded{Data: trajectories.Scrub{
		OK: l.OK, Prepared: l.Prepared, ObjectsRemoved: l.ObjectsRemoved, RefsRemoved: l.RefsRemoved, Duration: l.Duration,
	}}
}

func (l replyLine) event() Recorded {
	m := trajectories.Message{Cause: trajectories.CauseReply, Actions: l.Commands}
	m.Content, m.Reasoning = l.Text, l.Reasoning
	return Recorded{
		Step: l.Step, Spent: trajectories.Spending{Usage: l.TotalUsage, Cost: l.TotalCost}, Data: m,
		Call: &trajectories.Call{Model: l.Model, Usage: l.Usage, Cost: l.Cost, Duration: l.Duration},
	}
}

func (l messageLine) event() Recorded {
	m := trajectories.Message{Cause: cmp.Or(l.Cause, trajectories.CauseFormatError)}
	m.Content = l.Text
	return Recorded{Step: l.Step, Data: m}
}

func (l decisionLine) event() Recorded { return Recorded{Step: l.Step, Data: l.CommandDecision} }

func (l toolLine) event() Recorded {
	return Recorded{Step: l.Step, Data: trajectories.ToolCall{
		Name: l.Name, Args: l.Args, ExitCode: l.ExitCode, Duration: l.Duration, Details: l.Details,
	}}
}

func (l executionLine) event() Recorded {
	return Recorded{Step: l.Step, Data: trajectories.Execution{
		Command: l.Command, ByUser: l.ByUser, ExitCode: l.ExitCode, Signal: l.Signal, TimedOut: l.TimedOut, Duration: l.Duration,
		Bytes: l.Bytes, Truncated: l.Truncated, Head: l.Head, Exception: l.Exception,
	}}
}

func (l compactionLine) event() Recorded {
	return Recorded{Step: l.Step, Data: trajectories.Compaction{
		Policy: l.Policy, MessagesBefore: l.MessagesBefore, MessagesAfter: l.MessagesAfter,
		TokensBefore: l.TokensBefore, TokensAfter: l.TokensAfter, Fallback: l.Fallback,
	}}
}

func (l outcomeLine) event() Recorded { return Recorded{Data: l.Outcome} }
