package export

import (
	"fmt"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// turn is a message on its way into a format.
type turn struct {
	model.Message
	record int    // of the journal; 0 where it stands in none
	name   string // of the tool that a message of the role Tool answers for
	reply  bool   // the model's own, not one that stands in its prompt
	// learn says that the model wrote it, in this attempt, and that it is meant to
	// do so again.
	learn bool
	// left says that it is left out: a fault, or the answer to one.
	left bool
}

// Refusal says why an attempt cannot be written in a format.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// turnsOf are all messages of an attempt, with what the options say of faults.
func turnsOf(t *trajectories.Transcript, o Options) []turn {
	turns := make([]turn, len(t.Entries))
	var calls []model.Call // of the newest reply, be it one of the prompt
	for at := 0; at < len(t.Entries); {
		end := at + 1
		for end < len(t.Entries) && t.Entries[end].Cause != trajectories.CauseReply {
			end++
		}
		for i := at; i < end; i++ {
			e := &t.Entries[i]
			turns[i] = turn{Message: e.Message.Message, record: e.Record}
			turns[i].Reasoning, turns[i].Content = think(e.Message.Message, o.Reasoning)
			if e.Role == model.Assistant {
				calls = e.Calls
			}
			if e.Role == model.Tool {
				turns[i].name = called(calls, e.CallID)
			}
		}
		if t.Entries[at].Cause == trajectories.CauseReply {
			last := end == len(t.Entries)
			weigh(turns[at:end], t.Entries[at:end], last && gaveUp(t.Outcome), o.Faults)
			// What another attempt was gone on from is learned there.
			turns[at].learn = turns[at].learn && !t.Header.Inherited(turns[at].record)
		}
		at = end
	}
	return turns
}

func think(m model.Message, r Reasoning) (reasoning, content string) {
	switch {
	case m.Reasoning == "" || r == Drop:
		return "", m.Content
	case r == Inline:
		return "", thought(m.Reasoning) + m.Content
	}
	return m.Reasoning, m.Content
}

// thought is thinking as it stands within a reply: as Qwen's and DeepSeek's
// models write it, and as LLaMA-Factory looks for it.
func thought(text string) string { return "<think>\n" + text + "\n</think>\n\n" }

// gaveUp says that the last reply of the attempt had a format error that nobody
// answered any more.
func gaveUp(o *trajectories.Outcome) bool { return o != nil && o.ExitStatus == "RepeatedFormatError" }

// weigh decides on a reply and the answers to it.
func weigh(turns []turn, entries []trajectories.Entry, gaveUp bool, faults Faults) {
	reply := &turns[0]
	reply.reply, reply.learn = true, true
	ran, refused := len(entries[0].Ran) > 0, gaveUp
	for i := 1; i < len(entries); i++ {
		switch entries[i].Cause {
		case trajectories.CauseObservation, trajectories.CauseMalformedPatch:
			ran = true
		case trajectories.CauseFormatError, trajectories.CauseRejection:
			refused = true
		}
	}
	if !refused || faults == KeepFaults {
		return
	}
	if ran { // in part: what was done stays, and so does who did it
		for i, e := range entries {
			if e.Cause == trajectories.CauseFormatError {
				// Of a reply that is not there: releases of mini-swe-agent kept
				// the answer alone.
				turns[i].left = faults == DropFaults
			}
			if e.Cause == trajectories.CauseRejection {
				reply.learn = false
			}
		}
		return
	}
	reply.learn = false
	if faults == DropFaults {
		for i := range turns {
			turns[i].left = true
		}
	}
}

func called(calls []model.Call, id string) string {
	for _, c := range calls {
		if c.ID == id {
			return c.Name
		}
	}
	return ""
}

// conversation is an attempt as one row tells it: without what is left out,
// turns of the user in a row put together, and nothing after the last reply that
// is learned, for nobody learns from it. It is refused where roles do not take
// turns.
func conversation(all []turn) ([]turn, error) {
	turns := together(all, true)
	learned := 0
	for i, t := range turns {
		if t.learn {
			learned = i + 1
		}
	}
	turns = turns[:learned]
	if len(turns) == 0 {
		return nil, Refusal("no reply to learn from")
	}
	return turns, alternate(turns)
}

// together are the turns that are not left out, with those of the user in a row
// as one where that is wanted.
func together(all []turn, join bool) []turn {
	var turns []turn
	for _, t := range all {
		n := len(turns)
		switch {
		case t.left:
		case join && t.Role == model.User && n > 0 && turns[n-1].Role == model.User:
			turns[n-1].Message = trajectories.Joined(turns[n-1].Message, t.Message)
		default:
			turns = append(turns, t)
		}
	}
	return turns
}

// alternate says what is wrong with the order of roles: the system's word comes
// first or not at all, then user and assistant take turns; calls are answered
// by the tool.
func alternate(turns []turn) error {
	if turns[0].Role == model.System {
		turns = turns[1:]
	}
	var before *turn
	for i := range turns {
		t := &turns[i]
		switch {
		case t.Role == model.System:
			return refuse("a message of the system in the midst of the conversation")
		case i == 0 && t.Role != model.User:
			return refuse("the conversation begins with a message of the %s", t.Role)
		case t.Role == model.Assistant && before.Role == model.Assistant:
			return refuse("two replies in a row")
		case t.Role == model.Tool && t.name == "":
			return refuse("a result of a tool that was not called")
		case t.Role != model.User && t.Role != model.Assistant && t.Role != model.Tool:
			return refuse("a message of the unknown role %.40q", t.Role)
		case t.Role == model.Tool && before.Role == model.User:
			return refuse("a result of a tool after a message of the user")
		}
		before = t
	}
	return nil
}

// step is a reply that is learned, and what was sent for it.
type step struct {
	number int // of the call, from 1 on
	prompt []turn
	reply  turn
}

// stepsOf are the replies of an attempt that are learned. Where faults are
// dropped, prompts have none, and roles take turns in them; else they are as they
// were sent.
func stepsOf(it *Item, o Options) ([]step, error) {
	turns := turnsOf(it.Transcript, o)
	records := make([]int, len(turns))
	for i, t := range turns {
		records[i] = t.record
	}
	var steps []step
	number := 0
	for i, t := range turns {
		if !t.reply {
			continue
		}
		number++
		if !t.learn || t.left {
			continue
		}
		prompt := turns[:i]
		if c := it.Entries[i].Context; c != nil {
			prompt = nil
			at, own := c.Picked(records[:i])
			for _, n := range at {
				if n >= 0 {
					prompt = append(prompt, turns[n])
					continue
				}
				prompt, own = append(prompt, turn{Message: own[0]}), own[1:]
			}
		}
		steps = append(steps, step{number, together(prompt, o.Faults == DropFaults), t})
	}
	if len(steps) == 0 {
		return nil, Refusal("no reply to learn from")
	}
	for _, s := range steps {
		if len(s.prompt) == 0 {
			return nil, Refusal("a reply to nothing")
		}
		if o.Faults != DropFaults {
			continue
		}
		if err := alternate(s.prompt); err != nil {
			return nil, err
		}
		if last := s.prompt[len(s.prompt)-1].Role; last != model.User && last != model.Tool {
			return nil, refuse("a reply after a message of the %s", last)
		}
	}
	return steps, nil
}
