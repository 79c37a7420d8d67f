package webtest

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

const (
	modelName = "maker/model"
	runID     = "eval"
)

// verdict describes the verdict on an attempt and the files of its test run.
type verdict struct {
	id, patch  string
	repetition int // 0 for the first
	class      verdicts.Class
	reason     string
	failed     grade.TestsStatus
	log        string // "" for no files of a test run
	flags      []tampering.Finding
}

// addVerdict writes a verdict as an evaluation does. It writes none on an id that the official
// harness cannot have as the name of a folder.
func (r *runFolder) addVerdict(v verdict) {
	r.tb.Helper()
	run := runID
	if v.repetition > 1 {
		run = fmt.Sprintf("%s-sample-%d", runID, v.repetition)
	}
	layout, err := grade.NewLayout(r.dir, run)
	r.check(err)
	files, err := layout.Files(modelName, v.id)
	if err != nil {
		return
	}
	patch := string([]rune(v.patch)) // as in preds.json
	record := verdicts.Record{
		Format: verdicts.Format, Instance: v.id, Model: modelName, RunID: run, Repetition: v.repetition, Flags: v.flags,
		Basis: verdicts.Basis{PatchSHA256: verdicts.PatchHash([]byte(patch)), PatchBytes: len(patch)},
	}
	record.Basis.Key = record.Basis.CacheKey()
	test := verdicts.TestRun{
		Purpose: verdicts.ForVerdict, Class: v.class, Reason: v.reason, Hint: v.reason, FailureReason: v.reason, Start: began, Seconds: 12,
		Passed: len(v.failed.PassToPass.Success) + len(v.failed.FailToPass.Success), Failed: len(v.failed.PassToPass.Failure) + len(v.failed.FailToPass.Failure),
	}
	if v.log != "" {
		dir, err := filepath.Rel(r.dir, files.Dir)
		r.check(err)
		test.Dir, test.LogBytes = filepath.ToSlash(dir), int64(len(v.log))
		report := grade.Report{PatchExists: true, Applied: true, Resolved: v.class == verdicts.Resolved, Tests: &v.failed}
		for path, content := range map[string]string{
			files.Report: string(report.JSON(v.id)), files.TestOutput: v.log, files.Log: v.log, files.Patch: v.patch, files.Script: "true\n",
		} {
			r.check(r.folder.Root.WriteFile(path, []byte(content)))
		}
	}
	record.Runs = []verdicts.TestRun{test}
	record.DeriveClass()
	path := filepath.Join(r.dir, verdicts.DirName, run, strings.ReplaceAll(modelName, "/", "__"), v.id+".json")
	r.check(verdicts.Write(r.folder.Root, path, record))
}
