package sieve_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/sieve"
)

// item is an attempt with so many replies, whose words depend on the id and the
// attempt alone.
func item(id string, attempt, replies int, change ...func(*export.Item)) *export.Item {
	it := &export.Item{
		Transcript: &trajectories.Transcript{
			Header:  trajectories.Header{InstanceID: id, Attempt: attempt, ModelName: "maker/some-model-1"},
			Outcome: &trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: trajectories.Bytes("diff --git a/a b/a\n")},
		},
		Journal: fmt.Sprintf("runs/a/%s/attempts/%d/journal.jsonl", id, attempt), InstanceID: id, Attempt: attempt,
		Repo: repoOf(id), Verdict: "resolved", Tokens: 1000,
	}
	say := func(role model.Role, cause trajectories.Cause, text string) {
		it.Entries = append(it.Entries, trajectories.Entry{
			Record:  2 + 2*len(it.Entries),
			Message: trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: cause},
		})
	}
	say(model.System, trajectories.CausePrompt, "You are to fix it.")
	say(model.User, trajectories.CausePrompt, "This is broken: "+id)
	seed := uint64(attempt)
	for _, c := range []byte(id) {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range replies {
		say(model.Assistant, trajectories.CauseReply, fmt.Sprintf("%s %s\n```bash\ncat %s.py\n```", id, prose(r, 60), prose(r, 1)))
		it.Entries[len(it.Entries)-1].Ran = []trajectories.Ran{{Record: 1000 + n, Execution: trajectories.Execution{Command: "cat", Output: trajectories.Bytes("output\n")}}}
		say(model.User, trajectories.CauseObservation, "output")
	}
	for _, c := range change {
		c(it)
	}
	return it
}

func repoOf(id string) string {
	owner, rest, ok := strings.Cut(id, "__")
	if !ok {
		return ""
	}
	return owner + "/" + rest[:max(0, strings.LastIndexByte(rest, '-'))]
}

// prose are n words of a vocabulary of some thousands.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "w%d", r.IntN(5000))
	}
	return b.String()
}

// sift is what passes, as "id/attempt", and why the others do not.
func sift(t *testing.T, cfg sieve.Config, items ...*export.Item) (kept []string, dropped map[string]int, s *sieve.Sieve) {
	t.Helper()
	s, err := sieve.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	looks := make([]*sieve.Look, len(items))
	var ready sync.WaitGroup
	for i, it := range items {
		ready.Go(func() { looks[i] = s.Look(it) })
	}
	ready.Wait()
	for _, l := range looks {
		for _, it := range s.Take(l) {
			kept = append(kept, fmt.Sprintf("%s/%d", it.InstanceID, it.Attempt))
		}
	}
	s.End()
	dropped = map[string]int{}
	for _, d := range s.Report().Dropped {
		dropped[string(d.Reason)] = d.Attempts
	}
	return kept, dropped, s
}

