package serve

import (
	"time"

	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/source"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// answer is what GET /rollouts/{id} returns.
type answer struct {
	ID       string          `json:"id"`
	Group    string          `json:"group"` // of the request, or the id
	Instance string          `json:"instance"`
	State    state           `json:"state"`
	Error    string          `json:"error,omitempty"`
	Created  time.Time       `json:"created"`
	Started  *time.Time      `json:"started,omitempty"`
	Ended    *time.Time      `json:"ended,omitempty"`
	Attempts []attemptResult `json:"attempts,omitempty"` // when the rollout is over; k if it is done
}

// attemptResult is the result of one of the k attempts.
type attemptResult struct {
	Sample     int    `json:"sample"`  // from 1 to k
	Attempt    int    `json:"attempt"` // in the run folder; retries count
	Session    string `json:"session"` // the placeholder of base_url
	Class      string `json:"class"`
	ExitStatus string `json:"exit_status"`
	Error      string `json:"error,omitempty"` // what failed
	// Reward is 1 or 0 by the verdict, or that of a Harbor task; null if there is none, and Class says why.
	Reward  *float64 `json:"reward"`
	Verdict string   `json:"verdict,omitempty"`
	Patch   string   `json:"patch"`
	Steps   int      `json:"steps"`
	Cost    float64  `json:"cost"` // US dollars
	Seconds float64  `json:"seconds"`
	Tokens  []any    `json:"tokens,omitempty"` // rows of mini export --format tokens
}

// classEnvironment is the class of an attempt whose verdict failed by an accident: the
// fault is the machine's.
const classEnvironment = string(trajectories.Environment)

func newAnswer(rec record) answer {
	group := rec.Request.Group
	if group == "" {
		group = rec.ID
	}
	return answer{
		ID: rec.ID, Group: group, Instance: rec.Request.Instance, State: rec.State, Error: rec.Error,
		Created: rec.Created, Started: rec.Started, Ended: rec.Ended,
	}
}

// Values of the parameter tokens.
const (
	noTokens      = "none"
	turnTokens    = "turns"
	segmentTokens = "segments"
)

func tokenMode(value string) (string, error) {
	switch value {
	case "":
		return turnTokens, nil
	case noTokens, turnTokens, segmentTokens:
		return value, nil
	}
	return "", badRequest("tokens: want turns, segments or none")
}

// result returns the answer about a rollout, with its attempts if it has ended.
func (s *server) result(rec record, tokens string) answer {
	a := newAnswer(rec)
	if !rec.State.isOver() && rec.State != running {
		return a
	}
	for _, item := range s.items(rec) {
		a.Attempts = append(a.Attempts, newAttemptResult(item, tokens))
	}
	if rec.State == running { // what exists is not the result yet
		a.Attempts = nil
	}
	return a
}

// items returns the attempt that counts for each of the k samples: the one with the
// result, or else the last.
func (s *server) items(rec record) []*export.Item {
	runs := source.New(source.Options{Rule: export.SelectEvery, IsOwn: eval.IsSignedByUser})
	if err := runs.Add(s.path(rolloutsDir, rec.ID)); err != nil {
		return nil // nothing has been run
	}
	counts := make([]*export.Item, rec.Request.K)
	for _, a := range runs.Attempts() {
		item, err := a.Read()
		if err != nil || item.Outcome == nil || item.Repetition < 1 || item.Repetition > len(counts) {
			continue
		}
		if c := &counts[item.Repetition-1]; *c == nil || !(*c).Selected {
			*c = item
		}
	}
	var items []*export.Item
	for _, item := range counts {
		if item != nil {
			items = append(items, item)
		}
	}
	return items
}

func newAttemptResult(item *export.Item, tokens string) attemptResult {
	out := item.Outcome
	r := attemptResult{
		Sample: item.Repetition, Attempt: item.Number, Session: item.Header.Session, Class: string(out.Class), ExitStatus: out.ExitStatus,
		Reward: item.VerdictReward(), Verdict: item.Verdict, Steps: out.Steps, Cost: float64(out.Cost), Seconds: out.End.Sub(out.Start).Seconds(),
	}
	r.Patch, r.Error = string(out.Submission), text.Clip(out.Error, maxField)
	if item.Verdict == string(verdicts.Infrastructure) {
		r.Class = classEnvironment
	}
	if tokens != noTokens {
		r.Tokens = item.TokenRows(tokens == segmentTokens)
	}
	return r
}
