package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// strikes stops a batch whose model's provider fails one instance after the
// other: what is left would fail like that too.
type strikes struct {
	most int // in a row; 0: no bound

	mu   sync.Mutex
	stop context.CancelCauseFunc
	row  int
	halt *Halt // why the batch was stopped; nil while it was not
	well bool  // there was an answer
	vain bool  // there was none, and what failed last looks like a wrong setting
}

// Halt is why a batch was stopped before its end. To the attempts that it ends
// it is an interruption: they are run again by the next start.
type Halt struct {
	Failures   int    `json:"failures"` // instances in a row
	ExitStatus string `json:"exit_status"`
	Reason     string `json:"error"`          // of the last one
	Hint       string `json:"hint,omitempty"` // what can be done about it
}

func (h *Halt) Error() string {
	who := fmt.Sprintf("%d instances in a row", h.Failures)
	if h.Failures == 1 {
		who = "an instance"
	}
	text := fmt.Sprintf("stopped: %s failed at the model's provider, the last with %s", who, h.Reason)
	if h.Hint != "" {
		text += "; " + h.Hint
	}
	return text
}

// Unwrap makes it an interruption.
func (h *Halt) Unwrap() error { return agent.ErrInterrupted }

// begin makes ready for a run, which stop ends.
func (s *strikes) begin(most int, stop context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.stop, s.row, s.halt = most, stop, 0, nil
	s.well, s.vain = false, false
}

// answered says that the provider works.
func (s *strikes) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row, s.well, s.vain = 0, true, false
}

// failed takes in how a call ended that got no answer.
func (s *strikes) failed(err error) {
	if e, ok := errors.AsType[*model.Error](err); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.vain = !s.well && (e.Suspect || !e.Retryable)
	}
}

// inVain says that trying an instance again would meet what it met: a provider
// that never answered anybody will not do so a second later.
func (s *strikes) inVain(out trajectories.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return out.Class == trajectories.Provider && s.vain
}

// ended takes in how an instance ended for this run.
func (s *strikes) ended(out trajectories.Outcome) {
	if out.Class != trajectories.Provider || out.ExitStatus == string(model.ScriptExhausted) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row++
	if s.most <= 0 || s.row < s.most || s.halt != nil {
		return
	}
	s.halt = &Halt{Failures: s.row, ExitStatus: out.ExitStatus, Reason: out.Error, Hint: out.Hint}
	s.stop(s.halt)
}

// countedModels are models whose failures count.
type countedModels struct {
	Models
	strikes *strikes
}

// For implements Models.
func (m countedModels) For(in datasets.Instance) (model.Model, error) {
	one, err := m.Models.For(in)
	return countedModel{one, m.strikes}, err
}

// Summary implements Summaries.
func (m countedModels) Summary(in datasets.Instance) (model.Model, error) {
	if s, ok := m.Models.(Summaries); ok {
		return s.Summary(in)
	}
	return nil, nil //nolint:nilnil // nil leaves summaries to the attempt's own model
}

// countedModel is a model whose failures count. Children of an attempt ask the
// same one.
type countedModel struct {
	model.Model
	strikes *strikes
}

// Query implements model.Model.
func (m countedModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	reply, err := m.Model.Query(ctx, messages)
	m.strikes.failed(err)
	return reply, err
}

// halted is why the batch was stopped, if it was.
func (s *strikes) halted() *Halt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halt
}
