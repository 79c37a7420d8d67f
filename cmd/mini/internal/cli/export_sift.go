package cli

import (
	"slices"

	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/sieve"
)

// sifter puts a sieve into an export.
type sifter struct {
	*sieve.Sieve
	splits []string
}

// trains says whether the rows of a format are for training.
func trains(format string) bool {
	return !slices.Contains([]string{export.ATIF, export.Traj, export.Preds}, format)
}

func (o *exportOptions) newSifter() (*sifter, error) {
	s, err := o.sieve.sieve(trains(o.Format), o.Reasoning != export.Drop)
	if err != nil {
		return nil, err
	}
	if o.sieve.split != "" && !trains(o.Format) {
		return nil, usagef("--split is for rows; %s has files of its own", o.Format)
	}
	if o.sieve.set.Changed("seed") && o.sieve.split == "" && o.rule != export.Random {
		return nil, usagef("--seed is for --split and --select random, of which neither is given")
	}
	sifted := &sifter{Sieve: s}
	if o.sieve.split == "" {
		return sifted, nil
	}
	splits, err := sieve.ParseSplits(o.sieve.split)
	for _, split := range splits {
		sifted.splits = append(sifted.splits, split.Name)
	}
	return sifted, err
}

// foresee refuses what will be refused before it is read. Where filters go by
// what only the whole attempt tells, that is left to the reading.
func (o *exportOptions) foresee(s *sifter, src *exportSource) error {
	if c := o.sieve.cfg; o.sieve.resolved || c.NoFlagged || len(c.Verdicts)+len(c.Classes)+len(c.Models)+len(c.Flags) > 0 {
		return nil
	}
	for _, a := range src.attempts {
		s.Foresee(&export.Item{
			InstanceID: a.InstanceID, Attempt: a.Number, Repo: repoOf(a.InstanceID), Dataset: src.runs[a.input].Dataset,
		})
	}
	return before(s.Refusal())
}

func (s *sifter) look(it *export.Item) func() []*export.Item {
	l := s.Look(it)
	return func() []*export.Item { return s.Take(l) }
}

func (s *sifter) end() error {
	s.End()
	return before(s.Refusal())
}
