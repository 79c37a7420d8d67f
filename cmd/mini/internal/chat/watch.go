package chat

import (
	"context"
	"fmt"

	"github.com/minibench/mini/agent/events"
)

// Watch shows what the subscription has until it ends, or ctx does. The caller
// subscribes before the agent begins, and waits for Watch.
func (s *Session) Watch(ctx context.Context, sub *events.Subscription) {
	defer s.progress(func() { s.watched = true })
	for e := range sub.All(ctx) {
		s.learn(e.Event)
		s.Front.Show(e)
		s.progress(func() { s.shown = e.Seq })
	}
}

// learn keeps what the line of state says.
func (s *Session) learn(e events.Event) {
	switch e := e.(type) {
	case events.RunStarted:
		s.note(func(st *State) { st.Step = max(st.Step, e.Step) })
	case events.TurnStarted:
		s.note(func(st *State) { st.Step, st.Busy = e.Step, "thinking" })
	case events.Replied:
		s.note(func(st *State) {
			st.Step, st.Cost, st.Usage, st.Busy = e.Step, e.TotalCost, e.TotalUsage, ""
			st.Unpriced = e.TotalUsage.Unpriced > 0
		})
	case events.ChildWorked:
		s.note(func(st *State) {
			if st.Busy = fmt.Sprintf("child %d works", e.Child); e.ExitStatus != "" {
				st.Busy = "running"
			}
		})
	case events.ActionStarted:
		s.note(func(st *State) { st.Busy = "running" })
	case events.ActionEnded, events.Ended, events.Told:
		s.note(func(st *State) { st.Busy = "" })
	}
}

// note changes the state, and has it shown.
func (s *Session) note(change func(*State)) {
	s.mu.Lock()
	change(&s.state)
	state := s.state
	s.mu.Unlock()
	s.Front.State(state)
}

func (s *Session) now() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// catchUp waits until all is shown that happened before.
func (s *Session) catchUp(ctx context.Context) {
	if !s.Events.Wanted() {
		return
	}
	newest := s.Events.Newest()
	defer context.AfterFunc(ctx, func() { s.progress(func() {}) })()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.shown < newest && !s.watched && ctx.Err() == nil {
		s.moved.Wait()
	}
}

// progress notes how far events were shown.
func (s *Session) progress(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note()
	s.moved.Broadcast()
}
