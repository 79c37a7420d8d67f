package webtest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

const (
	// AllID is the instance of HostileRun with all texts in one attempt.
	AllID = "all__together-1"
	// NumbersID is the instance with impossible numbers and times.
	NumbersID = "all__numbers-1"
	// MaxLarge bounds an output and the patch, in bytes. It is more than a page shows.
	MaxLarge = 300 << 10
	// maxText bounds the other texts. The limits keep the run small enough for many tests.
	maxText = 24 << 10
	// maxError bounds errors, and the texts of AllID.
	maxError = 8 << 10
)

// ID returns the id of the instance of HostileRun with the i-th of Strings.
func ID(i int) string { return fmt.Sprintf("hostile__text-%d", i+1) }

// HostileRun writes a run folder in which each of Strings is prompt, reply, command, output, error
// of a call and of a command, patch, name of a test, log, flag and reason, in an instance of its
// own (see ID). A second attempt of the instance has the text as model name, exit status, error
// and hint. AllID has all texts together. The ids of further instances are hostile.
func HostileRun(tb testing.TB, dir string) {
	tb.Helper()
	valid, invalid := IDs()
	write(tb, dir, Strings(), valid, invalid)
}

// HarmlessRun writes a run folder of the same shape with plain text.
func HarmlessRun(tb testing.TB, dir string) {
	tb.Helper()
	texts := Strings()
	for i, h := range texts {
		texts[i] = Hostile{Name: "plain", Text: fmt.Sprintf("plain text %d", i+1)}
		if h.isPatch() {
			texts[i] = Hostile{Name: h.Name, Text: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}
		}
	}
	valid, invalid := IDs()
	for i := range valid {
		valid[i] = fmt.Sprintf("plain__id-%d", i+1)
	}
	for i := range invalid {
		invalid[i] = fmt.Sprintf("plain__result-%d", i+1)
	}
	write(tb, dir, texts, valid, invalid)
}

func write(tb testing.TB, dir string, texts []Hostile, ids, resultIDs []string) {
	tb.Helper()
	r := create(tb, dir, texts[0].Text, len(texts)+len(ids)+2, 2)
	for i, h := range texts {
		r.addHostile(ID(i), h)
	}
	for i, id := range ids {
		j := newJournal(tb, modelName)
		j.prompts("system", "task")
		j.step("I look.", "ls", "x.py\n")
		patch := patchOf(texts[i%5])
		j.end(trajectories.Submitted, "Submitted", patch)
		r.addVerdict(verdict{id: id, patch: patch, class: verdicts.Resolved})
		r.add(id, j)
	}
	r.addNotes(texts)
	r.addTogether(texts)
	r.addNumbers()
	r.check(r.importer.Close())
	r.addResults(resultIDs)
	r.check(r.folder.Close())
}

func (r *runFolder) addHostile(id string, h Hostile) {
	s, failure, patch := text.Clip(h.Text, maxText), text.Clip(h.Text, maxError), text.Clip(patchOf(h), MaxLarge)
	j := newJournal(r.tb, modelName)
	j.prompts(s, s)
	j.add(trajectories.TypeCall, trajectories.Call{Error: failure, Start: j.now(), RequestCount: 1})
	j.step(s, s, s, func(x *trajectories.Execution) { x.ExitCode, x.Exception = 1, failure })
	j.step("```\n"+s+"\n```\n`"+s+"`", "echo '"+s+"'", "before\n"+text.Clip(h.Text, MaxLarge)+"\nafter\n")
	j.end(trajectories.Submitted, "Submitted", patch, func(o *trajectories.Outcome) { o.Warnings = []string{failure} })
	r.addVerdict(hostileVerdict(id, patch, s, failure))
	r.add(id, j)

	short := text.Clip(h.Text, maxShort)
	j = newJournal(r.tb, short)
	j.prompts("system", "task")
	j.step("I try.", "true", "")
	j.end(trajectories.Provider, short, "", func(o *trajectories.Outcome) {
		o.Error, o.Hint, o.PartialPatch = failure, short, trajectories.Bytes(text.Clip(patch, maxError))
	})
	r.add(id, j)
}

