package web

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The page of an attempt says how prompts continue the tokens before, if it has tokens.
func TestTokenLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 2, 3)
	journals, err := filepath.Glob(filepath.Join(dir, "*", "attempts", "1", "journal.jsonl"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("%v, %v", journals, err)
	}
	addTokensTo(t, journals[0], []model.Tokens{
		{Prompt: []int32{1}, Completion: []int32{2}}, {Prompt: []int32{1, 2, 3}, Completion: []int32{4}}, {Prompt: []int32{1, 2, 3, 5}, Completion: []int32{6}},
	})
	s := serverOf(t, "", dir)
	id := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(journals[0]))))
	page := ask(s, "GET", "/r/run/i/"+id+"/a/1").Body.String()
	if !strings.Contains(page, "Tokens: 1 of 2 prompts continues the tokens before; first difference at <a") || !strings.Contains(page, `data-step="3">step 3</a></p>`) {
		t.Errorf("no line about tokens in %.3000s", page)
	}
	if page := ask(s, "GET", "/r/run/i/"+id+"/a/2").Body.String(); strings.Contains(page, "Tokens:") || !strings.Contains(page, "attempt 2") {
		t.Errorf("an attempt without tokens: %.3000s", page)
	}
}

// addTokensTo adds tokens to the calls of a journal.
func addTokensTo(t *testing.T, path string, tokens []model.Tokens) {
	t.Helper()
	recorded := trajectories.Attempt{}
	var records []trajectories.Record
	for r, err := range trajectories.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := trajectories.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		switch d := data.(type) {
		case trajectories.Header:
			d.Config = json.RawMessage(`{"model":{"tokens":true}}`)
			data = d
		case trajectories.Call:
			d.Tokens, tokens = recorded.RecordTokens(&tokens[0]), tokens[1:]
			data = d
		}
		recorded.AddData(r, data)
		if r.Data, err = trajectories.EncodeJSON(data); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	all := func(yield func(trajectories.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
	if err := trajectories.WriteJournal(path, all); err != nil {
		t.Fatal(err)
	}
}
