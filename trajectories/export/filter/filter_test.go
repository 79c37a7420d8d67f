package filter_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

// item returns an attempt with a number of replies. Their text depends only on the ID
// and the attempt.
func item(id string, attempt, replies int, change ...func(*export.Item)) *export.Item {
	it := &export.Item{
		Attempt: &trajectories.Attempt{
			Header:  trajectories.Header{InstanceID: id, Attempt: attempt, ModelName: "maker/some-model-1"},
			Outcome: &trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: trajectories.Bytes("diff --git a/a b/a\n")},
		},
		Journal: fmt.Sprintf("runs/a/%s/attempts/%d/journal.jsonl", id, attempt), InstanceID: id, Number: attempt,
		Repo: repoOf(id), Verdict: "resolved", Tokens: 1000,
	}
	addMessage := func(role model.Role, cause trajectories.Cause, text string) {
		it.Entries = append(it.Entries, trajectories.Entry{
			Record:  2 + 2*len(it.Entries),
			Message: trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: cause},
		})
	}
	addMessage(model.System, trajectories.CausePrompt, "You are to fix it.")
	addMessage(model.User, trajectories.CausePrompt, "This is broken: "+id)
	seed := uint64(attempt)
	for _, c := range []byte(id) {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range replies {
		addMessage(model.Assistant, trajectories.CauseReply, fmt.Sprintf("%s %s\n```bash\ncat %s.py\n```", id, prose(r, 60), prose(r, 1)))
		it.Entries[len(it.Entries)-1].Executions = []trajectories.Execution{{Record: 1000 + n, Command: "cat", Output: trajectories.Bytes("output\n")}}
		addMessage(model.User, trajectories.CauseObservation, "output")
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

// prose returns n random words of a vocabulary of 5000.
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

// runFilter filters items. It returns the accepted attempts as "id/attempt", and the number
// of dropped attempts by reason.
func runFilter(t *testing.T, cfg filter.Config, items ...*export.Item) (kept []string, dropped map[string]int, f *filter.Filter) {
	t.Helper()
	f, err := filter.New(cfg)
	require.NoError(t, err)
	inspections := make([]*filter.Inspection, len(items))
	var inspectors sync.WaitGroup
	for i, it := range items {
		inspectors.Go(func() { inspections[i] = f.Inspect(it) })
	}
	inspectors.Wait()
	for _, inspection := range inspections {
		for _, it := range f.Add(inspection) {
			kept = append(kept, fmt.Sprintf("%s/%d", it.InstanceID, it.Number))
		}
	}
	f.Finish()
	dropped = map[string]int{}
	for _, d := range f.Report().Dropped {
		dropped[string(d.Reason)] = d.Attempts
	}
	return kept, dropped, f
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
		cfg  filter.Config
		it   []func(*export.Item)
		want string // the reason; empty if accepted
	}{
		"nothing asked":                {filter.Config{}, nil, ""},
		"verdict":                      {filter.Config{Verdicts: []string{"resolved"}}, nil, ""},
		"another verdict":              {filter.Config{Verdicts: []string{"resolved"}}, []func(*export.Item){verdict("unresolved")}, "verdict: unresolved"},
		"no verdict":                   {filter.Config{Verdicts: []string{"resolved"}}, []func(*export.Item){verdict("")}, "verdict: none"},
		"no verdict, asked for":        {filter.Config{Verdicts: []string{"none"}}, []func(*export.Item){verdict("")}, ""},
		"one of two verdicts":          {filter.Config{Verdicts: []string{"resolved", "unstable"}}, []func(*export.Item){verdict("unstable")}, ""},
		"class":                        {filter.Config{Classes: []string{"submitted"}}, nil, ""},
		"another class":                {filter.Config{Classes: []string{"submitted"}}, []func(*export.Item){class(trajectories.Limit)}, "outcome class: limit"},
		"any class, of an archive":     {filter.Config{}, []func(*export.Item){class(trajectories.Provider)}, ""},
		"no result trains":             {filter.Config{Training: true}, []func(*export.Item){class(trajectories.Provider)}, "outcome class: provider"},
		"a limit trains":               {filter.Config{Training: true}, []func(*export.Item){class(trajectories.Limit)}, ""},
		"unfinished":                   {filter.Config{Training: true}, []func(*export.Item){unfinished}, "outcome class: none"},
		"unfinished, asked for":        {filter.Config{Training: true, Classes: []string{"none"}}, []func(*export.Item){unfinished}, ""},
		"another agent's, without end": {filter.Config{Training: true}, []func(*export.Item){unfinished, set(func(it *export.Item) { it.Import = &trajectories.Import{} })}, ""},
		"no flags":                     {filter.Config{DropFlagged: true}, nil, ""},
		"flagged":                      {filter.Config{DropFlagged: true}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci"} })}, "flag: ci"},
		"flagged otherwise":            {filter.Config{DropFlagged: true, Flags: []string{"test_file"}}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci"} })}, ""},
		"flagged so, too":              {filter.Config{DropFlagged: true, Flags: []string{"test_file"}}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci", "test_file"} })}, "flag: test_file"},
		"flagged, without NoFlagged":   {filter.Config{}, []func(*export.Item){set(func(it *export.Item) { it.Flags = []string{"ci"} })}, ""},
		"repository":                   {filter.Config{Repos: []string{"Own/Name"}}, nil, ""},
		"another repository":           {filter.Config{Repos: []string{"own/other"}}, nil, "repository: own/name"},
		"no repository":                {filter.Config{Repos: []string{"own/name"}}, []func(*export.Item){set(func(it *export.Item) { it.Repo = "" })}, "repository: none"},
		"model":                        {filter.Config{Models: []string{"some-model-1"}}, nil, ""},
		"model with its maker":         {filter.Config{Models: []string{"maker/some-model-1"}}, nil, ""},
		"model by its beginning":       {filter.Config{Models: []string{"some-*"}}, nil, ""},
		"model by its middle":          {filter.Config{Models: []string{"*-model-*"}}, nil, ""},
		"another model":                {filter.Config{Models: []string{"some-model", "other*"}}, nil, "model: maker/some-model-1"},
		"steps within":                 {filter.Config{MinSteps: 3, MaxSteps: 3}, nil, ""},
		"too few steps":                {filter.Config{MinSteps: 4}, nil, "min steps"},
		"too many steps":               {filter.Config{MaxSteps: 2}, nil, "max steps"},
		"format errors within":         {filter.Config{MaxFormatErrors: &two}, []func(*export.Item){formatErrors(2)}, ""},
		"too many format errors":       {filter.Config{MaxFormatErrors: &two}, []func(*export.Item){formatErrors(3)}, "format errors"},
		"one format error of none":     {filter.Config{MaxFormatErrors: &none}, []func(*export.Item){formatErrors(1)}, "format errors"},
		"tokens within":                {filter.Config{MaxTokens: 2000}, nil, ""},
		"too many tokens":              {filter.Config{MaxTokens: 200}, nil, "max tokens"},
		"the first of several reasons": {filter.Config{MaxSteps: 2, Verdicts: []string{"unresolved"}}, nil, "verdict: resolved"},
		"a test set":                   {filter.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) { it.InstanceID = "django__django-11099" })}, "test set: SWE-bench Verified"},
		"a test set, allowed":          {filter.Config{Training: true, AllowTestSets: true}, []func(*export.Item){set(func(it *export.Item) { it.InstanceID = "django__django-11099" })}, ""},
		"a test set, not for training": {filter.Config{}, []func(*export.Item){set(func(it *export.Item) { it.InstanceID = "django__django-11099" })}, ""},
		"a test set by its image": {filter.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) {
			it.Header.Image = "docker.io/swebench/sweb.eval.x86_64.django_1776_django-11099:latest"
		})}, "test set: SWE-bench Verified"},
		"a test set by the image's name": {filter.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) { it.Header.Image = "starryzhang/sweb.eval.x86_64.a_1776_b-1" })}, "test set: SWE-bench-Live"},
		"a test set by the dataset":      {filter.Config{Training: true}, []func(*export.Item){set(func(it *export.Item) { it.Dataset = "rows.jsonl+live" })}, "test set: SWE-bench-Live"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kept, dropped, _ := runFilter(t, test.cfg, item("own__name-1", 1, 3, test.it...))
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
		it.Header.Tools = []model.ToolDefinition{{Name: "bash", Description: "run it", Parameters: []byte(`{"type":"object"}`)}}
	})
	count := func(cfg filter.Config) int64 {
		cfg.MaxTokens = 1 << 40
		if kept, _, _ := runFilter(t, cfg, it); len(kept) != 1 {
			t.Fatal("it is not kept")
		}
		return it.Tokens
	}
	plain, reasoning := count(filter.Config{}), count(filter.Config{Reasoning: true})
	assert.Equal(t, 515, reasoning-plain, "%d tokens, with the reasoning %d", plain, reasoning)
	it.Header.Tools = nil
	if without := count(filter.Config{}); without >= plain {
		t.Errorf("%d without tools, %d with", without, plain)
	}
	it.Tokens = 77
	if _, _, s := runFilter(t, filter.Config{}, it); it.Tokens != 77 || s.Report().Tokens.Sum != 77 {
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
	items[6].Verdict = "unresolved" // the second attempt on c: too few pass
	kept, dropped, _ := runFilter(t, filter.Config{Verdicts: []string{"resolved"}, MinPerInstance: 2, MaxPerInstance: 3}, items...)
	if want := []string{"b__b-1/1", "b__b-1/2", "b__b-1/3", "d__d-1/1", "d__d-1/2", "d__d-1/3"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v", kept)
	}
	want := map[string]int{"verdict: unresolved": 1, "max per instance": 1, "min per instance": 2}
	assert.Equal(t, want, dropped, "dropped")
}

