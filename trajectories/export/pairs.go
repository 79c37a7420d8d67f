package export

import (
	"errors"
	"fmt"
	"slices"

	"github.com/minibench/mini/model"
)

// candidate is an attempt that may be one half of a pair.
type candidate struct {
	item  *Item
	turns []turn
}

// pairs writes those of the attempts on one instance: each resolved attempt
// with one that is not, in their order, until each of them has been in a pair.
// What both were sent up to their first different reply is the prompt. Attempts
// that are in no pair are left in w.unpaired.
func (w *writer) pairs(items []*Item) error {
	w.unpaired = map[*Item]Refusal{}
	var chosen, rejected []candidate
	for _, it := range items {
		label, judged := good(it.Verdict)
		if !judged {
			w.unpaired[it] = noVerdict
			continue
		}
		turns, err := w.whole(it)
		if refused := Refusal(""); errors.As(err, &refused) {
			w.unpaired[it] = refused
			continue
		}
		w.unpaired[it] = noPair
		if label {
			chosen = append(chosen, candidate{it, turns})
		} else {
			rejected = append(rejected, candidate{it, turns})
		}
	}
	if len(chosen) == 0 || len(rejected) == 0 {
		return nil
	}
	paired := map[*Item]bool{}
	for i := range max(len(chosen), len(rejected)) {
		better, worse := chosen[i%len(chosen)], rejected[i%len(rejected)]
		err := w.pair(better, worse)
		if refused := Refusal(""); errors.As(err, &refused) {
			w.lost[fmt.Sprintf("pairs left out: %s", refused)]++
			for _, it := range []*Item{better.item, worse.item} {
				w.unpaired[it] = unfit
			}
			continue
		}
		if err != nil {
			return err
		}
		paired[better.item], paired[worse.item] = true, true
	}
	for it := range paired {
		delete(w.unpaired, it)
	}
	return nil
}

func (w *writer) pair(a, b candidate) error {
	at := 0
	for at < len(a.turns) && at < len(b.turns) && same(a.turns[at], b.turns[at]) {
		at++
	}
	switch {
	case at == len(a.turns) || at == len(b.turns):
		return Refusal("one attempt is the beginning of the other")
	case a.turns[at].Role != model.Assistant || b.turns[at].Role != model.Assistant:
		return Refusal("the prompts differ before any reply does")
	case !a.turns[at].learn || !b.turns[at].learn:
		return Refusal("the first replies that differ are not both to be learned from")
	case !slices.EqualFunc(a.item.Header.Tools, b.item.Header.Tools, func(x, y model.Definition) bool {
		return x.Name == y.Name && string(x.Parameters) == string(y.Parameters)
	}):
		return Refusal("the tools that were offered differ")
	}
	better, worse := a.turns[at:at+1], b.turns[at:at+1]
	if w.o.Completion == Rest {
		better, worse = a.turns[at:], b.turns[at:]
		w.lost[learnsRest] += 2
	}
	r, s := w.begin(), w.speaker()
	if err := errors.Join(
		s.list(r, "prompt", a.turns[:at]), s.list(r, "chosen", better), s.list(r, "rejected", worse),
		tools(r, a.item.Header.Tools),
	); err != nil {
		return err
	}
	about(r, a.item)
	r.int("rejected_attempt", int64(b.item.Attempt))
	r.text("rejected_model", b.item.Header.ModelName)
	r.textOrNull("rejected_verdict", b.item.Verdict)
	r.int("rejected_steps", int64(b.item.Steps()))
	r.intOrNull("rejected_tokens", b.item.Tokens)
	r.bool("rejected_autosubmitted", b.item.autosubmitted())
	r.text("rejected_journal_sha256", b.item.SHA256)
	w.end()
	return nil
}

// same says that two turns are one to a model. The ids of calls are not: a
// server makes them up anew each time.
func same(a, b turn) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning &&
		slices.EqualFunc(a.Calls, b.Calls, func(x, y model.Call) bool { return x.Name == y.Name && x.Arguments == y.Arguments }) &&
		slices.EqualFunc(a.Images, b.Images, func(x, y model.Image) bool {
			return x.MediaType == y.MediaType && string(x.Data) == string(y.Data)
		})
}
