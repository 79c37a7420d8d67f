package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
	"github.com/minibench/mini/trajectories/export"
)

// exportedRun is what a manifest says of an input.
type exportedRun struct {
	Path     string `json:"path"`
	Dataset  string `json:"dataset,omitempty"`
	Attempts int    `json:"attempts"` // that the rule picked
}

// exportSource finds the attempts that are to be exported.
type exportSource struct {
	options  *exportOptions
	runs     []exportedRun
	attempts []exportAttempt
	tools    []json.RawMessage // what attempts were offered, each set once
	unread   []string
	seen     map[string]bool
}

// exportAttempt is an attempt with its place among the inputs.
type exportAttempt struct {
	export.Attempt
	input int
}

// add takes one argument: the folder of a run, or a file.
func (src *exportSource) add(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return before(err)
	}
	if src.seen[abs] {
		return usagef("%s is given twice", path)
	}
	if src.seen == nil {
		src.seen = map[string]bool{}
	}
	src.seen[abs] = true
	info, err := os.Stat(path)
	if err != nil {
		return noRun(path, err)
	}
	src.runs = append(src.runs, exportedRun{Path: path})
	if !info.IsDir() {
		return src.addFile(path)
	}
	run, err := runner.ReadRun(path)
	if err != nil {
		return noRun(path, err)
	}
	src.unread = append(src.unread, run.Unread...)
	this := &src.runs[len(src.runs)-1]
	this.Dataset = run.Manifest.Dataset.Name
	for _, in := range run.Instances {
		this.Attempts += src.addInstance(run, in)
	}
	return nil
}

// addInstance takes the attempts that the rule picks.
func (src *exportSource) addInstance(run *runner.Run, in runner.Instance) int {
	var tries []export.Try
	var known []runner.Attempt
	found := verdicts.OfInstance(run.Dir, in.ID, ownVerdict)
	for _, a := range in.Attempts {
		h, err := firstOf(a.Journal)
		if err != nil {
			src.unread = append(src.unread, err.Error())
			continue
		}
		sum := a.Tally()
		t := export.Try{Number: a.Number, Sample: a.Sample, Steps: sum.Steps, Cost: sum.Cost}
		t.Counts = a.Result != nil && a.Result.Class.Counts()
		if t.Counts && src.options.rule.Judges() {
			if out, ok, err := trajectories.Last(a.Journal); err == nil && ok {
				t.Resolved = judged(h, out, in, a.Number, found).Class == verdicts.Resolved
			}
		}
		if err := src.offered(h); err != nil {
			src.unread = append(src.unread, fmt.Sprintf("%s: %v", a.Journal, err))
			continue
		}
		tries, known = append(tries, t), append(known, a)
	}
	picked := src.options.rule.Pick(tries, in.ID, src.options.sieve.cfg.Seed)
	for _, i := range picked {
		a, sample := known[i], tries[i].Sample
		src.attempts = append(src.attempts, exportAttempt{export.Attempt{
			InstanceID: in.ID, Number: a.Number, Several: len(picked) > 1, Folder: filepath.Base(run.Dir),
			Read: func() (*export.Item, error) { return src.read(run, in, a, sample, found) },
		}, len(src.runs) - 1})
	}
	return len(picked)
}

func (src *exportSource) read(run *runner.Run, in runner.Instance, a runner.Attempt, sample int, found []verdicts.Verdict) (*export.Item, error) {
	t, sum, err := export.ReadJournal(a.Journal, src.options.Format == export.ATIF || src.options.Format == export.Traj)
	if err != nil {
		return nil, err
	}
	it := &export.Item{
		Transcript: t, Journal: a.Journal, SHA256: sum,
		InstanceID: in.ID, Attempt: a.Number, Sample: sample, Repo: repoOf(in.ID), Dataset: run.Manifest.Dataset.Name,
		Tokens: export.Counted(t),
	}
	if t.Outcome != nil {
		r := judged(t.Header, *t.Outcome, in, a.Number, found)
		it.Verdict, it.Flags = string(r.Class), r.FlagNames()
	}
	return it, nil
}

