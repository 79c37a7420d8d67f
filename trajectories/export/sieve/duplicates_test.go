package sieve_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/sieve"
)

// said is an attempt whose replies are these.
func said(id string, attempt int, replies ...string) *export.Item {
	it := item(id, attempt, 0)
	for _, text := range replies {
		it.Entries = append(it.Entries, trajectories.Entry{Message: trajectories.Message{
			Message: model.Message{Role: model.Assistant, Content: text}, Cause: trajectories.CauseReply,
		}})
	}
	return it
}

// changed has a share of the words of a text replaced.
func changed(r *rand.Rand, text string, share float64) string {
	words := strings.Fields(text)
	for i := range words {
		if r.Float64() < share {
			words[i] = fmt.Sprintf("new%d", r.IntN(1e9))
		}
	}
	return strings.Join(words, " ")
}

// likeness is Jaccard's of the runs of five words, without any estimate.
func likeness(a, b string) float64 {
	runs := func(text string) map[string]bool {
		set, words := map[string]bool{}, strings.Fields(text)
		for i := range len(words) - 4 {
			set[strings.Join(words[i:i+5], " ")] = true
		}
		return set
	}
	x, y := runs(a), runs(b)
	both := 0
	for run := range x {
		if y[run] {
			both++
		}
	}
	return float64(both) / float64(len(x)+len(y)-both)
}

// TestNearDuplicates has conversations of which others differ in a few words,
// and holds what is found against what is so.
func TestNearDuplicates(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	var items []*export.Item
	texts := map[string]string{}
	add := func(id, text string) {
		it := said(id, 1, text[:len(text)/2], text[len(text)/2:])
		texts[it.Journal] = strings.TrimSpace(text)
		items = append(items, it)
	}
	for n := range 150 {
		text := prose(r, 400+10*n)
		add(fmt.Sprintf("a__a-%d", n), text)
		add(fmt.Sprintf("a__near-%d", n), changed(r, text, 0.004))
		add(fmt.Sprintf("a__less-%d", n), changed(r, text, 0.05))
	}
	kept, _, s := sift(t, sieve.Config{Dedupe: 0.9}, items...)
	found := map[string]sieve.Pair{}
	worst := 0.0
	for _, p := range s.Report().Duplicates.Pairs {
		found[p.Like] = p
		off := math.Abs(p.Likeness - likeness(texts[p.Kept], texts[p.Like]))
		worst = max(worst, off)
		if !p.Dropped || p.Exact != (off == 0 && texts[p.Kept] == texts[p.Like]) {
			t.Errorf("%+v", p)
		}
	}
	if worst > 0.09 { // over four standard deviations
		t.Errorf("a likeness is off by %.3f", worst)
	}
	missed, sure := 0, 0
	for n := range 150 {
		first, near, less := items[3*n].Journal, items[3*n+1].Journal, items[3*n+2].Journal
		if real := likeness(texts[first], texts[near]); real > 0.95 {
			sure++
			if found[near].Kept != first {
				missed++
			}
		}
		if found[less].Kept != "" {
			t.Errorf("%s is dropped, with a likeness of %.2f", less, likeness(texts[first], texts[less]))
		}
	}
	if missed > 2 || sure < 80 {
		t.Errorf("%d of %d that are alike for sure were missed", missed, sure)
	}
	t.Logf("%d pairs, off by %.3f at most, %d of %d missed", len(found), worst, missed, sure)
	again, _, _ := sift(t, sieve.Config{Dedupe: 0.9}, items...)
	if strings.Join(kept, " ") != strings.Join(again, " ") {
		t.Error("a second pass keeps others")
	}
}