// addTogether adds an attempt with a step for each text.
func (r *runFolder) addTogether(texts []Hostile) {
	j := newJournal(r.tb, modelName)
	j.prompts("system", "task")
	var patch, log strings.Builder
	var names []string
	for _, h := range texts {
		s := text.Clip(h.Text, maxError)
		j.step(s, s, s)
		patch.WriteString(strings.TrimSuffix(text.Clip(patchOf(h), maxError), "\n") + "\n")
		log.WriteString(s + "\n")
		if h.isShort() {
			names = append(names, h.Text)
		}
	}
	j.end(trajectories.Submitted, "Submitted", patch.String())
	r.addVerdict(hostileVerdict(AllID, patch.String(), log.String(), names...))
	r.add(AllID, j)
}

// hostileVerdict returns a verdict with hostile names of tests: some of them twice, and an empty one.
func hostileVerdict(id, patch, log string, names ...string) verdict {
	v := verdict{id: id, patch: patch, class: verdicts.Unresolved, reason: text.Clip(names[0], maxShort), log: log}
	for _, name := range names {
		name = text.Clip(name, 10_000)
		v.failed.FailToPass.Failure = append(v.failed.FailToPass.Failure, name, name, "")
		v.failed.PassToPass.Failure = append(v.failed.PassToPass.Failure, name)
		v.failed.PassToPass.Success = append(v.failed.PassToPass.Success, name+" passes")
		short := text.Clip(name, maxShort)
		v.flags = append(v.flags, tampering.Finding{Flag: tampering.Flag(short), File: short, Detail: short})
	}
	return v
}

// addNotes gives the instances labels, and the texts as notes, as the author of a run can do by hand.
func (r *runFolder) addNotes(texts []Hostile) {
	words, notes := map[string][]string{}, map[string]string{}
	for i, h := range texts {
		words[ID(i)], notes[ID(i)] = []string{"flaky"}, text.Clip(h.Text, maxShort)
	}
	data, err := text.JSON(map[string]any{"format": labels.Format, "labels": words, "notes": notes})
	r.check(err)
	r.check(r.folder.Root.WriteFile(filepath.Join(r.dir, datasets.LabelsFile), data))
}

// addNumbers adds an attempt with numbers and times that no run has.
func (r *runFolder) addNumbers() {
	j := newJournal(r.tb, modelName)
	j.prompts("system", "task")
	j.step("I count.", "seq 1", "1\n", func(x *trajectories.Execution) {
		x.ExitCode, x.Duration, x.Bytes, x.Start = -1<<31, trajectories.Seconds(-time.Hour), -1, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	})
	j.add(trajectories.TypeCall, trajectories.Call{
		Cost: -1, Usage: model.Usage{Prompt: -5, Completion: 1 << 62}, Start: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	})
	j.end(trajectories.Limit, "LimitsExceeded", patchOf(Hostile{Text: "x"}), func(o *trajectories.Outcome) {
		o.Cost, o.Steps, o.Usage = -1, -3, model.Usage{Prompt: -5, Completion: 1 << 62}
		o.Start, o.End = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	})
	r.add(NumbersID, j)
}

// addResults adds results without journals to results.json, as the author of a run can do by hand.
func (r *runFolder) addResults(ids []string) {
	path := filepath.Join(r.dir, datasets.ResultsFile)
	data, err := r.folder.Root.ReadFile(path, 1<<30)
	r.check(err)
	var results runs.Results
	r.check(json.Unmarshal(data, &results))
	class := string(verdicts.Unresolved)
	for _, id := range ids {
		results.Instances[id] = runs.Result{
			Class: trajectories.Submitted, ExitStatus: "Submitted", Verdict: &class, Attempt: 1, Attempts: 1, Steps: 1, PatchBytes: 5, Start: began, End: began,
		}
	}
	data, err = text.JSON(results)
	r.check(err)
	r.check(r.folder.Root.WriteFile(path, data))
}

// patchOf returns the text as a patch, or in one.
func patchOf(h Hostile) string {
	if h.isPatch() {
		return h.Text
	}
	name := "x.py"
	if h.isShort() && !strings.Contains(h.Text, "\n") {
		name = h.Text
	}
	lines := strings.Split(h.Text, "\n")
	return fmt.Sprintf("diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -0,0 +1,%d @@\n+%s\n", name, name, name, name, len(lines), strings.Join(lines, "\n+"))
}
