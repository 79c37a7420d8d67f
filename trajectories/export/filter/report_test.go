package filter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

// largeReport returns a report with entries of all kinds.
func largeReport(t *testing.T) *filter.Report {
	t.Helper()
	r := rand.New(rand.NewPCG(31, 32))
	splits, err := filter.ParseSplits("train=0.9,val=0.1")
	require.NoError(t, err)
	s, err := filter.New(filter.Config{
		Training: true, AllowTestSets: true, Verdicts: []string{"resolved"}, MaxSteps: 30, Dedupe: 0.9, MaxPerInstance: 4, Splits: splits, Seed: 42,
		KnownSecrets: []filter.KnownSecret{{Name: "OPENAI_API_KEY", Value: "made-up-value-of-a-key"}, {Name: "OTHER_API_KEY", Value: "none"}},
	})
	require.NoError(t, err)
	repos := []string{"django__django", "own__name", "some__library", "a-rather-long-owner__with-a-rather-long-name"}
	for n := range 240 {
		id := fmt.Sprintf("%s-%d", repos[n/60], 11000+n/3)
		it := item(id, n%3+1, 2+r.IntN(6))
		it.Tokens = int64(4000 + 9000*r.ExpFloat64())
		it.Header.ModelName = []string{"maker/some-model-1", "another-model"}[n%2]
		switch {
		case n%11 == 5:
			it.Verdict = "unresolved"
		case n%13 == 5:
			it.Verdict = ""
		case n%29 == 3:
			it.Outcome.Class = trajectories.Provider
		case n%31 == 4:
			it = item(id, n%3+1, 31)
		case n%37 == 6:
			it.Entries[3].Content += " made-up-value-of-a-key"
		case n%41 == 7:
			it.Entries[3].Content += " hf_" + randomText(r, 34, alnum)
		case n%43 == 8:
			it.Tokens = 0
		}
		if n%17 == 2 {
			it.Entries = item(id, n%3, 0).Entries
			it.Entries = append(it.Entries, item("own__name-11000", 1, 4).Entries...)
		}
		for _, kept := range s.Add(s.Inspect(it)) {
			s.AddRows(kept, s.SplitOf(kept), len(kept.Entries)/2)
		}
	}
	s.Finish()
	return s.Report()
}

func TestReportText(t *testing.T) {
	r := largeReport(t)
	for _, width := range []int{80, 120} {
		text := r.Doc().Text(width)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line of %d for a width of %d: %s", n, width, line)
			}
		}
		golden.Check(t, fmt.Sprintf("testdata/report-%d.txt", width), []byte(text))
	}
	data, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	golden.Check(t, "testdata/report.json", append(data, '\n'))
	dropped := 0
	for _, d := range r.Dropped {
		dropped += d.Attempts
	}
	if dropped+r.Kept != r.Attempts {
		t.Errorf("%d dropped and %d kept of %d", dropped, r.Kept, r.Attempts)
	}
}

// The first line agrees in number, and says if the format cannot represent some of the attempts that pass.
func TestReportCounts(t *testing.T) {
	for want, r := range map[string]filter.Report{
		"1 of 1 attempt passes the filters, 1 row written":                    {Attempts: 1, Kept: 1, Written: 1, Rows: 1},
		"0 of 2 attempts pass the filters":                                    {Attempts: 2},
		"12 of 12 attempts pass the filters, 10 could be written, as 51 rows": {Attempts: 12, Kept: 12, Written: 10, Rows: 51},
		"12 of 13 attempts pass the filters, 11 could be written":             {Attempts: 13, Kept: 12, Written: 11},
		"12 of 13 attempts pass the filters, 24 rows written":                 {Attempts: 13, Kept: 12, Written: 12, Rows: 24},
	} {
		if got, _, _ := strings.Cut(r.Doc().Text(80), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Exact copies are noted, with the way to drop them, unless they are samples to learn from.
func TestCopiesNote(t *testing.T) {
	for _, tt := range []struct {
		copies   int
		rollouts bool
		want     string
	}{
		{1, false, "1 exact copy of an earlier attempt was kept; use --dedupe 1 to drop such attempts"},
		{2, false, "2 exact copies of earlier attempts were kept; use --dedupe 1 to drop such attempts"},
		{2, true, ""},
	} {
		s, err := filter.New(filter.Config{Rollouts: tt.rollouts})
		require.NoError(t, err)
		for range tt.copies + 1 {
			s.Add(s.Inspect(item("a__a-1", 1, 3)))
		}
		if r := s.Report(); strings.Join(r.Notes, "\n") != tt.want || r.Duplicates.Exact != tt.copies {
			t.Errorf("notes %q, %d copies, want %q", r.Notes, r.Duplicates.Exact, tt.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	for name, lengths := range map[string][]int64{
		"one": {1}, "same": {5, 5, 5}, "two": {1, 1_000_000}, "from one": {1, 2, 3, 4, 5}, "huge": {1 << 50, 1<<50 + 1},
		"with a far one": append(manyLengths(300), 1_000_000),
	} {
		h := filter.NewHistogram(lengths, 2, "x")
		sum, last := 0, int64(-1)
		for _, bin := range h.Bins {
			if bin.From < last || bin.To != 0 && bin.To <= bin.From {
				t.Errorf("%s: bins %+v", name, h.Bins)
			}
			last = bin.To
			sum += bin.Count
		}
		if sum != len(lengths) || len(h.Bins) > 23 || h.Unknown != 2 {
			t.Errorf("%s: %d of %d in %d bins", name, sum, len(lengths), len(h.Bins))
		}
	}
}

func manyLengths(n int) (all []int64) {
	for i := range n {
		all = append(all, int64(1000+10*i))
	}
	return all
}

// TestHostileNames checks that names from files are sanitized and truncated.
func TestHostileNames(t *testing.T) {
	s, err := filter.New(filter.Config{Verdicts: []string{"resolved"}})
	require.NoError(t, err)
	for n := range 2000 {
		it := item("a__a-1", n, 1, func(it *export.Item) {
			it.Journal, it.Verdict = "evil\x1b[2J\n\u202e.jsonl", fmt.Sprintf("v\x1b[31m%d\n", n)
		})
		s.Add(s.Inspect(it))
	}
	if text := s.Report().Doc().Text(80); strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "verdict: (others)") {
		t.Errorf("%.300q", text)
	}
}