func TestExactCopies(t *testing.T) {
	items := func() []*export.Item {
		return []*export.Item{
			said("a__a-1", 1, "one two three four five six"), said("a__a-1", 2, "one two three four five six"),
			said("b__b-1", 1, "One, two, three, four, five, six"), said("c__c-1", 1), said("c__c-1", 2),
		}
	}
	for name, test := range map[string]struct {
		cfg  sieve.Config
		kept int
		note bool
	}{
		"named only":        {sieve.Config{}, 5, true},
		"dropped":           {sieve.Config{Dedupe: 1}, 4, false},
		"with near ones":    {sieve.Config{Dedupe: 0.9}, 4, false},
		"the earlier stays": {sieve.Config{Dedupe: 0.5}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			kept, _, s := sift(t, test.cfg, items()...)
			d := s.Report().Duplicates
			if len(kept) != test.kept || d.Exact != 1 || len(d.Pairs) != 1 {
				t.Fatalf("kept %v, %+v", kept, d)
			}
			p := d.Pairs[0]
			if want := items(); p.Kept != want[0].Journal || p.Like != want[1].Journal || !p.Exact || p.Dropped == test.note {
				t.Errorf("%+v", p)
			}
			if notes := s.Report().Notes; (len(notes) == 1) != test.note {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// TestPromptsAreNotCompared: attempts of an instance have their prompts in
// common, and those of a batch what the tools print.
func TestPromptsAreNotCompared(t *testing.T) {
	same := strings.Repeat("a long prompt that all of them have ", 200)
	items := make([]*export.Item, 3)
	for i := range items {
		items[i] = item("a__a-1", i+1, 3)
		items[i].Entries[1].Content = same
		items[i].Entries[3].Content = same
	}
	if kept, _, _ := sift(t, sieve.Config{Dedupe: 0.5}, items...); len(kept) != 3 {
		t.Errorf("kept %v", kept)
	}
	calls := func(attempt int, command string) *export.Item {
		it := said("b__b-1", attempt, "")
		it.Entries[2].Calls = []model.Call{{Arguments: `{"command":"` + command + `"}`}}
		it.Entries[2].Actions = []string{command}
		return it
	}
	if kept, _, _ := sift(t, sieve.Config{Dedupe: 0.9}, calls(1, "ls -la src"), calls(2, "cat setup.py"), calls(3, "ls -la src")); len(kept) != 2 {
		t.Errorf("of calls kept %v", kept)
	}
}

func TestReasoningIsComparedWhereItIsKept(t *testing.T) {
	a, b := item("a__a-1", 1, 1), item("a__a-1", 1, 1)
	b.Entries[2].Reasoning = "quite another thought that came to nobody else before this one"
	for reasoning, want := range map[bool]int{true: 2, false: 1} {
		if kept, _, _ := sift(t, sieve.Config{Dedupe: 1, Reasoning: reasoning}, a, b); len(kept) != want {
			t.Errorf("reasoning %v: kept %v", reasoning, kept)
		}
	}
}

// TestRealConversations changes real ones a little, as a second try of the same
// model would not.
func TestRealConversations(t *testing.T) {
	dir := corpustest.Beside(t, "trajectories")
	r := rand.New(rand.NewPCG(23, 24))
	var items []*export.Item
	for _, form := range []string{"mini-swe-agent-v1", "mini-swe-agent-v2"} {
		for _, file := range corpustest.Files(t, dir, form+"/*.traj.json") {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			traj, err := trajectories.Parse(file, data)
			if err != nil {
				t.Fatal(err)
			}
			var replies, near []string
			for _, turn := range traj.Turns {
				if turn.Role == model.Assistant {
					text := turn.Content + "\n" + strings.Join(turn.Commands, "\n")
					replies, near = append(replies, text), append(near, changed(r, text, 0.003))
				}
			}
			id := "r__" + strings.TrimSuffix(filepath.Base(file), ".traj.json")
			items = append(items, said(form+id, 1, replies...), said(form+id, 2, near...))
		}
	}
	kept, _, s := sift(t, sieve.Config{Dedupe: 0.9}, items...)
	for _, p := range s.Report().Duplicates.Pairs {
		if strings.TrimSuffix(p.Kept, "1/journal.jsonl") != strings.TrimSuffix(p.Like, "2/journal.jsonl") {
			t.Errorf("%+v", p)
		}
	}
	if want := len(items) / 2; len(kept) != want {
		t.Errorf("kept %d, want %d: %v", len(kept), want, kept)
	}
}

// TestCopiesWithoutLikeness: exact copies, and attempts in which nothing was said,
// are the same whether likeness is asked for or not.
func TestCopiesWithoutLikeness(t *testing.T) {
	for name, want := range map[string]bool{
		"one two three four five six": true, "x": true, " . ": true, "naïve": true, "\u00fc": true,
		"": false, " \n\u00a0\t": false,
	} {
		for _, dedupe := range []float64{0, 0.9, 1} {
			s, err := sieve.New(sieve.Config{Dedupe: dedupe})
			if err != nil {
				t.Fatal(err)
			}
			for n := range 2 {
				s.Take(s.Look(said("own__name-1", n+1, name)))
			}
			if got := s.Report().Duplicates.Exact == 1; got != want {
				t.Errorf("%q, dedupe %v: an exact copy %v, want %v", name, dedupe, got, want)
			}
		}
	}
}
