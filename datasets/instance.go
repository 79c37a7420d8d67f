// Package datasets reads benchmark datasets: instances, sources (parquet and JSON files,
// the embedded demo set), and the selection of rows for a run. It does not download;
// see package hub.
//
//	src, err := datasets.Local("verified.jsonl.gz", "")
//	set, err := datasets.Load(ctx, []datasets.Source{src}, datasets.Selection{Slice: "0:20"}.Apply)
package datasets

import (
	"encoding/json"
	"strings"
)

// Instance is one row of a benchmark of the SWE-bench family. The fields are the columns
// of the official datasets (github.com/SWE-bench/SWE-bench, release 5).
type Instance struct {
	ID               string `json:"instance_id"`
	Repo             string `json:"repo"`
	BaseCommit       string `json:"base_commit"`
	ProblemStatement string `json:"problem_statement"`
	Hints            string `json:"hints_text"`
	Version          string `json:"version"`
	CreatedAt        string `json:"created_at"`
	Patch            string `json:"patch"`      // the gold patch
	TestPatch        string `json:"test_patch"` // adds the tests of the evaluation
	// FailToPass and PassToPass are test names exactly as in the row: not trimmed,
	// with duplicates.
	FailToPass []string `json:"FAIL_TO_PASS"`
	PassToPass []string `json:"PASS_TO_PASS"`
	// Image is the image in the row (image, image_name or docker_image), or empty. See
	// ImageName.
	Image      string `json:"image"`
	EvalScript string `json:"eval_script"`
	LogParser  string `json:"log_parser"`
	EvalType   string `json:"eval_type"` // "pass_and_fail" or "fail_only"
	// TaskDir is the folder of a task in Harbor's form; "" for other rows. It is not a column,
	// because the rows of a dataset must not name folders of this machine.
	TaskDir string `json:"-"`
	// Row is the raw row with all columns.
	Row map[string]json.RawMessage `json:"-"`
}

// ImageName returns the container image of the instance: the image in the row, or else the
// official image.
func (in Instance) ImageName() string {
	if in.Image != "" {
		return in.Image
	}
	return OfficialImage(in.ID)
}

// OfficialImage returns the name of the official prebuilt image of an instance, in lower
// case. "__" is written "_1776_", because a Docker Hub name cannot contain two consecutive
// underscores.
func OfficialImage(id string) string {
	name := strings.ReplaceAll(id, "__", "_1776_")
	return strings.ToLower("swebench/sweb.eval.x86_64." + name + ":latest")
}
