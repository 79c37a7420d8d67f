package export_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func manyItems(n int) []*export.Item {
	var items []*export.Item
	for i := range n {
		items = append(items, item(fmt.Sprintf("owner__lib-%d", i), 1, "", textAttempt()))
	}
	return items
}

// TestOrder checks that rows are in order with several workers, and that exports are
// reproducible.
func TestOrder(t *testing.T) {
	var before string
	for range 2 {
		var list []export.AttemptSource
		for i, a := range attempts(manyItems(60)...) {
			read := a.Read
			a.Read = func() (*export.Item, error) {
				for range i % 7 { // makes some attempts slower than others
					runtime.Gosched()
				}
				return read()
			}
			list = append(list, a)
		}
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := export.Run(t.Context(), export.Config{Options: export.Options{Format: export.OpenAI}, Dir: dir, Workers: 8}, list); err != nil {
			t.Fatal(err)
		}
		for i, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
			if want := fmt.Sprintf("owner__lib-%d", i); row["instance_id"] != want {
				t.Fatalf("row %d is of %v", i, row["instance_id"])
			}
		}
		data, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
		require.NoError(t, err)
		if before != "" && before != string(data) {
			t.Error("another export of the same is another file")
		}
		before = string(data)
	}
}

// TestShards checks that files limited by rows and by size have the same rows.
func TestShards(t *testing.T) {
	dir, _ := run(t, export.Options{Format: export.OpenAI}, manyItems(7)...)
	whole, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
	require.NoError(t, err)
	size := int64(len(whole)) / 7
	for _, tt := range []struct {
		o    export.Options
		want []string
	}{
		{export.Options{ShardRows: 3}, []string{"train-00001-of-00003.jsonl 3", "train-00002-of-00003.jsonl 3", "train-00003-of-00003.jsonl 1"}},
		{export.Options{ShardRows: 7}, []string{"train-00001-of-00001.jsonl 7"}},
		{export.Options{ShardBytes: size*4 + 10}, []string{"train-00001-of-00002.jsonl 4", "train-00002-of-00002.jsonl 3"}},
		{export.Options{ShardRows: 6, ShardBytes: 1}, []string{
			"train-00001-of-00007.jsonl 1", "train-00002-of-00007.jsonl 1", "train-00003-of-00007.jsonl 1", "train-00004-of-00007.jsonl 1",
			"train-00005-of-00007.jsonl 1", "train-00006-of-00007.jsonl 1", "train-00007-of-00007.jsonl 1",
		}},
	} {
		tt.o.Format = export.OpenAI
		dir, r := run(t, tt.o, manyItems(7)...)
		var got []string
		var all []byte
		for _, f := range r.Files {
			got = append(got, fmt.Sprint(f.Name, " ", f.Rows))
			data, err := os.ReadFile(filepath.Join(dir, f.Name))
			require.NoError(t, err)
			if tt.o.ShardBytes > 1 && int64(len(data)) > tt.o.ShardBytes {
				t.Errorf("%s has %d bytes, allowed %d", f.Name, len(data), tt.o.ShardBytes)
			}
			all = append(all, data...)
		}
		assert.Equal(t, tt.want, got, "%+v", tt.o)
		assert.Equal(t, string(whole), string(all), "%+v: the rows are others", tt.o)
	}
}

// TestSplits checks splits, including one without rows.
func TestSplits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	rowsBySplit := map[string]int{}
	cfg := export.Config{
		Options: export.Options{Format: export.PromptCompletion}, Dir: dir, Splits: []string{"train", "val", "none"},
		Split: func(it *export.Item) string {
			if it.InstanceID == "owner__lib-1" {
				return "val"
			}
			return "train"
		},
		OnWritten: func(_ *export.Item, split string, n int) { rowsBySplit[split] += n },
	}
	r, err := export.Run(t.Context(), cfg, attempts(manyItems(3)...))
	require.NoError(t, err)
	for i, want := range []string{"train.jsonl 6", "val.jsonl 3", "none.jsonl 0"} {
		assert.Equal(t, want, fmt.Sprint(r.Files[i].Name, " ", r.Files[i].Rows), "file %d", i)
	}
	if rowsBySplit["train"] != 6 || rowsBySplit["val"] != 3 {
		t.Errorf("OnWritten called for %v", rowsBySplit)
	}
}