func TestFilters(t *testing.T) {
	two := 2
	none := 0
	formatErrors := func(n int) func(*export.Item) {
		return func(it *export.Item) {
			for range n {
				it.Entries = append(it.Entries, trajectories.Entry{Message: trajectories.Message{Cause: trajectories.CauseFormatError}})
			}
		}
	}
	set := func(change func(*export.Item)) func(*export.Item) { return change }
	class := func(c trajectories.Class) func(*export.Item) { return func(it *export.Item) { it.Outcome.Class = c } }
	verdict := func(v string) func(*export.Item) { return func(it *export.Item) { it.Verdict = v } }
	unfinished := func(it *export.Item) { it.Outcome = nil }
	tests := map[string]struct {
		cfg  sieve.Config
		it   []func(*export.Item)
		want string // the reason; empty is kept
	}{
		"nothing asked":                {sieve.Config{}, nil, ""},
		"verdict":                      {sieve.Config{Verdicts: []string{"resolved"}}, nil, ""},
		"another verdict":              {sieve.Config{Verdicts: []string{"resolved"}}, []func(*export.Item){verdict("unresolved")}, "verdict: unresolved"},
		"no verdict":                   {sieve.Config{Verdicts: []string{"resolved"}}, []func(*export.Item){verdict("")}, "verdict: none"},
		"no verdict, asked for":        {sieve.Config{Verdicts: []string{"none"}}, []func(*export.Item){verdict("")}, ""},
		"one of two verdicts":          {sieve.Config{Verdicts: []string{"resolved", "unstable"}}, []func(*export.Item){verdict("unstable")}, ""},
		"class":                        {sieve.Config{Classes: []string{"submitted"}}, nil, ""},
		"another class":                {sieve.Config{Classes: []string{"submitted"}}, []func(*export.Item){class(trajectories.Limit)}, "outcome class: limit"},
		"any class, of an archive":     {sieve.Config{}, []func(*export.Item){class(trajectories.Provider)}, ""},
		"no result trains":             {sieve.Config{Training: true}, []func(*export.Item){class(trajectories.Provider)}, "outcome class: provider"},
		"a limit trains":               {sieve.Config{Training: true}, []func(*export.Item){class(trajectories.Limit)}, ""},
		"unfinished":                   {sieve.Config{Training: true}, []func(*export.Item){unfinished}, "outcome class: none"},
		"unfinished, asked for":        {sieve.Config{Training: true, Classes: []string{"none"}}, []func(*export.Item){unfinished}, ""},
		"another agent's, without end": {sieve.Config{Training: true}, []func(*export.Item){unfinished, set(func(it *export.Item) { it.Import = &trajectories.Import{} })}, ""},
		"no flags":                     {sieve.Config{NoFlagged: true}, nil, ""},
		"flagged":                      {sieve.Config{NoFlagged: true}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci"} })}, "flag: ci"},
		"flagged otherwise":            {sieve.Config{NoFlagged: true, Flags: []string{"test_file"}}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci"} })}, ""},
		"flagged so, too":              {sieve.Config{NoFlagged: true, Flags: []string{"test_file"}}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci", "test_file"} })}, "flag: test_file"},
		"flagged, and nobody asked":    {sieve.Config{}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci"} })}, ""},
		"repository":                   {sieve.Config{Repos: []string{"Own/Name"}}, nil, ""},
		"another repository":           {sieve.Config{Repos: []string{"own/other"}}, nil, "repository: own/name"},
		"no repository":                {sieve.Config{Repos: []string{"own/name"}}, []func(*export.Item){set(func(it *export.Item) { it.Repo = "" })}, "repository: none"},
		"model":                        {sieve.Config{Models: []string{"some-model-1"}}, nil, ""},
		"model with its maker":         {sieve.Config{Models: []string{"maker/some-model-1"}}, nil, ""},
		"model by its beginning":       {sieve.Config{Models: []string{"some-*"}}, nil, ""},
		"model by its middle":          {sieve.Config{Models: []string{"*-model-*"}}, nil, ""},
		"another model":                {sieve.Config{Models: []string{"some-model", "other*"}}, nil, "model: maker/some-model-1"},
		"steps within":                 {sieve.Config{MinSteps: 3, MaxSteps: 3}, nil, ""},
		"too few steps":                {sieve.Config{MinSteps: 4}, nil, "min steps"},
		"too many steps":               {sieve.Config{MaxSteps: 2}, nil, "max steps"},
		"format errors within":         {sieve.Config{MaxFormatErrors: &two}, []func(*export.Item){formatErrors(2)}, ""},
		"too many format errors":       {sieve.Config{MaxFormatErrors: &two}, []func(*export.Item){formatErrors(3)}, "format errors"},
		"one format error of none":     {sieve.Config{MaxFormatErrors: &none}, []func(*export.Item){formatErrors(1)}, "format errors"},
		"tokens within":                {sieve.Config{MaxTokens: 2000}, nil, ""},
		"too many tokens":              {sieve.Config{MaxTokens: 200}, nil, "max tokens"},
		"the first of several reasons": {sieve.Config{MaxSteps: 2, Verdicts: []string{"unresolved"}}, nil, "verdict: resolved"},
		"a test set":                   {sieve.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) { it.InstanceID = "django__django-11099" })}, "test set: SWE-bench Verified"},
		"a test set, allowed":          {sieve.Config{Training: true, AllowTests: true}, []func(*export.Item){set(func(it *export.Item) { it.InstanceID = "django__django-11099" })}, ""},
		"a test set, not for training": {sieve.Config{}, []func(*export.Item){set(func(it *export.Item) { it.InstanceID = "django__django-11099" })}, ""},
		"a test set by its image": {sieve.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) {
			it.Header.Image = "docker.io/swebench/sweb.eval.x86_64.django_1776_django-11099:latest"
		})}, "test set: SWE-bench Verified"},
		"a test set by the image's name": {sieve.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) { it.Header.Image = "starryzhang/sweb.eval.x86_64.a_1776_b-1" })}, "test set: SWE-bench-Live"},
		"a test set by the dataset":      {sieve.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) { it.Dataset = "rows.jsonl+live" })}, "test set: SWE-bench-Live"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kept, dropped, _ := sift(t, test.cfg, item("own__name-1", 1, 3, test.it...))
			want := map[string]int{}
			if test.want != "" {
				want[test.want] = 1
			}
			if diff := cmp.Diff(want, dropped); diff != "" || (len(kept) == 1) != (test.want == "") {
				t.Errorf("kept %v; dropped (-want +got):\n%s", kept, diff)
			}
		})
	}
}

