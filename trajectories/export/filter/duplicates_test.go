package filter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
	"github.com/minibench/mini/trajectories/formats"
)

// withReplies returns an attempt with the given replies.
func withReplies(id string, attempt int, replies ...string) *export.Item {
	it := item(id, attempt, 0)
	for _, text := range replies {
		it.Entries = append(it.Entries, trajectories.Entry{Message: trajectories.Message{
			Message: model.Message{Role: model.Assistant, Content: text}, Cause: trajectories.CauseReply,
		}})
	}
	return it
}

// changeWords replaces a share of the words of a text.
func changeWords(r *rand.Rand, text string, share float64) string {
	words := strings.Fields(text)
	for i := range words {
		if r.Float64() < share {
			words[i] = fmt.Sprintf("new%d", r.IntN(1e9))
		}
	}
	return strings.Join(words, " ")
}

// jaccard computes the exact Jaccard similarity of five-word sequences.
func jaccard(a, b string) float64 {
	shingles := func(text string) map[string]bool {
		set, words := map[string]bool{}, strings.Fields(text)
		for i := range len(words) - 4 {
			set[strings.Join(words[i:i+5], " ")] = true
		}
		return set
	}
	x, y := shingles(a), shingles(b)
	both := 0
	for shingle := range x {
		if y[shingle] {
			both++
		}
	}
	return float64(both) / float64(len(x)+len(y)-both)
}

// TestNearDuplicates compares the similarities of reported duplicates with the exact ones.
func TestNearDuplicates(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	var items []*export.Item
	texts := map[string]string{}
	add := func(id, text string) {
		it := withReplies(id, 1, text[:len(text)/2], text[len(text)/2:])
		texts[it.Journal] = strings.TrimSpace(text)
		items = append(items, it)
	}
	for n := range 150 {
		text := prose(r, 400+10*n)
		add(fmt.Sprintf("a__a-%d", n), text)
		add(fmt.Sprintf("a__near-%d", n), changeWords(r, text, 0.004))
		add(fmt.Sprintf("a__less-%d", n), changeWords(r, text, 0.05))
	}
	kept, _, s := runFilter(t, filter.Config{Dedupe: 0.9}, items...)
	found := map[string]filter.DuplicatePair{}
	worst := 0.0
	for _, p := range s.Report().Duplicates.Pairs {
		found[p.Duplicate] = p
		deviation := math.Abs(p.Similarity - jaccard(texts[p.Kept], texts[p.Duplicate]))
		worst = max(worst, deviation)
		if !p.Dropped || p.Exact != (deviation == 0 && texts[p.Kept] == texts[p.Duplicate]) {
			t.Errorf("%+v", p)
		}
	}
	if worst > 0.09 { // more than four standard deviations
		t.Errorf("a likeness is off by %.3f", worst)
	}
	missed, similar := 0, 0
	for n := range 150 {
		first, near, less := items[3*n].Journal, items[3*n+1].Journal, items[3*n+2].Journal
		if real := jaccard(texts[first], texts[near]); real > 0.95 {
			similar++
			if found[near].Kept != first {
				missed++
			}
		}
		if found[less].Kept != "" {
			t.Errorf("%s is dropped, with a likeness of %.2f", less, jaccard(texts[first], texts[less]))
		}
	}
	if missed > 2 || similar < 80 {
		t.Errorf("%d of %d that are alike for sure were missed", missed, similar)
	}
	t.Logf("%d pairs, off by %.3f at most, %d of %d missed", len(found), worst, missed, similar)
	keptAgain, _, _ := runFilter(t, filter.Config{Dedupe: 0.9}, items...)
	assert.Equal(t, strings.Join(keptAgain, " "), strings.Join(kept, " "), "a second pass keeps others")
}

