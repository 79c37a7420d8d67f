package export

import (
	"errors"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/model"
)

// writer makes the rows of attempts. It is for one goroutine.
type writer struct {
	o    Options
	form form
	row  row
	ends []int // where each row ends in row.data
	lost losses
	// unpaired are the attempts of a batch that are in no row, by their reason.
	unpaired map[*Item]Refusal
	// shredded are the rows for a parquet file.
	shredded []parquet.Row
}

func newWriter(o Options) *writer {
	f, _ := formOf(o.Format)
	return &writer{o: o, form: f, lost: losses{}}
}

// reset makes a writer as good as new, which keeps its memory.
func (w *writer) reset() {
	w.row.data, w.ends, w.shredded = w.row.data[:0], w.ends[:0], nil
	w.lost, w.unpaired = losses{}, nil
}

// begin starts a row, end completes it. A row that was begun and not ended is
// none.
func (w *writer) begin() *row {
	w.row.data = w.row.data[:w.size()]
	w.row.open('{')
	return &w.row
}

func (w *writer) size() int {
	if len(w.ends) == 0 {
		return 0
	}
	return w.ends[len(w.ends)-1]
}

func (w *writer) end() {
	w.row.close('}')
	w.row.data = append(w.row.data, '\n')
	w.ends = append(w.ends, len(w.row.data))
}

func (w *writer) speaker() *speaker {
	return &speaker{
		arguments: w.o.Arguments, flags: w.form.name == Axolotl,
		images: !w.o.Parquet && w.form.name != Axolotl, lost: w.lost,
	}
}

// whole is the conversation of an attempt as one row.
func (w *writer) whole(it *Item) ([]turn, error) {
	turns, err := conversation(turnsOf(it.Transcript, w.o))
	if err != nil {
		return nil, err
	}
	for _, e := range it.Entries {
		if e.Context != nil {
			w.lost[fullHistory]++
			break
		}
	}
	if w.form.masks {
		return turns, nil
	}
	for _, t := range turns {
		switch {
		case t.Role != model.Assistant || t.learn:
		case !t.reply:
			return nil, refuse("replies in its prompt, which the model did not write, and %s has no way to say so; axolotl and prompt-completion have", w.form.name)
		case it.Header.Inherited(t.record):
			w.lost[learnsInherited]++
		default:
			w.lost[learnsRefused]++
		}
	}
	return turns, nil
}

// chat is a row of messages, for OpenAI and Axolotl.
func (w *writer) chat(items []*Item) error {
	for _, it := range items {
		turns, err := w.whole(it)
		if err != nil {
			return err
		}
		r := w.begin()
		if err := w.speaker().list(r, "messages", turns); err != nil {
			return err
		}
		if err := tools(r, it.Header.Tools); err != nil {
			return err
		}
		about(r, it)
		w.end()
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
		steps = append(steps, step{number, present(prompt, o.Faults == DropFaults), t})
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

// present are the turns that are not left out; where they are to take turns,
// those of the user in a row are one.
func present(turns []turn, join bool) []turn {
	again := func(i int) bool { return join && i > 0 && turns[i].Role == model.User && turns[i-1].Role == model.User }
	for i := range turns {
		if turns[i].left || again(i) {
			return together(turns, join)
		}
	}
	return turns
}

// steps writes a row a step.
func (w *writer) steps(items []*Item) error {
	for _, it := range items {
		if err := w.eachStep(it, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) eachStep(it *Item, label *bool) error {
	all, err := stepsOf(it, w.o)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := w.completion(it, s.prompt, []turn{s.reply}, label, s.number); err != nil {
			return err
		}
	}
	return nil
}

// completion writes one prompt and what follows it.
func (w *writer) completion(it *Item, prompt, rest []turn, label *bool, number int) error {
	r := w.begin()
	s := w.speaker()
	if err := errors.Join(s.list(r, "prompt", prompt), s.list(r, "completion", rest), tools(r, it.Header.Tools)); err != nil {
		return err
	}
	if label != nil {
		r.bool("label", *label)
	}
	about(r, it)
	if number > 0 {
		r.int("step", int64(number))
	}
	w.end()
	return nil
}

// good says whether a verdict speaks for an attempt, and whether it speaks.
func good(verdict string) (label, judged bool) {
	switch verdict {
	case "resolved":
		return true, true
	case "unresolved", "empty", "apply_failed", "timed_out":
		return false, true
	}
	return false, false // none, unstable, or of the machine
}

const (
	noVerdict = "no verdict that says whether it is resolved"
	noPair    = "no attempt with the other verdict to pair it with"
	unfit     = "no two attempts that can be paired"
)

// labelled writes rows with a label: the verdict on the attempt.
func (w *writer) labelled(items []*Item) error {
	for _, it := range items {
		label, judged := good(it.Verdict)
		if !judged {
			return Refusal(noVerdict)
		}
		if w.o.Completion == Reply {
			if err := w.eachStep(it, &label); err != nil {
				return err
			}
			continue
		}
		turns, err := w.whole(it)
		if err != nil {
			return err
		}
		at := firstLearned(turns)
		w.lost[learnsRest]++
		if err := w.completion(it, turns[:at], turns[at:], &label, 0); err != nil {
			return err
		}
	}
	return nil
}

func firstLearned(turns []turn) int {
	return slices.IndexFunc(turns, func(t turn) bool { return t.learn })
}

// shred takes the rows apart for a parquet file.
func (w *writer) shred(s *schema) error {
	start := 0
	for _, end := range w.ends {
		r, err := s.shred(w.row.data[start:end])
		if err != nil {
			return err
		}
		w.shredded = append(w.shredded, r)
		start = end
	}
	return nil
}
