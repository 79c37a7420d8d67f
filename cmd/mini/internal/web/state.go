package web

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/report"
)

// IsLive reports whether a mini process is working on the run.
func (s *snapshot) IsLive() bool { return s.Summary.State == report.Working }

// Left returns the number of instances without a result.
func (s *snapshot) Left() int { return max(0, s.Summary.Instances-s.Summary.WithResult) }

// State returns the state of the run, with the number of results if some are missing. A run that lacks
// results is not finished.
func (s *snapshot) State() string {
	state := string(s.Summary.State)
	switch {
	case s.Summary.State == report.Finished && s.Left() > 0:
		state = "incomplete"
	case s.Summary.State == report.Stopped:
		state = "killed"
	}
	if state == string(report.Finished) {
		return state
	}
	return fmt.Sprintf("%s, %d of %d", state, s.Summary.WithResult, s.Summary.Instances)
}

// Ended returns why the last session ended before all instances had a result; "" if that is not recorded.
func (s *snapshot) Ended() string {
	sessions := s.Run.Manifest.Sessions
	if s.IsLive() || s.Left() == 0 || len(sessions) == 0 || sessions[len(sessions)-1].Summary == nil {
		return ""
	}
	switch last := sessions[len(sessions)-1].Summary; {
	case last.Halt != nil:
		return last.Halt.Error()
	case last.Drained:
		return "stopped: the run was drained"
	case last.BudgetExhausted:
		return "stopped: the budget of the run is spent"
	}
	return ""
}

// Resume returns the command that continues a run without all results; "" if that is not recorded.
func (s *snapshot) Resume() string {
	if s.IsLive() || s.Left() == 0 || len(s.Summary.ResumeArgs) == 0 {
		return ""
	}
	words := []string{"mini"}
	for _, arg := range s.Summary.ResumeArgs {
		words = append(words, text.ShellQuote(arg))
	}
	return strings.Join(words, " ")
}
