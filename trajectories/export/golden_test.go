package export_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/trajectories/export"
)

// TestGolden shows a row of every format as a person may read it.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    export.Options
	}{
		{"openai", export.Options{Format: export.OpenAI}},
		{"openai-inline-text", export.Options{Format: export.OpenAI, Reasoning: export.Inline, Arguments: export.Text}},
		{"sharegpt", export.Options{Format: export.ShareGPT}},
		{"sharegpt-drop", export.Options{Format: export.ShareGPT, Reasoning: export.Drop}},
		{"axolotl", export.Options{Format: export.Axolotl}},
		{"axolotl-mask", export.Options{Format: export.Axolotl, Faults: export.MaskFaults}},
		{"prompt-completion", export.Options{Format: export.PromptCompletion}},
		{"prompt-completion-mask", export.Options{Format: export.PromptCompletion, Faults: export.MaskFaults, Arguments: export.Text}},
		{"kto", export.Options{Format: export.KTO}},
		{"dpo", export.Options{Format: export.DPO}},
		{"dpo-rest", export.Options{Format: export.DPO, Completion: export.Rest}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := run(t, tt.o, everything()...)
			data, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var shown bytes.Buffer
			for line := range bytes.Lines(data) {
				if err := json.Indent(&shown, line, "", " "); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, tt.name+".golden", shown.Bytes())
		})
	}
}

func TestDatasetInfo(t *testing.T) {
	dir, _ := run(t, export.Options{Format: export.ShareGPT}, everything()...)
	data, err := os.ReadFile(filepath.Join(dir, "dataset_info.json"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "dataset_info.golden", data)
}

// TestFiles are the formats with files of their own, of attempts as an agent
// leaves them: with what was run, when, and by which configuration.
func TestFiles(t *testing.T) {
	for _, tt := range []struct {
		format, golden, want string
		s                    *script
	}{
		{export.Traj, "traj", "owner__lib-1/owner__lib-1.traj.json", textual()},
		{export.Traj, "traj-calls", "owner__lib-1/owner__lib-1.traj.json", calling()},
		{export.ATIF, "atif", "owner__lib-1/owner__lib-1.json", textual()},
		{export.ATIF, "atif-calls", "owner__lib-1/owner__lib-1.json", calling()},
		{export.Preds, "preds", "preds.json", textual()},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			dir, r := run(t, export.Options{Format: tt.format}, item("owner__lib-1", 1, "resolved", tt.s.lived()))
			if len(r.Files) != 1 || r.Files[0].Name != tt.want {
				t.Fatalf("files %+v, want %s", r.Files, tt.want)
			}
			data, err := os.ReadFile(filepath.Join(dir, tt.want))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.golden+".golden", data)
		})
	}
}