// TestFilter checks that attempts that Filter holds are written later, and that files do
// not contain text that Filter removed.
func TestFilter(t *testing.T) {
	for _, format := range []string{export.OpenAI, export.Traj} {
		dir := filepath.Join(t.TempDir(), "out")
		var held []*export.Item
		cfg := export.Config{
			Options: export.Options{Format: format}, Dir: dir, Workers: 4,
			Filter: func(it *export.Item) func() []*export.Item {
				it.Entries[2].Content = strings.ReplaceAll(it.Entries[2].Content, "I look.", "[out]")
				return func() []*export.Item {
					held = append(held, it)
					if len(held) < 3 {
						return nil
					}
					kept := held
					held = nil
					return kept
				}
			},
		}
		r, err := export.Run(t.Context(), cfg, attempts(manyItems(5)...))
		require.NoError(t, err)
		if r.Exported != 3 || r.FilteredOut != 2 {
			t.Errorf("exported %d, filtered out %d", r.Exported, r.FilteredOut)
		}
		data, err := os.ReadFile(filepath.Join(dir, r.Files[0].Name))
		require.NoError(t, err)
		if strings.Contains(string(data), "I look.") || !strings.Contains(string(data), "[out]") {
			t.Errorf("%s: the file has removed text", format)
		}
	}
	refused := errors.New("refused")
	dir := filepath.Join(t.TempDir(), "out")
	_, err := export.Run(t.Context(), export.Config{Options: export.Options{Format: export.OpenAI}, Dir: dir, FilterDone: func() error { return refused }}, attempts(manyItems(2)...))
	assert.ErrorIs(t, err, refused)
	checkEmpty(t, filepath.Dir(dir))
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left in %s: %v, %v", dir, entries, err)
	}
}

// TestReadErrors checks that an export continues after attempts that cannot be read.
func TestReadErrors(t *testing.T) {
	items := allAttempts()
	list := attempts(items[0], items[1])
	broken := export.AttemptSource{InstanceID: "owner__lib-1", Read: func() (*export.Item, error) { return nil, errors.New("torn") }}
	list = []export.AttemptSource{list[0], broken, list[1]}
	for _, format := range []string{export.OpenAI, export.DPO} {
		dir := filepath.Join(t.TempDir(), "out")
		r, err := export.Run(t.Context(), export.Config{Options: export.Options{Format: format}, Dir: dir}, list)
		if err != nil || r.Exported != 2 || len(r.ReadErrors) != 1 || r.FilteredOut != 0 {
			t.Errorf("%s: %+v, %v", format, r, err)
		}
	}
}

// TestSkipped checks the reasons for attempts that a format cannot represent.
func TestSkipped(t *testing.T) {
	user := func(text string) model.Message { return model.Message{Role: model.User, Content: text} }
	for _, tt := range []struct {
		name, format string
		s            *builder
		want         string
	}{
		{"no reply", export.OpenAI, newAttempt("m", false), "no reply to train on"},
		{"nothing but errors", export.OpenAI, newAttempt("m", false).reply("", "bad").message(trajectories.CauseFormatError, "no"), "no reply to train on"},
		{"two replies", export.OpenAI, newAttempt("m", false).reply("", "a").reply("", "b"), "two replies in a row"},
		{"late system", export.Axolotl, newAttempt("m", false).reply("", "a").add(trajectories.CauseObservation, model.Message{Role: model.System, Content: "s"}).reply("", "b"), "a system message in the middle of the conversation"},
		{"stray result", export.OpenAI, newAttempt("m", true).reply("", "", call("a", "ls")).result("b", "x").reply("", "", call("c", "ls")), "a tool result without a call"},
		{"bad arguments", export.OpenAI, newAttempt("m", true).reply("", "", model.ToolCall{ID: "a", Name: "bash", Arguments: "["}).result("a", "x"), "tool call arguments that are not a JSON object: use --tool-arguments text, or drop format errors"},
		{"bad arguments", export.Axolotl, newAttempt("m", true).reply("", "", model.ToolCall{ID: "a", Name: "bash", Arguments: "["}).result("a", "x"), "tool call arguments that are not a JSON object, which Axolotl does not accept"},
		{"user after tool", export.ShareGPT, newAttempt("m", true).reply("", "", call("a", "ls")).result("a", "x").add(trajectories.CausePrompt, user("and?")).reply("", "", call("b", "ls")), "human does not alternate, so LLaMA-Factory would skip the row"},
		{"no verdict", export.KTO, textAttempt(), "no verdict resolved or unresolved"},
	} {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			r, err := export.Run(t.Context(), export.Config{Options: export.Options{Format: tt.format}, Dir: dir}, attempts(item("a", 1, "", tt.s)))
			if !errors.Is(err, export.ErrNothingToExport) || r.Dropped[tt.want] != 1 {
				t.Errorf("error %v, dropped %v", err, r.Dropped)
			}
			checkEmpty(t, filepath.Dir(dir))
		})
	}
}

