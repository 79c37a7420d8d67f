package chat

import (
	"context"
	"fmt"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/trajectories"
)

// Watch shows the events of a subscription until the subscription or ctx ends. The caller
// subscribes before the agent starts, and waits for Watch to return.
func (s *Session) Watch(ctx context.Context, sub *events.Subscription) {
	defer s.updateShown(func() { s.watchEnded = true })
	for e := range sub.All(ctx) {
		s.trackEvent(e.Event)
		s.showChanges(ctx, e)
		if _, ok := e.Event.(events.FilesChanged); !ok {
			s.Frontend.ShowEvent(e)
		}
		s.updateShown(func() { s.lastShown = e.Seq })
	}
}

// showChanges shows the changes of the steps that ended before an event. For the last step it waits
// until they are found.
func (s *Session) showChanges(ctx context.Context, next events.Envelope) {
	s.mu.Lock()
	isLater := next.Seq > s.stepEnd
	s.mu.Unlock()
	if isLater {
		s.WaitForStep(ctx)
	}
	s.mu.Lock()
	n := 0
	for n < len(s.unshownChanges) && s.unshownChanges[n].Seq < next.Seq {
		n++
	}
	changes := s.unshownChanges[:n:n]
	s.unshownChanges = s.unshownChanges[n:]
	s.mu.Unlock()
	for _, e := range changes {
		s.Frontend.ShowEvent(e)
	}
}

// trackEvent updates the status line with an event.
func (s *Session) trackEvent(e events.Event) {
	switch e := e.(type) {
	case events.RunStarted:
		s.updateState(func(st *State) { st.Step = max(st.Step, e.Step) })
	case events.PhaseStarted:
		if e.Phase != events.PhaseScrubbing {
			s.updateState(func(st *State) { st.Step, st.Activity = max(st.Step, e.Step), string(e.Phase) })
		}
	case events.Recorded:
		if _, ok := e.Data.(trajectories.ToolCall); ok {
			return // the command continues
		}
		s.updateState(func(st *State) {
			st.Step, st.Cost, st.Usage, st.Activity = e.Step, e.Spent.Cost, e.Spent.Usage, ""
			st.Unpriced = e.Spent.Usage.Unpriced > 0
		})
	case events.ChildProgress:
		s.updateState(func(st *State) {
			if st.Activity = fmt.Sprintf("subagent %d", e.Child); e.ExitStatus != "" {
				st.Activity = "running"
			}
		})
	}
}

// updateState changes the state and shows it in the status line.
func (s *Session) updateState(change func(*State)) {
	s.mu.Lock()
	change(&s.state)
	state := s.state
	s.mu.Unlock()
	s.Frontend.SetState(state)
}

func (s *Session) currentState() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// waitUntilShown waits until all events published so far have been shown, or until Watch or ctx
// ends.
func (s *Session) waitUntilShown(ctx context.Context) {
	if !s.Events.HasSubscribers() {
		return
	}
	lastPublished := s.Events.LastSeq()
	defer context.AfterFunc(ctx, func() { s.updateShown(func() {}) })()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.lastShown < lastPublished && !s.watchEnded && ctx.Err() == nil {
		s.shownChanged.Wait()
	}
}

// updateShown calls change with the lock held, and then wakes waitUntilShown.
func (s *Session) updateShown(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.shownChanged.Broadcast()
}
