package web

import (
	"cmp"

	"github.com/minibench/mini/runner/report"
)

// homePage is the data of the list of runs.
type homePage struct {
	Runs []listedRun
}

// listedRun is a run in the list. A run that could not be read has only an Error.
type listedRun struct {
	Run      *run
	Snapshot *snapshot
	Headline string
	Model    string
	Error    string
}

func (v *Viewer) newHomePage() (*homePage, error) {
	p := &homePage{}
	for _, r := range v.runs {
		s, err := r.load()
		if err != nil {
			p.Runs = append(p.Runs, listedRun{Run: r, Error: err.Error()})
			continue
		}
		p.Runs = append(p.Runs, listedRun{Run: r, Snapshot: s, Headline: headline(s), Model: cmp.Or(s.Summary.Model, "-")})
	}
	return p, nil
}

// State returns the state of the run. A run that lacks results is not finished.
func (r listedRun) State() string {
	s := r.Snapshot.Summary
	if s.State == report.Finished && s.WithResult < s.Instances {
		return "incomplete"
	}
	return string(s.State)
}

// IsLive reports whether a mini process is working on the run.
func (s *snapshot) IsLive() bool { return s.Summary.State == report.Working }