// TestPartlyRejected checks that a reply is exported if one command ran and another was
// rejected, and that it is not trained on if the format allows that.
func TestPartlyRejected(t *testing.T) {
	s := newAttempt("m", true).
		reply("", "", call("a", "ls"), call("b", "rm -rf /")).result("a", "x").
		add(trajectories.CauseRejection, model.Message{Role: model.Tool, ToolCallID: "b", Content: "no"}).
		reply("", "", call("c", "submit"))
	dir, _ := run(t, export.Options{Format: export.Axolotl}, item("a", 1, "", s))
	list, _ := rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"].([]any)
	require.Equal(t, 6, len(list), "messages %v", list)
	if m, _ := list[2].(map[string]any); m["train"] != false {
		t.Errorf("the reply is learned: %v", m)
	}
	_, r := run(t, export.Options{Format: export.OpenAI}, item("a", 1, "", s))
	assert.Equal(t, 1, len(r.Losses), "losses %v", r.Losses)
}

// TestContext checks that the row of a step has the prompt that was sent, and that the row
// of an attempt has the full history.
func TestContext(t *testing.T) {
	s := textAttempt()
	last := &s.t.Entries[len(s.t.Entries)-1]
	last.Context = &trajectories.PromptContext{Sent: []trajectories.ContextPart{
		{From: 2, To: 3}, {Message: &model.Message{Role: model.User, Content: "[much was here]"}}, {From: 8, To: 9},
	}}
	dir, _ := run(t, export.Options{Format: export.PromptCompletion}, item("a", 1, "", s))
	all := rows(t, filepath.Join(dir, "train.jsonl"))
	prompt, _ := all[len(all)-1]["prompt"].([]any)
	var got []string
	for _, v := range prompt {
		m, _ := v.(map[string]any)
		text, _ := m["content"].(string)
		got = append(got, text)
	}
	want := []string{"You work by bash.", "Mend <it> & say \"done\"\u2028ü.\n\n[much was here]", "```bash\nsed -i s/a/b/ a.py\n```", "<returncode>0</returncode>"}
	assert.Equal(t, want, got, "sent messages")
	_, r := run(t, export.Options{Format: export.OpenAI}, item("a", 1, "", s))
	assert.Equal(t, 1, len(r.Losses), "losses %v", r.Losses)
}

// TestImages checks that images are exported in OpenAI's format, and counted as a loss in
// formats without images.
func TestImages(t *testing.T) {
	s := newAttempt("m", false)
	s.t.Entries[1].Images = []model.Image{{MediaType: "image/png", Data: []byte("png")}}
	s.reply("", "a")
	dir, r := run(t, export.Options{Format: export.OpenAI}, item("a", 1, "", s))
	list, _ := rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"].([]any)
	m, _ := list[1].(map[string]any)
	if got := fmt.Sprint(m["content"]); !strings.Contains(got, "image_url:map[url:data:image/png;base64,cG5n]") || len(r.Losses) != 0 {
		t.Errorf("content %s, losses %v", got, r.Losses)
	}
	for _, o := range []export.Options{{Format: export.ShareGPT}, {Format: export.Axolotl}, {Format: export.OpenAI, Parquet: true}} {
		if _, r := run(t, o, item("a", 1, "", s)); len(r.Losses) != 1 {
			t.Errorf("%s: losses %v", o.Format, r.Losses)
		}
	}
}

// TestNoSteps checks that an attempt without a message has no ATIF document, which requires a step.
func TestNoSteps(t *testing.T) {
	failed := newAttempt("m", false).withOutcome("PullFailed")
	failed.t.Entries = nil
	dir, r := run(t, export.Options{Format: export.ATIF}, item("a", 1, "", failed), item("b", 1, "", textAttempt()))
	assert.Equal(t, map[string]int{"no message: ATIF requires at least one step": 1}, r.Dropped, "dropped")
	if _, err := os.Stat(filepath.Join(dir, "a")); r.Exported != 1 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%d exported, %v", r.Exported, err)
	}
}

