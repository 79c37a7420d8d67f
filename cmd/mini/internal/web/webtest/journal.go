package webtest

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// began is the start of all attempts.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// journal collects the records of an attempt, with one second between them.
type journal struct {
	tb      testing.TB
	records []trajectories.Record
	steps   int
}

func newJournal(tb testing.TB, modelName string) *journal {
	tb.Helper()
	j := &journal{tb: tb}
	j.add(trajectories.TypeHeader, trajectories.Header{
		Format: trajectories.Format, ModelClass: "openai", ModelName: modelName, EnvironmentClass: "docker", Image: "example/image:latest",
	})
	return j
}

func (j *journal) now() time.Time { return began.Add(time.Duration(len(j.records)) * time.Second) }

func (j *journal) add(kind trajectories.Type, data any) {
	j.tb.Helper()
	raw, err := trajectories.EncodeJSON(data)
	if err != nil {
		j.tb.Fatal(err)
	}
	n := len(j.records)
	j.records = append(j.records, trajectories.Record{ID: n + 1, Parent: n, Type: kind, Time: j.now(), Data: raw})
}

func (j *journal) message(role model.Role, cause trajectories.Cause, content string, actions ...string) {
	j.tb.Helper()
	j.add(trajectories.TypeMessage, trajectories.Message{
		Message: model.Message{Role: role, Content: content}, Cause: cause, Actions: actions,
	})
}

// prompts adds the prompts at the start of an attempt.
func (j *journal) prompts(system, task string) {
	j.tb.Helper()
	j.message(model.System, trajectories.CausePrompt, system)
	j.message(model.User, trajectories.CausePrompt, task)
}

// step adds a step with one command.
func (j *journal) step(reply, command, output string, change ...func(*trajectories.Execution)) {
	j.tb.Helper()
	j.steps++
	j.add(trajectories.TypeCall, trajectories.Call{
		Usage: model.Usage{Prompt: 1000 + int64(j.steps)*100, Completion: 100, CacheRead: 900}, Cost: 0.01, RequestCount: 1,
		Start: j.now(), Duration: trajectories.Seconds(700 * time.Millisecond),
	})
	j.message(model.Assistant, trajectories.CauseReply, reply, command)
	x := trajectories.Execution{
		Command: command, Output: trajectories.Bytes(output), Bytes: int64(len(output)), Chars: int64(len([]rune(output))),
		Start: j.now(), Duration: trajectories.Seconds(200 * time.Millisecond),
	}
	for _, f := range change {
		f(&x)
	}
	j.add(trajectories.TypeExecution, x)
	const maxObservation = 10_000
	j.message(model.User, trajectories.CauseObservation, text.Clip(strings.ToValidUTF8(output, "\ufffd"), maxObservation))
}

// end adds the outcome.
func (j *journal) end(class trajectories.Class, status, patch string, change ...func(*trajectories.Outcome)) {
	j.tb.Helper()
	out := trajectories.Outcome{
		Class: class, ExitStatus: status, Submission: trajectories.Bytes(patch), Steps: j.steps,
		Usage: model.Usage{Prompt: int64(j.steps) * 1100, Completion: int64(j.steps) * 100, CacheRead: int64(j.steps) * 900},
		Cost:  model.Cost(j.steps) / 100, Start: began, End: j.now(),
	}
	for _, f := range change {
		f(&out)
	}
	j.add(trajectories.TypeOutcome, out)
}

func (j *journal) all() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range j.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// runFolder is a run folder that is being written.
type runFolder struct {
	tb       testing.TB
	folder   *runner.Folder
	importer *runner.Importer
	dir      string
}

// create makes a run folder with its run.json. close must be called.
func create(tb testing.TB, dir, modelName string, instances, attempts int) *runFolder {
	tb.Helper()
	folder, err := runner.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	r := &runFolder{tb: tb, folder: folder, dir: dir}
	_, err = folder.StartSession(runs.Manifest{
		MiniVersion: "v1", Model: runs.ClassAndName{Class: "openai", Name: modelName}, Environment: runs.ClassAndName{Class: "docker"},
		Dataset: runs.Dataset{Name: "generated", Rows: instances, Selected: instances},
	}, fmt.Appendf(nil, "model:\n  model_name: %q\n", modelName))
	r.check(err)
	r.check(folder.EndSession(runs.Summary{Instances: instances, Repetitions: attempts}))
	r.open()
	return r
}

// open reads the attempts of the folder, and updates its results.
func (r *runFolder) open() {
	r.tb.Helper()
	var err error
	r.importer, err = r.folder.Importer("v1")
	r.check(err)
}

// add adds an attempt as a repetition of its own and returns its number.
func (r *runFolder) add(id string, j *journal) int {
	r.tb.Helper()
	a, err := r.importer.Add(id, runner.ImportSource{}, j.all())
	r.check(err)
	return a.Attempt
}

func (r *runFolder) close() {
	r.tb.Helper()
	r.check(r.importer.Close())
	r.check(r.folder.Close())
}

func (r *runFolder) check(err error) {
	r.tb.Helper()
	if err != nil {
		r.tb.Fatal(err)
	}
}