// TestDuplicateOfDropped checks that a copy is kept if the earlier attempt was dropped
// because its instance has too few attempts.
func TestDuplicateOfDropped(t *testing.T) {
	one := item("a__a-1", 1, 3)
	copied := item("a__a-1", 1, 3)
	copied.InstanceID = "b__b-1"
	kept, dropped, _ := runFilter(t, filter.Config{Dedupe: 0.9, MinPerInstance: 2}, one, copied, item("b__b-1", 2, 3))
	if len(kept) != 2 || dropped["min per instance"] != 1 {
		t.Errorf("kept %v, dropped %v", kept, dropped)
	}
}

func TestConfigErrors(t *testing.T) {
	minus := -1
	for want, cfg := range map[string]filter.Config{
		`--class "finished" is not one of submitted, limit, provider, environment, interrupted, internal, none`: {Classes: []string{"finished"}},
		`--tokenizer "qwen" is unknown, use estimate`:                                                           {Tokenizer: "qwen"},
		`--min-steps 5 is more than --max-steps 4: no attempt would be left`:                                    {MinSteps: 5, MaxSteps: 4},
		`--min-per-instance 3 is more than --max-per-instance 2: no attempt would be left`:                      {MinPerInstance: 3, MaxPerInstance: 2},
		`--min-per-instance must be at most 64, the number of attempts held in memory`:                          {MinPerInstance: 65},
		`limits must not be negative; 0 means no limit`:                                                         {MaxTokens: -1},
		`--max-format-errors must not be negative`:                                                              {MaxFormatErrors: &minus},
		`--dedupe 1.5 must be a similarity from 0 to 1, such as 0.9`:                                            {Dedupe: 1.5},
		`--dedupe 0.1 must be at least 0.5, or attempts that are hardly similar would be dropped`:               {Dedupe: 0.1},
		`--secrets "keep" is not one of redact, drop, refuse`:                                                   {Secrets: "keep"},
		`--split-by "file" is not one of instance, repo`:                                                        {SplitBy: "file"},
	} {
		if _, err := filter.New(cfg); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// withSecret returns a change that adds a key to the configuration, messages, outputs and
// patches of an attempt.
func withSecret(key string) func(*export.Item) {
	return func(it *export.Item) {
		with := func(s string) string { return s + " " + key }
		it.Header.Config = []byte(`{"k":"` + key + `"}`)
		reply := &it.Entries[2]
		reply.Content = with(reply.Content)
		reply.Executions[0].Output = trajectories.Bytes(with(""))
		it.Entries[3].Content = with("output")
		it.Outcome.Submission, it.Outcome.PartialPatch = trajectories.Bytes(with("diff")), trajectories.Bytes(with("diff"))
		it.Diff = &trajectories.Diff{Patch: trajectories.Bytes(with("diff"))}
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	key, own := "ghp_"+randomText(r, 36, alnum), "own-secret-"+randomText(r, 10, alnum)
	for name, training := range map[string]bool{"training": true, "another format": false} {
		t.Run(name, func(t *testing.T) {
			it := item("own__name-1", 1, 1, withSecret(key+" "+own))
			kept, _, s := runFilter(t, filter.Config{Training: training, KnownSecrets: []filter.KnownSecret{{Name: "OWN_TOKEN", Value: own}}}, it)
			if len(kept) != 1 || s.Err() != nil {
				t.Fatalf("kept %v, %v", kept, s.Err())
			}
			wantLeft := 0
			if !training {
				wantLeft = 3 // the patches
			}
			all := strings.Join(secretTexts(it), "\n")
			if n := strings.Count(all, key); n != wantLeft || strings.Contains(all, own) {
				t.Errorf("the key is left %d times, want %d:\n%s", n, wantLeft, all)
			}
			secrets := s.Report().Secrets
			if want := map[string]int{"GitHub token": 7, "value of OWN_TOKEN": 7}; cmp.Diff(want, secrets.ByKind) != "" {
				t.Errorf("found %v", secrets.ByKind)
			}
			reported := 0
			for _, f := range secrets.Locations {
				if f.File != it.Journal || f.NotRemoved && f.Kind != "GitHub token" {
					t.Errorf("%+v", f)
				}
				if f.NotRemoved {
					reported += f.Count
				}
			}
			assert.Equal(t, wantLeft, reported, "are said to be left")
			assert.Equal(t, []int{0, 6, 8, 1000}, secretRecords(secrets.Locations), "in records")
		})
	}
}

func secretRecords(found []filter.SecretLocation) []int {
	var records []int
	for _, f := range found {
		records = append(records, f.Record)
	}
	slices.Sort(records)
	return slices.Compact(records)
}

// secretTexts returns the texts that withSecret changes.
func secretTexts(it *export.Item) []string {
	return []string{
		string(it.Header.Config), it.Entries[2].Content, string(it.Entries[2].Executions[0].Output), it.Entries[3].Content,
		string(it.Outcome.Submission), string(it.Outcome.PartialPatch), string(it.Diff.Patch),
	}
}

func TestSecretsDropOrRefuse(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	key := "hf_" + randomText(r, 34, alnum)
	items := func() []*export.Item {
		return []*export.Item{item("a__a-1", 1, 1), item("a__a-1", 2, 1, withSecret(key))}
	}
	kept, dropped, s := runFilter(t, filter.Config{Secrets: filter.SecretsDrop}, items()...)
	if !slices.Equal(kept, []string{"a__a-1/1"}) || dropped["secret: Hugging Face token"] != 1 || s.Err() != nil {
		t.Errorf("drop: kept %v, dropped %v, %v", kept, dropped, s.Err())
	}
	_, _, s = runFilter(t, filter.Config{Secrets: filter.SecretsRefuse}, items()...)
	err := s.Err()
	if err == nil || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "secrets in 1 attempt; the first is in runs/a/a__a-1/attempts/2/journal.jsonl, record ") {
		t.Errorf("refuse: %v", err)
	}
	if _, _, s = runFilter(t, filter.Config{Secrets: filter.SecretsRefuse}, items()[0]); s.Err() != nil {
		t.Errorf("nothing was found: %v", s.Err())
	}
}
