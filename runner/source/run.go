package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// addInstance adds the attempts at an instance that Options.Rule selects and
// returns their number.
func (s *Source) addInstance(run *runs.Run, instance runs.Instance) int {
	var infos []export.AttemptInfo
	var attempts []runs.Attempt
	records := verdicts.ReadInstance(run.Dir, instance.ID, s.options.IsOwn)
	for _, a := range instance.Attempts {
		h, err := readHeader(a.Journal)
		if err != nil {
			s.readErrors = append(s.readErrors, err.Error())
			continue
		}
		totals := a.Totals()
		info := export.AttemptInfo{Number: a.Number, Repetition: a.Repetition, Steps: totals.Steps, Cost: totals.Cost, IsResult: a.HasResult()}
		if info.IsResult && s.options.Rule.NeedsVerdicts() {
			if out, ok, err := trajectories.ReadOutcome(a.Journal); err == nil && ok {
				info.Resolved = verdictOf(h, out, instance, a.Number, records).Class == verdicts.Resolved
			}
		}
		if err := s.collectTools(h); err != nil {
			s.readErrors = append(s.readErrors, fmt.Sprintf("%s: %v", a.Journal, err))
			continue
		}
		infos, attempts = append(infos, info), append(attempts, a)
	}
	selected := s.options.Rule.Select(infos, instance.ID, s.options.Seed)
	for _, i := range selected {
		a := attempts[i]
		s.attempts = append(s.attempts, attempt{export.AttemptSource{
			InstanceID: instance.ID, Number: a.Number, MultipleAttempts: len(selected) > 1, Run: run.Dir, Requested: run.Manifest.Repetitions(),
			Read: func() (*export.Item, error) { return s.readAttempt(run, instance, a, records) },
		}, len(s.inputs) - 1})
	}
	return len(selected)
}

// readAttempt reads an attempt of a run and its verdict.
func (s *Source) readAttempt(
	run *runs.Run, instance runs.Instance, a runs.Attempt, records []verdicts.Verdict,
) (*export.Item, error) {
	transcript, sum, err := export.ReadJournal(a.Journal, s.options.Omit)
	if err != nil {
		return nil, err
	}
	item := &export.Item{
		Attempt: transcript, Journal: a.Journal, SHA256: sum,
		InstanceID: instance.ID, Number: a.Number, Repetition: a.Repetition, Repo: datasets.RepoOf(instance.ID),
		Selected: instance.Selects(a.Number),
		Dataset:  run.Manifest.Dataset.Name, Tokens: export.ProviderTokens(transcript),
	}
	if transcript.Outcome != nil {
		r := verdictOf(transcript.Header, *transcript.Outcome, instance, a.Number, records)
		item.Verdict, item.Flags = string(r.Class), r.FlagNames()
		if n, ok := verdicts.Reward(r.Rewards); ok {
			item.Reward = &n
		}
	}
	return item, nil
}

// verdictOf returns the verdict on an attempt's patch. If it has no record, only
// the class is set, from results.json.
func verdictOf(
	h trajectories.Header, out trajectories.Outcome, instance runs.Instance, number int, records []verdicts.Verdict,
) verdicts.Record {
	prediction, ok := runs.PredictionOf(h.InstanceID, h.ModelName, out)
	if !ok {
		return verdicts.Record{}
	}
	if v := verdicts.Newest(records, prediction); v != nil {
		return v.Record
	}
	for _, r := range instance.Repetitions {
		if r.Attempt == number && r.Verdict != nil {
			return verdicts.Record{Class: verdicts.Class(*r.Verdict), Rewards: r.Rewards}
		}
	}
	return verdicts.Record{}
}

// readHeader reads the header of a journal, which must be a regular file.
func readHeader(path string) (trajectories.Header, error) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return trajectories.Header{}, errors.Join(err, fmt.Errorf("%s is not a plain file", path))
	}
	return trajectories.ReadHeader(path)
}

// fileHash returns the SHA-256 of a file in hex.
func fileHash(path string) (string, error) {
	f, err := rootdir.OpenRegular(path, syscall.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only reads
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ReadAttempt returns an attempt of a run with its verdict, or nil if there is no such attempt. isOwn may be nil.
func ReadAttempt(run *runs.Run, id string, number int, isOwn func(verdicts.Record) bool) (*export.Item, error) {
	instance, ok := run.Find(id)
	if !ok {
		return nil, nil //nolint:nilnil // as the comment says
	}
	for _, a := range instance.Attempts {
		if a.Number == number {
			if err := a.Load(); err != nil {
				return nil, err
			}
			return New(Options{IsOwn: isOwn}).readAttempt(run, instance, a, verdicts.ReadInstance(run.Dir, id, isOwn))
		}
	}
	return nil, nil //nolint:nilnil // likewise
}
