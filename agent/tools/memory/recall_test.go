package memory_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
)

func TestRecall(t *testing.T) {
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d of the log\n", i+1)
	}
	out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}},
		"hello wide World",
		long.String(),
		"é"+strings.Repeat("ü", 9000),
		"mini-tool recall 1",
		"mini-tool recall 2",
		"mini-tool recall 2 --full",
		"mini-tool recall 2 --offset 6005 --limit 2\nmini-tool recall 2 --offset 6010",
		"mini-tool recall 3",
		"mini-tool recall 9",
		"mini-tool recall --search=WORLD",
		"mini-tool recall --search nowhere-to-be-found",
		"mini-tool recall --search line",
		"mini-tool recall 99\nmini-tool recall x\nmini-tool recall\nmini-tool recall 1 2\nmini-tool recall --search a b\nmini-tool recall --search\nmini-tool recall 1 --limit 0\nmini-tool recall 0",
		submit)

	checkEqual(t, "step 1 of 4\n--- your reply\nI think.\n```bash\nhello wide World\n```\n--- what came of it\nhello wide World\n", out[3])

	if s := out[4]; len(s) > 14<<10 || !strings.HasPrefix(s, "step 2 of 5\n--- your reply\nI think.\n```bash\nline 1 of the log\n") ||
		strings.Count(s, " lines left out; mini-tool recall 2 --full shows them]\n") != 2 || !strings.HasSuffix(s, "line 3000 of the log\n") {
		t.Errorf("%d bytes: %.300s", len(s), s)
	}
	if s := out[5]; !strings.HasPrefix(s, "step 2 of 6, lines 1 to 400 of 6006\n") || !strings.HasSuffix(s, "[mini-tool recall 2 --offset 401 goes on]\n") || strings.Count(s, "\n") != 402 {
		t.Errorf("%d bytes: %.100s", len(s), s)
	}
	checkEqual(t, "step 2 of 7, lines 6005 to 6006 of 6006\nline 2999 of the log\nline 3000 of the log\n"+
		"mini-tool: recall: step 2 has 6006 lines\n", strings.SplitAfter(out[6], "6006 lines\n")[0])
	if s := out[7]; strings.Count(s, "ü") < 4000 || strings.Contains(s, "\uFFFD") || len(longLines(s, 2000)) > 0 {
		t.Errorf("%d bytes, %d letters, long lines: %v", len(s), strings.Count(s, "ü"), longLines(s, 2000))
	}
	checkEqual(t, "step 9 of 9\n--- your reply\nI think.\n```bash\nmini-tool recall 9\n```\n--- what came of it\nnothing yet\n", out[8])
	checkEqual(t, "\"WORLD\" is in 2 steps\nstep 1\n  hello wide World\n  hello wide World\nstep 4\n  hello wide World\n  hello wide World\n", out[9])
	checkEqual(t, "no step before this one has \"nowhere-to-be-found\"\n", out[10])
	if s := out[11]; !strings.Contains(s, "step 2\n  line 1 of the log\n  line 2 of the log\n  line 3 of the log\n  and 5997 lines more\n") || len(s) > 10<<10 {
		t.Errorf("%d bytes: %.300s", len(s), s)
	}
	for _, want := range []string{
		`there is no step "99"; there are 13 so far`, `there is no step "x"`, `there is no step "0"`, "say the number of one step, or --search TEXT",
		"--search takes one text, in quotes", "--search needs a value", "--limit is a whole number from 1 to 5000",
	} {
		if !strings.Contains(out[12], want) {
			t.Errorf("%q is not in %s", want, out[12])
		}
	}
}

// longLines returns the lengths of the lines longer than limit.
func longLines(s string, limit int) (lengths []int) {
	for line := range strings.Lines(s) {
		if len(line) > limit+1 {
			lengths = append(lengths, len(line))
		}
	}
	return lengths
}

// Steps that a compaction removed can be recalled, also in a resumed session.
func TestRecallAfterCompaction(t *testing.T) {
	cfg := config()
	cfg.Compaction, cfg.CompactionTokens, cfg.CompactionKeep = agent.CompactionElide, 1, 2
	rec := agent.NewMemoryRecorder()
	const want = "step 1 of 4\n--- your reply\nI think.\n```bash\nfirst things\n```\n--- what came of it\nfirst things\n"
	out := runAttemptWith(t, cfg, nil, rec, []tools.Tool{memory.RecallTool{}}, "first things", "second", "third", "mini-tool recall 1", submit)
	checkEqual(t, want, out[3])
	state, err := agent.ReadResumeState(rec.Records())
	if err != nil {
		t.Fatal(err)
	}
	last := len(state.Attempt.Entries) - 1
	state.Submitted = false
	state.Attempt.Rewind(state.Attempt.Entries[last-1].Record)
	resumed := runAttemptWith(t, cfg, state, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}}, "mini-tool recall 1", submit)
	checkEqual(t, strings.Replace(want, "of 4", "of 5", 1), resumed[0])
}

// The pages of a step together contain the whole step.
func TestPagesContainTheWholeStep(t *testing.T) {
	var text strings.Builder
	for i := 1; i < 700; i++ {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("y", i))
	}
	next := regexp.MustCompile(`\[mini-tool recall 1 --offset (\d+) goes on\]\n$`)
	var got strings.Builder
	for offset := 1; offset > 0; {
		out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}}, text.String(), fmt.Sprint("mini-tool recall 1 --offset ", offset), submit)[1]
		if len(out) > 33<<10 {
			t.Fatalf("a page of %d bytes", len(out))
		}
		_, out, _ = strings.Cut(out, "\n")
		offset = 0
		if m := next.FindStringSubmatch(out); m != nil {
			offset, _ = strconv.Atoi(m[1])
		}
		got.WriteString(next.ReplaceAllString(out, ""))
	}
	want := "--- your reply\nI think.\n```bash\n" + text.String() + "\n```\n--- what came of it\n" + text.String()
	if got.String() != want {
		at := 0
		for at < min(len(want), got.Len()) && want[at] == got.String()[at] {
			at++
		}
		t.Errorf("%d bytes came, not %d; at %d %.80q is not %.80q", got.Len(), len(want), at, got.String()[at:], want[at:])
	}
}

// The result of a search is bounded.
func TestSearchIsBounded(t *testing.T) {
	var commands []string
	for i := range 60 {
		commands = append(commands, fmt.Sprintf("%d the needle %s", i, strings.Repeat("z", 5000)))
	}
	out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}}, append(commands, "mini-tool recall --search needle", submit)...)
	s := out[60]
	if !strings.HasPrefix(s, "\"needle\" is in 60 steps\nstep 1\n  0 the needle zzz") || !strings.HasSuffix(s, "and 30 steps more; search for something rarer\n") || len(s) > 20<<10 {
		t.Errorf("%d bytes: %.200s", len(s), s)
	}
}
