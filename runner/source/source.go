// Package source finds the attempts to export, in the folders of runs and in
// single trajectory files of any format that package formats reads.
//
//	src := source.New(source.Options{Rule: export.SelectResolved})
//	if err := src.Add("runs/first"); err != nil { ... }
//	report, err := export.Run(ctx, cfg, src.Attempts())
//
// It reads the headers of attempts, and the outcomes if the rule needs them.
// Package export reads everything else.
package source

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/formats"
)

// Options configures a Source.
type Options struct {
	// Rule selects attempts of a run. It does not apply to files.
	Rule export.SelectRule
	// Seed is the seed of export.SelectRandom.
	Seed uint64
	// Omit is what the attempts do not need: trajectories.ForTraining for training data.
	Omit trajectories.Omit
	// CollectTools enables Source.Tools.
	CollectTools bool
	// IsOwn reports whether the user made a verdict record. It may be nil.
	IsOwn func(verdicts.Record) bool
}

// Source is a list of inputs and their attempts. It is not safe for concurrent
// use.
type Source struct {
	options    Options
	inputs     []Input
	attempts   []attempt
	tools      []json.RawMessage
	readErrors []string
	seen       map[string]bool // absolute paths of the inputs
}

// Input is the folder of a run or a trajectory file.
type Input struct {
	Path     string `json:"path"`
	Dataset  string `json:"dataset,omitempty"` // name of the run's dataset
	Attempts int    `json:"attempts"`          // number of selected attempts
}

// attempt is a selected attempt of an input.
type attempt struct {
	export.AttemptSource
	inputIndex int // index in inputs
}

// New returns a Source without inputs.
func New(o Options) *Source { return &Source{options: o, seen: map[string]bool{}} }

// Add adds the folder of a run, or a trajectory file. It skips attempts that it
// cannot read; ReadErrors describes them.
func (s *Source) Add(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if s.seen[abs] {
		return usage.Errorf("%s is given twice", path)
	}
	s.seen[abs] = true
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		s.inputs = append(s.inputs, Input{Path: path})
		s.addFile(path)
		return nil
	}
	run, err := runs.Read(path)
	if err != nil {
		return err
	}
	s.readErrors = append(s.readErrors, run.ReadErrors...)
	s.inputs = append(s.inputs, Input{Path: path, Dataset: run.Manifest.Dataset.Name})
	for _, in := range run.Instances {
		s.inputs[len(s.inputs)-1].Attempts += s.addInstance(run, in)
	}
	return nil
}

// Inputs returns the inputs in the order in which they were added.
func (s *Source) Inputs() []Input { return s.inputs }

// Tools returns the distinct sets of tool definitions in the headers of the
// attempts, encoded by export.EncodeTools.
func (s *Source) Tools() []json.RawMessage { return s.tools }

// ReadErrors describes the attempts that could not be read.
func (s *Source) ReadErrors() []string { return s.readErrors }

// Attempts returns the selected attempts, ordered by instance (in natural order),
// input and attempt number.
func (s *Source) Attempts() []export.AttemptSource {
	slices.SortStableFunc(s.attempts, func(a, b attempt) int {
		if n := datasets.CompareNatural(a.InstanceID, b.InstanceID); n != 0 {
			return n
		}
		return a.inputIndex - b.inputIndex
	})
	names := s.folderNames()
	var list []export.AttemptSource
	for _, a := range s.attempts {
		if len(s.inputs) > 1 {
			a.Folder = names[a.inputIndex]
		}
		if a.Run != "" {
			a.Run = names[a.inputIndex]
		}
		list = append(list, a.AttemptSource)
	}
	return list
}

// folderNames returns a unique folder name for each input.
func (s *Source) folderNames() []string {
	names := make([]string, len(s.inputs))
	count := map[string]int{}
	for i, in := range s.inputs {
		name := filepath.Base(in.Path)
		if abs, err := filepath.Abs(in.Path); err == nil { // for a path like "."
			name = filepath.Base(abs)
		}
		if count[name]++; count[name] > 1 || !filepath.IsLocal(name) {
			name = fmt.Sprintf("%s-%d", strings.Trim(name, "./"), i+1)
		}
		names[i] = name
	}
	return names
}

// collectTools adds the tool definitions of an attempt to Tools.
func (s *Source) collectTools(h trajectories.Header) error {
	if !s.options.CollectTools || len(h.Tools) == 0 {
		return nil
	}
	set, err := export.EncodeTools(h.Tools)
	if err == nil && !slices.ContainsFunc(s.tools, func(t json.RawMessage) bool { return string(t) == string(set) }) {
		s.tools = append(s.tools, set)
	}
	return err
}

// addFile adds the trajectory in a file.
func (s *Source) addFile(path string) {
	f, err := formats.Open(path)
	if err != nil {
		s.readErrors = append(s.readErrors, err.Error())
		return
	}
	if err := s.collectTools(f.Header); err != nil {
		s.readErrors = append(s.readErrors, fmt.Sprintf("%s: %v", path, err))
		return
	}
	id := f.Header.InstanceID
	if id == "" {
		id, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	input := len(s.inputs) - 1
	s.inputs[input].Attempts = 1
	s.attempts = append(s.attempts, attempt{export.AttemptSource{
		InstanceID: id, Number: max(f.Header.Attempt, 1),
		Read: func() (*export.Item, error) { return readFile(f, path, id) },
	}, input})
}

func readFile(f *formats.File, path, id string) (*export.Item, error) {
	sum, err := fileHash(path)
	if err != nil {
		return nil, err
	}
	transcript, err := trajectories.Fold(f.Records)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, records := range f.Children {
		child, err := trajectories.Fold(records)
		if err != nil {
			return nil, fmt.Errorf("read subagent of %s: %w", path, err)
		}
		transcript.Children = append(transcript.Children, child)
	}
	return &export.Item{
		Attempt: transcript, Journal: path, SHA256: sum, InstanceID: id, Number: max(transcript.Header.Attempt, 1),
		Repetition: max(transcript.Header.Repetition, 1), Selected: true, Repo: datasets.RepoOf(id), Tokens: export.ProviderTokens(transcript),
	}, nil
}
