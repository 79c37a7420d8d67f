package export

import (
	"bytes"

	"github.com/minibench/mini/model"
)

// losses count what a format has no place for, by a sentence.
type losses map[string]int

// The losses, and what else a reader of the rows should know.
const (
	lostImages      = "images that the format has no place for"
	lostText        = "text beside a tool call, for which the format has no place"
	movedText       = "text beside a tool call that was put between <think> and </think>"
	joinedResults   = "results of several calls of a reply that are one observation"
	fullHistory     = "attempts whose calls were not all sent the whole history that the row has"
	learnsRefused   = "replies of which the user refused a part, which are learned all the same"
	learnsInherited = "replies of the attempt that this one goes on from, which are learned all the same"
	learnsRest      = "completions that hold observations too: a trainer without masks learns them"
)

// speaker writes messages in OpenAI's form.
type speaker struct {
	arguments Arguments
	flags     bool // each message says whether it is learned
	images    bool // there is a place for them
	lost      losses
}

// list writes messages as the value of a member.
func (s *speaker) list(r *row, name string, turns []turn) error {
	r.key(name)
	r.open('[')
	for i := range turns {
		if err := s.message(r, &turns[i]); err != nil {
			return err
		}
	}
	r.close(']')
	return nil
}

func (s *speaker) message(r *row, t *turn) error {
	r.comma()
	r.open('{')
	r.text("role", string(t.Role))
	if len(t.Images) > 0 && s.images {
		s.parts(r, t)
	} else {
		if len(t.Images) > 0 {
			s.lost[lostImages] += len(t.Images)
		}
		r.text("content", t.Content)
	}
	if t.Reasoning != "" {
		r.text("reasoning_content", t.Reasoning)
	}
	if len(t.Calls) > 0 {
		if err := s.calls(r, t.Calls); err != nil {
			return err
		}
	}
	if t.Role == model.Tool {
		r.text("tool_call_id", t.CallID)
		r.text("name", t.name)
	}
	if s.flags {
		r.bool("train", t.learn)
	}
	r.close('}')
	return nil
}

// parts writes the content of a message with images.
func (s *speaker) parts(r *row, t *turn) {
	r.key("content")
	r.open('[')
	if t.Content != "" {
		r.comma()
		r.open('{')
		r.text("type", "text")
		r.text("text", t.Content)
		r.close('}')
	}
	for _, img := range t.Images {
		r.image(img)
	}
	r.close(']')
}

func (s *speaker) calls(r *row, calls []model.Call) error {
	r.key("tool_calls")
	r.open('[')
	for _, c := range calls {
		r.comma()
		r.open('{')
		r.text("id", c.ID)
		r.text("type", "function")
		r.key("function")
		r.open('{')
		r.text("name", c.Name)
		args, ok := object(c.Arguments)
		switch {
		case s.arguments == Text && (ok || !s.flags):
			r.text("arguments", c.Arguments)
		case s.arguments == Text:
			return Refusal("arguments of a tool call that are no object of JSON, at which Axolotl stops")
		default:
			if !ok {
				return Refusal("arguments of a tool call that are no object of JSON: take --tool-arguments text, or drop format errors")
			}
			r.raw("arguments", args)
		}
		r.close('}')
		r.close('}')
	}
	r.close(']')
	return nil
}

// Tools are definitions in the form in which rows have them.
func Tools(defs []model.Definition) ([]byte, error) {
	r := row{first: true}
	if err := tools(&r, defs); err != nil {
		return nil, err
	}
	return bytes.TrimPrefix(r.data, []byte(`"tools":`)), nil
}

// tools writes what was offered to the model, where calls are native.
func tools(r *row, defs []model.Definition) error {
	if len(defs) == 0 {
		return nil
	}
	r.key("tools")
	r.open('[')
	for _, d := range defs {
		r.comma()
		r.open('{')
		r.text("type", "function")
		r.key("function")
		if err := definition(r, d); err != nil {
			return err
		}
		r.close('}')
	}
	r.close(']')
	return nil
}

func definition(r *row, d model.Definition) error {
	r.open('{')
	r.text("name", d.Name)
	r.text("description", d.Description)
	parameters, ok := compact(d.Parameters)
	if !ok {
		return refuse("the parameters of the tool %.40q are no JSON", d.Name)
	}
	r.raw("parameters", parameters)
	r.close('}')
	return nil
}

// about writes whose row this is: the same members in every format.
func about(r *row, it *Item) {
	r.text("instance_id", it.InstanceID)
	r.int("attempt", int64(it.Attempt))
	r.int("sample", int64(it.Sample))
	r.text("model", it.Header.ModelName)
	r.textOrNull("verdict", it.Verdict)
	r.int("steps", int64(it.Steps()))
	r.intOrNull("tokens", it.Tokens)
	r.bool("autosubmitted", it.autosubmitted())
	r.text("journal_sha256", it.SHA256)
}