// TestFolder checks that Run replaces only an earlier export, and that an incomplete export
// leaves no files.
func TestFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	cfg := export.Config{
		Options: export.Options{Format: export.OpenAI}, Dir: dir,
		WriteManifest: func(dir string, _ export.Report) error {
			return os.WriteFile(filepath.Join(dir, export.ManifestFile), []byte("{}"), 0o600)
		},
	}
	try := func(n int) error {
		_, err := export.Run(t.Context(), cfg, attempts(manyItems(n)...))
		return err
	}
	require.NoError(t, os.Mkdir(dir, 0o755))
	if err := try(1); err != nil {
		t.Fatalf("into an empty folder: %v", err)
	}
	assert.ErrorIs(t, try(2), export.ErrFolder, "into an export")
	cfg.Overwrite = true
	if err := try(2); err != nil || len(rows(t, filepath.Join(dir, "train.jsonl"))) != 2 {
		t.Errorf("in place of an export: %v", err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, export.ManifestFile)))
	assert.ErrorIs(t, try(1), export.ErrFolder, "in place of something else")
	cfg.Dir = filepath.Join(parent, "stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	list := attempts(manyItems(50)...)
	list[20].Read = func() (*export.Item, error) { cancel(stop); return nil, ctx.Err() }
	if _, err := export.Run(ctx, cfg, list); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 {
		t.Errorf("leftover files: %v, %v", entries, err)
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		o    export.Options
		want string
	}{
		{export.Options{Format: "xml"}, `--format: "xml" is not one of openai, sharegpt`},
		{export.Options{Format: "openai", Reasoning: "half"}, `--reasoning: "half" is not one of keep, drop, inline`},
		{export.Options{Format: "sharegpt", FormatErrors: "mask"}, "--format-errors mask: sharegpt cannot exclude replies from training"},
		{export.Options{Format: "traj", Parquet: true}, "--parquet: not available for traj"},
		{export.Options{Format: "preds", ShardRows: 2}, "not available for preds"},
		{export.Options{Format: "openai", ShardRows: -2}, "at least 1"},
		{export.Options{Format: "axolotl", ToolArguments: "object"}, "not available for axolotl"},
	} {
		if _, err := tt.o.Validate(); !errors.Is(err, export.ErrOptions) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.o, err, tt.want)
		}
	}
}

func TestSelect(t *testing.T) {
	attempts := []export.AttemptInfo{
		{Number: 1, Repetition: 1, Steps: 1}, // provider failure
		{Number: 2, Repetition: 2, IsResult: true, Steps: 9, Cost: 1},
		{Number: 3, Repetition: 1, IsResult: true, Steps: 5, Cost: 3},
		{Number: 4, Repetition: 3, IsResult: true, Resolved: true, Steps: 8, Cost: 4},
		{Number: 5, Repetition: 4, IsResult: true, Resolved: true, Steps: 7, Cost: 9},
	}
	for rule, want := range map[export.SelectRule][]int{
		export.SelectAll: {3, 2, 4, 5}, export.SelectFirst: {3}, export.SelectEvery: {1, 2, 3, 4, 5}, export.SelectResolved: {4}, export.SelectShortest: {5}, export.SelectCheapest: {4},
	} {
		var got []int
		for _, i := range rule.Select(attempts, "a", 0) {
			got = append(got, attempts[i].Number)
		}
		assert.Equal(t, want, got, "%s", rule)
	}
	if got := export.SelectCheapest.Select(attempts[:3], "a", 0); len(got) != 1 || got[0] != 1 {
		t.Errorf("without a resolved one: %v", got)
	}
	assert.Equal(t, 0, len(export.SelectResolved.Select(attempts[:3], "a", 0)), "resolved, and none")
	seen := map[int]bool{}
	for seed := range uint64(50) {
		a, b := export.SelectRandom.Select(attempts, "a", seed), export.SelectRandom.Select(attempts, "a", seed)
		if !cmp.Equal(a, b) || len(a) != 1 || a[0] == 0 {
			t.Fatalf("seed %d: %v, then %v", seed, a, b)
		}
		seen[a[0]] = true
	}
	assert.Equal(t, 4, len(seen), "fifty seeds pick %v", seen)
}
