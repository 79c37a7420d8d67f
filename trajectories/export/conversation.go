package export

import (
	"fmt"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// turn is a message to be exported.
type turn struct {
	model.Message
	record   int    // record ID; 0 if it is not in the journal
	toolName string // name of the tool that a tool message answers for
	isReply  bool   // written by the model, and not part of the prompt
	// trained is set for replies to train on.
	trained bool
	// omitted is set for turns to leave out, because of a format error or a
	// rejection.
	omitted bool
}

// SkipReason is the reason why an attempt cannot be written in a format.
type SkipReason string

// Error implements error.
func (r SkipReason) Error() string { return string(r) }

func skipf(format string, args ...any) error { return SkipReason(fmt.Sprintf(format, args...)) }

// turnsOf returns the messages of an attempt, marked according to the options.
func turnsOf(t *trajectories.Transcript, o Options) []turn {
	turns := make([]turn, len(t.Entries))
	var calls []model.ToolCall // of the newest assistant message
	for at := 0; at < len(t.Entries); {
		end := at + 1
		for end < len(t.Entries) && t.Entries[end].Cause != trajectories.CauseReply {
			end++
		}
		for i := at; i < end; i++ {
			e := &t.Entries[i]
			turns[i] = turn{Message: e.Message.Message, record: e.Record}
			turns[i].Reasoning, turns[i].Content = splitReasoning(e.Message.Message, o.Reasoning)
			if e.Role == model.Assistant {
				calls = e.ToolCalls
			}
			if e.Role == model.Tool {
				turns[i].toolName = toolNameOf(calls, e.ToolCallID)
			}
		}
		if t.Entries[at].Cause == trajectories.CauseReply {
			last := end == len(t.Entries)
			markReply(turns[at:end], t.Entries[at:end], last && endsWithFormatError(t.Outcome), o.FormatErrors)
			// Inherited replies are exported with the original attempt.
			turns[at].trained = turns[at].trained && !t.Header.IsInherited(turns[at].record)
		}
		at = end
	}
	return turns
}

func splitReasoning(m model.Message, r Reasoning) (reasoning, content string) {
	switch {
	case m.Reasoning == "" || r == ReasoningDrop:
		return "", m.Content
	case r == ReasoningInline:
		return "", thinkBlock(m.Reasoning) + m.Content
	}
	return m.Reasoning, m.Content
}

// thinkBlock formats reasoning as part of the text, as Qwen's and DeepSeek's models
// write it and LLaMA-Factory expects it.
func thinkBlock(text string) string { return "<think>\n" + text + "\n</think>\n\n" }

// endsWithFormatError reports whether the attempt ended with a reply with a format
// error, which has no answer.
func endsWithFormatError(o *trajectories.Outcome) bool {
	return o != nil && o.ExitStatus == "RepeatedFormatError"
}

// markReply decides whether a reply is trained on, and whether it and its answers are
// omitted.
func markReply(turns []turn, entries []trajectories.Entry, unanswered bool, mode FormatErrors) {
	reply := &turns[0]
	reply.isReply, reply.trained = true, true
	executed, rejected := len(entries[0].Executions) > 0, unanswered
	for i := 1; i < len(entries); i++ {
		switch entries[i].Cause {
		case trajectories.CauseObservation, trajectories.CauseMalformedPatch:
			executed = true
		case trajectories.CauseFormatError, trajectories.CauseRejection:
			rejected = true
		}
	}
	if !rejected || mode == FormatErrorsKeep {
		return
	}
	if executed { // some commands ran, so the reply cannot be left out
		for i, e := range entries {
			if e.Cause == trajectories.CauseFormatError {
				// This answers another reply, which mini-swe-agent left out.
				turns[i].omitted = mode == FormatErrorsDrop
			}
			if e.Cause == trajectories.CauseRejection {
				reply.trained = false
			}
		}
		return
	}
	reply.trained = false
	if mode == FormatErrorsDrop {
		for i := range turns {
			turns[i].omitted = true
		}
	}
}

func toolNameOf(calls []model.ToolCall, id string) string {
	for _, c := range calls {
		if c.ID == id {
			return c.Name
		}
	}
	return ""
}

// conversation returns the turns of an attempt as one row: without omitted turns,
// with adjacent user messages joined, and ending with the last trained reply. It
// fails if roles do not alternate.
func conversation(turns []turn) ([]turn, error) {
	turns = joinTurns(turns, true)
	end := 0
	for i, t := range turns {
		if t.trained {
			end = i + 1
		}
	}
	turns = turns[:end]
	if len(turns) == 0 {
		return nil, SkipReason("no reply to train on")
	}
	return turns, checkRoles(turns)
}

// joinTurns removes omitted turns. If join is set, it joins adjacent user messages.
func joinTurns(turns []turn, join bool) []turn {
	var joined []turn
	for _, t := range turns {
		n := len(joined)
		switch {
		case t.omitted:
		case join && t.Role == model.User && n > 0 && joined[n-1].Role == model.User:
			joined[n-1].Message = trajectories.JoinMessages(joined[n-1].Message, t.Message)
		default:
			joined = append(joined, t)
		}
	}
	return joined
}

// checkRoles checks the order of roles: an optional system message first, then user
// and assistant in turns, with tool messages after calls.
func checkRoles(turns []turn) error {
	if turns[0].Role == model.System {
		turns = turns[1:]
	}
	var previous *turn
	for i := range turns {
		t := &turns[i]
		switch {
		case t.Role == model.System:
			return skipf("a system message in the middle of the conversation")
		case i == 0 && t.Role != model.User:
			return skipf("the conversation starts with a message of the role %s", t.Role)
		case t.Role == model.Assistant && previous.Role == model.Assistant:
			return skipf("two replies in a row")
		case t.Role == model.Tool && t.toolName == "":
			return skipf("a tool result without a call")
		case t.Role != model.User && t.Role != model.Assistant && t.Role != model.Tool:
			return skipf("a message of unknown role %.40q", t.Role)
		case t.Role == model.Tool && previous.Role == model.User:
			return skipf("a tool result after a user message")
		}
		previous = t
	}
	return nil
}

// step is a trained reply with its prompt.
type step struct {
	number int // of the call, from 1
	prompt []turn
	reply  turn
}

// stepsOf returns the trained replies of an attempt. If format errors are dropped,
// they are removed from prompts too, and roles alternate; otherwise prompts are
// exactly what was sent.
func stepsOf(it *Item, o Options) ([]step, error) {
	turns := turnsOf(it.Transcript, o)
	records := make([]int, len(turns))
	for i, t := range turns {
		records[i] = t.record
	}
	var steps []step
	number := 0
	for i, t := range turns {
		if !t.isReply {
			continue
		}
		number++
		if !t.trained || t.omitted {
			continue
		}
		prompt := turns[:i]
		if c := it.Entries[i].Context; c != nil {
			prompt = nil
			indexes, messages := c.Resolve(records[:i])
			for _, n := range indexes {
				if n >= 0 {
					prompt = append(prompt, turns[n])
					continue
				}
				prompt, messages = append(prompt, turn{Message: messages[0]}), messages[1:]
			}
		}
		steps = append(steps, step{number, joinTurns(prompt, o.FormatErrors == FormatErrorsDrop), t})
	}
	if len(steps) == 0 {
		return nil, SkipReason("no reply to train on")
	}
	for _, s := range steps {
		if len(s.prompt) == 0 {
			return nil, SkipReason("a reply without a prompt")
		}
		if o.FormatErrors != FormatErrorsDrop {
			continue
		}
		if err := checkRoles(s.prompt); err != nil {
			return nil, err
		}
		if last := s.prompt[len(s.prompt)-1].Role; last != model.User && last != model.Tool {
			return nil, skipf("a reply after a message of the role %s", last)
		}
	}
	return steps, nil
}