// judged is the verdict on an attempt: by its patch, or as results.json has it
// where the verdicts were not copied along.
func judged(h trajectories.Header, out trajectories.Outcome, in runner.Instance, number int, found []verdicts.Verdict) verdicts.Record {
	if p, ok := runner.Submitted(h, out); ok {
		if v := verdicts.Newest(found, p); v != nil {
			return v.Record
		}
		for _, r := range in.Samples {
			if r.Attempt == number && r.Verdict != nil {
				return verdicts.Record{Class: verdicts.Class(*r.Verdict)}
			}
		}
	}
	return verdicts.Record{}
}

// addFile takes a single trajectory.
func (src *exportSource) addFile(path string) error {
	f, err := convert.Open(path)
	if err != nil {
		src.unread = append(src.unread, err.Error())
		return nil
	}
	if err := src.offered(f.Header); err != nil {
		src.unread = append(src.unread, fmt.Sprintf("%s: %v", path, err))
		return nil
	}
	id := f.Header.InstanceID
	if id == "" {
		id, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	src.runs[len(src.runs)-1].Attempts = 1
	src.attempts = append(src.attempts, exportAttempt{export.Attempt{
		InstanceID: id, Number: max(f.Header.Attempt, 1),
		Read: func() (*export.Item, error) { return readForeign(f, path, id) },
	}, len(src.runs) - 1})
	return nil
}

func readForeign(f *convert.File, path, id string) (*export.Item, error) {
	sum, err := sha256Of(path)
	if err != nil {
		return nil, err
	}
	t, err := trajectories.Gather(f.Records)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, records := range f.Children {
		child, err := trajectories.Gather(records)
		if err != nil {
			return nil, fmt.Errorf("read child of %s: %w", path, err)
		}
		t.Children = append(t.Children, child)
	}
	return &export.Item{
		Transcript: t, Journal: path, SHA256: sum, InstanceID: id, Attempt: max(t.Header.Attempt, 1),
		Sample: max(t.Header.Sample, 1), Repo: repoOf(id), Tokens: export.Counted(t),
	}, nil
}

// sha256Of is the sum of a file's bytes, in hex.
func sha256Of(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// firstOf reads the first record of a journal.
func firstOf(path string) (trajectories.Header, error) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return trajectories.Header{}, errors.Join(err, fmt.Errorf("%s is not a plain file", path))
	}
	return trajectories.ReadHeader(path)
}

// offered enters the tools of an attempt; parquet files have to know all.
func (src *exportSource) offered(h trajectories.Header) error {
	if !src.options.Parquet || len(h.Tools) == 0 {
		return nil
	}
	set, err := export.Tools(h.Tools)
	if err == nil && !slices.ContainsFunc(src.tools, func(t json.RawMessage) bool { return string(t) == string(set) }) {
		src.tools = append(src.tools, set)
	}
	return err
}

// list is all attempts: by instance in natural order, then by input and attempt.
func (src *exportSource) list() []export.Attempt {
	slices.SortStableFunc(src.attempts, func(a, b exportAttempt) int {
		if n := datasets.Natural(a.InstanceID, b.InstanceID); n != 0 {
			return n
		}
		return a.input - b.input
	})
	names := src.folders()
	var list []export.Attempt
	for _, a := range src.attempts {
		a.Folder = names[a.input]
		list = append(list, a.Attempt)
	}
	return list
}

// folders are names for the inputs, where there are several: that of the run,
// with a number where another one has it too.
func (src *exportSource) folders() []string {
	names := make([]string, len(src.runs))
	if len(src.runs) < 2 {
		return names
	}
	taken := map[string]int{}
	for i, r := range src.runs {
		name := filepath.Base(filepath.Clean(r.Path))
		if taken[name]++; taken[name] > 1 || !filepath.IsLocal(name) {
			name = fmt.Sprintf("%s-%d", strings.Trim(name, "./"), i+1)
		}
		names[i] = name
	}
	return names
}

// sweBenchID matches the id of an instance as SWE-bench makes ids, alone or at
// the end of a longer name: no owner on GitHub has a _ in its name.
var sweBenchID = lazyregexp.New(`(?:^|_|/)([A-Za-z0-9][A-Za-z0-9-]*)__([A-Za-z0-9._-]+)-\d+$`)

// repoOf is "owner/name" by the id of an instance; empty where it does not say.
func repoOf(id string) string {
	for {
		m := sweBenchID.FindStringSubmatch(id)
		if m == nil {
			return ""
		}
		if !strings.Contains(m[2], "__") {
			return m[1] + "/" + m[2]
		}
		_, id, _ = strings.Cut(id, "__") // what stood before it was no owner
	}
}