func TestTokensAreCounted(t *testing.T) {
	it := item("own__name-1", 1, 2, func(it *export.Item) {
		it.Entries[2].Reasoning = strings.Repeat("thinking about it ", 100)
		it.Entries[2].Content += " 日本語のテキスト"
		it.Header.Tools = []model.Definition{{Name: "bash", Description: "run it", Parameters: []byte(`{"type":"object"}`)}}
	})
	count := func(cfg sieve.Config) int64 {
		cfg.MaxTokens = 1 << 40
		if kept, _, _ := sift(t, cfg, it); len(kept) != 1 {
			t.Fatal("it is not kept")
		}
		return it.Tokens
	}
	plain, reasoning := count(sieve.Config{}), count(sieve.Config{Reasoning: true})
	if reasoning-plain != 515 {
		t.Errorf("%d tokens, with the reasoning %d", plain, reasoning)
	}
	it.Header.Tools = nil
	if without := count(sieve.Config{}); without >= plain {
		t.Errorf("%d without tools, %d with", without, plain)
	}
	it.Tokens = 77
	if _, _, s := sift(t, sieve.Config{}, it); it.Tokens != 77 || s.Report().Tokens.Sum != 77 {
		t.Errorf("what the provider counted became %d", it.Tokens)
	}
}

func TestPerInstance(t *testing.T) {
	var items []*export.Item
	for _, in := range []struct {
		id string
		n  int
	}{{"a__a-1", 1}, {"b__b-1", 4}, {"c__c-1", 2}, {"d__d-1", 3}} {
		for k := range in.n {
			items = append(items, item(in.id, k+1, 1))
		}
	}
	items[6].Verdict = "unresolved" // c's second: it has too few that pass
	kept, dropped, _ := sift(t, sieve.Config{Verdicts: []string{"resolved"}, MinPerInstance: 2, PerInstance: 3}, items...)
	if want := []string{"b__b-1/1", "b__b-1/2", "b__b-1/3", "d__d-1/1", "d__d-1/2", "d__d-1/3"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v", kept)
	}
	want := map[string]int{"verdict: unresolved": 1, "max per instance": 1, "min per instance": 2}
	if diff := cmp.Diff(want, dropped); diff != "" {
		t.Error(diff)
	}
}

// TestForgotten: what was kept for a while, and then was one of too few, is no
// reason to drop a copy of it.
func TestForgotten(t *testing.T) {
	one := item("a__a-1", 1, 3)
	copied := item("a__a-1", 1, 3)
	copied.InstanceID = "b__b-1"
	kept, dropped, _ := sift(t, sieve.Config{Dedupe: 0.9, MinPerInstance: 2}, one, copied, item("b__b-1", 2, 3))
	if len(kept) != 2 || dropped["min per instance"] != 1 {
		t.Errorf("kept %v, dropped %v", kept, dropped)
	}
}

