package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// sampled returns an instance. Each letter is the result of a repetition: R resolved, u
// unresolved, - without a verdict, x without a result.
func sampled(id, ends string) runs.Instance {
	in := runs.Instance{ID: id}
	for i, end := range ends {
		r := runs.Result{Class: trajectories.Submitted, Repetition: i + 1, Attempt: i + 1}
		verdict := map[rune]string{'R': "resolved", 'u': "unresolved"}[end]
		if verdict != "" {
			r.Verdict = &verdict
		}
		if end == 'x' {
			r.Class = trajectories.Provider
		}
		if i == 0 {
			first := r
			in.Result = &first
		}
		in.Repetitions = append(in.Repetitions, r)
	}
	return in
}

func TestRepetitionSummary(t *testing.T) {
	tests := []struct {
		name  string
		ends  []string
		asked int
		want  []string
		// In an uneven run, the number of requested results is unknown.
		uneven bool
	}{
		{"nobody asked for several", []string{"R", "u"}, 2, nil, false},
		{"no verdicts", []string{"---", "--x"}, 2, []string{"3 attempts per instance: 5 of 6 have a result, 0 have a verdict"}, false},
		// pass@1: (2/2 + 1/2 + 0) / 3; pass@2: (1 + 1 + 0) / 3
		{"all judged", []string{"RR", "uR", "uu"}, 3, []string{
			"6 of 6 have a result\n", "pass@1 50.0%, pass@2 66.7%",
			"resolved by attempt: 1, 2; mean 50.0%, 95% interval 0.0% to 100.0%; standard deviation 23.6 points",
		}, false},
		// An instance that was not started has no resolved result.
		{"one not started", []string{"RR", "uR"}, 3, []string{"4 of 6 have a result\n", "pass@1 50.0%, pass@2 66.7%"}, false},
		{"some without a verdict", []string{"R-", "ux"}, 2, []string{"3 of 4 have a result, 2 have a verdict", "pass@1 25.0%, pass@2 50.0% over 2 instances; attempts without a verdict count as not resolved"}, false},
		{"many", []string{strings.Repeat("u", 11) + "R"}, 1, []string{"pass@5 41.7%, pass@8 66.7%, pass@12 100.0%"}, false},
		// pass@1: (1/2 + 1 + 0) / 3; pass@2 of the one that has two
		{"as they came", []string{"uR", "R", "u"}, 3, []string{"up to 2 attempts per instance: 4 of 4 have a result", "pass@1 50.0% over 3 instances, pass@2 100.0% over 1 instance"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var list []runs.Instance
			for i, ends := range tt.ends {
				list = append(list, sampled(fmt.Sprint("i", i), ends))
			}
			run := &runs.Run{}
			if !tt.uneven {
				run.Manifest.Sessions = []runs.Session{{Summary: &runs.Summary{Repetitions: longest(tt.ends)}}}
			}
			s := newRepetitionSummary(run, list, tt.asked)
			if tt.want == nil {
				if s != nil {
					t.Errorf("%+v", s)
				}
				return
			}
			text := s.Doc().Text(100)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

func longest(ends []string) int {
	n := 0
	for _, e := range ends {
		n = max(n, len(e))
	}
	return n
}

// The text of a summary includes the repetitions.
func TestRepetitionsInSummary(t *testing.T) {
	g := Summary{Instances: 1, Repetitions: newRepetitionSummary(&runs.Run{}, []runs.Instance{sampled("a", "RR")}, 1)}
	if text := g.Doc().Text(80); !strings.Contains(text, "pass@2 100.0%") {
		t.Error(text)
	}
}
