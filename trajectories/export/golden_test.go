package export_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/trajectories/export"
)

// TestGolden compares the indented rows of every format with a golden file.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    export.Options
	}{
		{"openai", export.Options{Format: export.OpenAI}},
		{"openai-inline-text", export.Options{Format: export.OpenAI, Reasoning: export.ReasoningInline, ToolArguments: export.ArgumentsText}},
		{"sharegpt", export.Options{Format: export.ShareGPT}},
		{"sharegpt-drop", export.Options{Format: export.ShareGPT, Reasoning: export.ReasoningDrop}},
		{"axolotl", export.Options{Format: export.Axolotl}},
		{"axolotl-mask", export.Options{Format: export.Axolotl, FormatErrors: export.FormatErrorsMask}},
		{"prompt-completion", export.Options{Format: export.PromptCompletion}},
		{"prompt-completion-mask", export.Options{Format: export.PromptCompletion, FormatErrors: export.FormatErrorsMask, ToolArguments: export.ArgumentsText}},
		{"kto", export.Options{Format: export.KTO}},
		{"dpo", export.Options{Format: export.DPO}},
		{"dpo-rest", export.Options{Format: export.DPO, Completion: export.CompletionRest}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := run(t, tt.o, allAttempts()...)
			data, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var indented bytes.Buffer
			for line := range bytes.Lines(data) {
				if err := json.Indent(&indented, line, "", " "); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, tt.name+".golden", indented.Bytes())
		})
	}
}

func TestDatasetInfo(t *testing.T) {
	dir, _ := run(t, export.Options{Format: export.ShareGPT}, allAttempts()...)
	data, err := os.ReadFile(filepath.Join(dir, "dataset_info.json"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "dataset_info.golden", data)
}

// TestFiles compares the files of formats without rows with golden files.
func TestFiles(t *testing.T) {
	for _, tt := range []struct {
		format, golden, want string
		s                    *builder
	}{
		{export.Traj, "traj", "owner__lib-1/owner__lib-1.traj.json", textAttempt()},
		{export.Traj, "traj-calls", "owner__lib-1/owner__lib-1.traj.json", callAttempt()},
		{export.ATIF, "atif", "owner__lib-1/owner__lib-1.json", textAttempt()},
		{export.ATIF, "atif-calls", "owner__lib-1/owner__lib-1.json", callAttempt()},
		{export.Preds, "preds", "preds.json", textAttempt()},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			dir, r := run(t, export.Options{Format: tt.format}, item("owner__lib-1", 1, "resolved", tt.s.withExecutions()))
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