func TestMistakes(t *testing.T) {
	minus := -1
	for want, cfg := range map[string]sieve.Config{
		`--class "finished" is not one of submitted, limit, provider, environment, interrupted, internal, none`: {Classes: []string{"finished"}},
		`--tokenizer "qwen" is not known; there is estimate`:                                                    {Tokenizer: "qwen"},
		`--min-steps 5 is more than --max-steps 4: nothing would be left`:                                       {MinSteps: 5, MaxSteps: 4},
		`--min-per-instance 3 is more than --max-per-instance 2: nothing would be left`:                         {MinPerInstance: 3, PerInstance: 2},
		`--min-per-instance is at most 64: so many attempts are held in memory`:                                 {MinPerInstance: 65},
		`bounds are numbers from 0 on; 0 is none`:                                                               {MaxTokens: -1},
		`--max-format-errors is a number from 0 on`:                                                             {MaxFormatErrors: &minus},
		`--dedupe 1.5 is a likeness from 0 to 1, as 0.9`:                                                        {Dedupe: 1.5},
		`--dedupe 0.1 would drop what is hardly alike: from 0.5 on`:                                             {Dedupe: 0.1},
		`--secrets "keep" is not one of redact, drop, refuse`:                                                   {Secrets: "keep"},
		`--split-by "file" is not one of instance, repo`:                                                        {SplitBy: "file"},
	} {
		if _, err := sieve.New(cfg); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// leaky has a made-up key in the configuration, in what was said and run, and in
// the patches of an attempt.
func leaky(key string) func(*export.Item) {
	return func(it *export.Item) {
		with := func(s string) string { return s + " " + key }
		it.Header.Config = []byte(`{"k":"` + key + `"}`)
		reply := &it.Entries[2]
		reply.Content = with(reply.Content)
		reply.Ran[0].Output = trajectories.Bytes(with(""))
		it.Entries[3].Content = with("output")
		it.Outcome.Submission, it.Outcome.PartialPatch = trajectories.Bytes(with("diff")), trajectories.Bytes(with("diff"))
		it.Diff = &trajectories.Diff{Patch: trajectories.Bytes(with("diff"))}
	}
}

func TestSecretsAreTakenOut(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	key, own := "ghp_"+some(r, 36, alnum), "own-secret-"+some(r, 10, alnum)
	for name, training := range map[string]bool{"training": true, "another format": false} {
		t.Run(name, func(t *testing.T) {
			it := item("own__name-1", 1, 1, leaky(key+" "+own))
			kept, _, s := sift(t, sieve.Config{Training: training, Known: []sieve.Known{{Name: "OWN_TOKEN", Value: own}}}, it)
			if len(kept) != 1 || s.Refusal() != nil {
				t.Fatalf("kept %v, %v", kept, s.Refusal())
			}
			left := 0
			if !training {
				left = 3 // the patches
			}
			all := strings.Join(allOf(it), "\n")
			if n := strings.Count(all, key); n != left || strings.Contains(all, own) {
				t.Errorf("the key is left %d times, want %d:\n%s", n, left, all)
			}
			secrets := s.Report().Secrets
			if want := map[string]int{"GitHub token": 7, "value of OWN_TOKEN": 7}; cmp.Diff(want, secrets.ByKind) != "" {
				t.Errorf("found %v", secrets.ByKind)
			}
			stayed := 0
			for _, f := range secrets.Found {
				if f.File != it.Journal || f.Left && f.Kind != "GitHub token" {
					t.Errorf("%+v", f)
				}
				if f.Left {
					stayed += f.Count
				}
			}
			if stayed != left {
				t.Errorf("%d are said to be left, not %d", stayed, left)
			}
			if records := recordsOf(secrets.Found); !slices.Equal(records, []int{0, 6, 8, 1000}) {
				t.Errorf("in records %v", records)
			}
		})
	}
}

func recordsOf(found []sieve.Found) []int {
	var records []int
	for _, f := range found {
		records = append(records, f.Record)
	}
	slices.Sort(records)
	return slices.Compact(records)
}

// allOf are the texts of an attempt that leaky fills.
func allOf(it *export.Item) []string {
	return []string{
		string(it.Header.Config), it.Entries[2].Content, string(it.Entries[2].Ran[0].Output), it.Entries[3].Content,
		string(it.Outcome.Submission), string(it.Outcome.PartialPatch), string(it.Diff.Patch),
	}
}

func TestSecretsDropOrRefuse(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	key := "hf_" + some(r, 34, alnum)
	items := func() []*export.Item {
		return []*export.Item{item("a__a-1", 1, 1), item("a__a-1", 2, 1, leaky(key))}
	}
	kept, dropped, s := sift(t, sieve.Config{Secrets: sieve.Drop}, items()...)
	if !slices.Equal(kept, []string{"a__a-1/1"}) || dropped["secret: Hugging Face token"] != 1 || s.Refusal() != nil {
		t.Errorf("drop: kept %v, dropped %v, %v", kept, dropped, s.Refusal())
	}
	_, _, s = sift(t, sieve.Config{Secrets: sieve.Refuse}, items()...)
	err := s.Refusal()
	if err == nil || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "secrets, in 1 attempt; the first is in runs/a/a__a-1/attempts/2/journal.jsonl, record ") {
		t.Errorf("refuse: %v", err)
	}
	if _, _, s = sift(t, sieve.Config{Secrets: sieve.Refuse}, items()[0]); s.Refusal() != nil {
		t.Errorf("nothing was found: %v", s.Refusal())
	}
}
