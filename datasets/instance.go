// Package datasets holds the rows of benchmarks: what an instance is, where
// rows come from (files of parquet and of JSON, the embedded demo set), and which
// of them a run takes. It imports nothing of mini.
//
//	src, err := datasets.Local("verified.jsonl.gz", "")
//	set, err := datasets.Load(ctx, []datasets.Source{src}, datasets.Selection{Slice: "0:20"})
package datasets

import (
	"encoding/json"
	"strings"
)

// Instance is one row of a benchmark of the SWE-bench family. The fields are
// the columns of the official sets (github.com/SWE-bench/SWE-bench, release 5).
type Instance struct {
	ID               string `json:"instance_id"`
	Repo             string `json:"repo"`
	BaseCommit       string `json:"base_commit"`
	ProblemStatement string `json:"problem_statement"`
	Hints            string `json:"hints_text"`
	Version          string `json:"version"`
	CreatedAt        string `json:"created_at"`
	Patch            string `json:"patch"`      // the reference solution ("gold")
	TestPatch        string `json:"test_patch"` // brings the tests of the verdict
	// FailToPass and PassToPass are test names exactly as in the row: never
	// trimmed, duplicates kept.
	FailToPass []string `json:"FAIL_TO_PASS"`
	PassToPass []string `json:"PASS_TO_PASS"`
	// Image is the row's own (image, image_name or docker_image); empty when
	// it has none. See ImageName.
	Image      string `json:"image"`
	EvalScript string `json:"eval_script"`
	LogParser  string `json:"log_parser"`
	EvalType   string `json:"eval_type"` // "pass_and_fail" or "fail_only"
	// Row is the row as it was read, with every column.
	Row map[string]json.RawMessage `json:"-"`
}

// ImageName is the container image of the instance: the row's own, else the
// name the official harness gives it.
func (in Instance) ImageName() string {
	if in.Image != "" {
		return in.Image
	}
	return OfficialImage(in.ID)
}

// OfficialImage is the name of the prebuilt image of an instance: lower case,
// with "__" written "_1776_" (a Docker Hub name cannot have two underscores in
// a row).
func OfficialImage(id string) string {
	name := strings.ReplaceAll(id, "__", "_1776_")
	return strings.ToLower("swebench/sweb.eval.x86_64." + name + ":latest")
}
