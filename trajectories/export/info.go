package export

import (
	"fmt"
	"path/filepath"
	"strings"
)

// describe adds what a trainer wants beside the rows, and the manifest.
func (e *exporter) describe() error {
	if e.form.name == ShareGPT {
		path := filepath.Join(e.out.tmp, "dataset_info.json")
		if err := writeJSON(path, datasetInfo(e.report.Files)); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Base(path), err)
		}
	}
	if e.cfg.Manifest == nil {
		return nil
	}
	return e.cfg.Manifest(e.out.tmp, e.report)
}

// llamaDataset is an entry of LLaMA-Factory's dataset_info.json.
type llamaDataset struct {
	File    string `json:"file_name"`
	Form    string `json:"formatting"`
	Columns struct {
		Messages string `json:"messages"`
		System   string `json:"system"`
		Tools    string `json:"tools"`
	} `json:"columns"`
	Tags struct {
		Role        string `json:"role_tag"`
		Content     string `json:"content_tag"`
		User        string `json:"user_tag"`
		Assistant   string `json:"assistant_tag"`
		Observation string `json:"observation_tag"`
		Function    string `json:"function_tag"`
	} `json:"tags"`
}

// datasetInfo names the files for LLaMA-Factory: mini_train, mini_val, and so
// on.
func datasetInfo(files []File) map[string]llamaDataset {
	all := map[string]llamaDataset{}
	for _, f := range files {
		d := llamaDataset{File: f.Name, Form: "sharegpt"}
		d.Columns.Messages, d.Columns.System, d.Columns.Tools = "conversations", "system", "tools"
		d.Tags.Role, d.Tags.Content = "from", "value"
		d.Tags.User, d.Tags.Assistant = "human", "gpt"
		d.Tags.Observation, d.Tags.Function = "observation", "function_call"
		name := strings.TrimSuffix(strings.TrimSuffix(f.Name, ".jsonl"), ".parquet")
		all["mini_"+strings.ReplaceAll(name, "-", "_")] = d
	}
	return all
}