func TestExactCopies(t *testing.T) {
	items := func() []*export.Item {
		return []*export.Item{
			withReplies("a__a-1", 1, "one two three four five six"), withReplies("a__a-1", 2, "one two three four five six"),
			withReplies("b__b-1", 1, "One, two, three, four, five, six"), withReplies("c__c-1", 1), withReplies("c__c-1", 2),
		}
	}
	for name, test := range map[string]struct {
		cfg  filter.Config
		kept int
		note bool
	}{
		"named only":        {filter.Config{}, 5, true},
		"dropped":           {filter.Config{Dedupe: 1}, 4, false},
		"with near ones":    {filter.Config{Dedupe: 0.9}, 4, false},
		"the earlier stays": {filter.Config{Dedupe: 0.5}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			kept, _, s := runFilter(t, test.cfg, items()...)
			d := s.Report().Duplicates
			if len(kept) != test.kept || d.Exact != 1 || len(d.Pairs) != 1 {
				t.Fatalf("kept %v, %+v", kept, d)
			}
			p := d.Pairs[0]
			if want := items(); p.Kept != want[0].Journal || p.Duplicate != want[1].Journal || !p.Exact || p.Dropped == test.note {
				t.Errorf("%+v", p)
			}
			assert.Equal(t, test.note, (len(s.Report().Notes) == 1), "notes")
		})
	}
}

// TestPromptsAreNotCompared checks that attempts with the same prompts and observations,
// but different replies, are not duplicates.
func TestPromptsAreNotCompared(t *testing.T) {
	same := strings.Repeat("a long prompt that all of them have ", 200)
	items := make([]*export.Item, 3)
	for i := range items {
		items[i] = item("a__a-1", i+1, 3)
		items[i].Entries[1].Content = same
		items[i].Entries[3].Content = same
	}
	if kept, _, _ := runFilter(t, filter.Config{Dedupe: 0.5}, items...); len(kept) != 3 {
		t.Errorf("kept %v", kept)
	}
	calls := func(attempt int, command string) *export.Item {
		it := withReplies("b__b-1", attempt, "")
		it.Entries[2].ToolCalls = []model.ToolCall{{Arguments: `{"command":"` + command + `"}`}}
		it.Entries[2].Actions = []string{command}
		return it
	}
	if kept, _, _ := runFilter(t, filter.Config{Dedupe: 0.9}, calls(1, "ls -la src"), calls(2, "cat setup.py"), calls(3, "ls -la src")); len(kept) != 2 {
		t.Errorf("of calls kept %v", kept)
	}
}

// TestRealConversations checks that slightly changed copies of real conversations are
// duplicates.
func TestRealConversations(t *testing.T) {
	dir := corpustest.RealData(t, "trajectories")
	r := rand.New(rand.NewPCG(23, 24))
	var items []*export.Item
	for _, format := range []string{"mini-swe-agent-v1", "mini-swe-agent-v2"} {
		for _, file := range corpustest.Glob(t, dir, format+"/*.traj.json") {
			f, err := formats.Open(file)
			require.NoError(t, err)
			traj, err := trajectories.Fold(f.Records)
			require.NoError(t, err)
			var replies, near []string
			for _, e := range traj.Entries {
				if e.Role == model.Assistant {
					text := e.Content + "\n" + strings.Join(e.Actions, "\n")
					replies, near = append(replies, text), append(near, changeWords(r, text, 0.003))
				}
			}
			id := "r__" + strings.TrimSuffix(filepath.Base(file), ".traj.json")
			items = append(items, withReplies(format+id, 1, replies...), withReplies(format+id, 2, near...))
		}
	}
	kept, _, s := runFilter(t, filter.Config{Dedupe: 0.9}, items...)
	for _, p := range s.Report().Duplicates.Pairs {
		assert.Equal(t, strings.TrimSuffix(p.Duplicate, "2/journal.jsonl"), strings.TrimSuffix(p.Kept, "1/journal.jsonl"), "%+v", p)
	}
	if want := len(items) / 2; len(kept) != want {
		t.Errorf("kept %d, want %d: %v", len(kept), want, kept)
	}
}
