package chat

import (
	"context"
	"fmt"
	"sync"

	"github.com/minibench/mini/agent/events"
)

// Watch shows what the subscription has until it ends, or ctx does. The caller
// subscribes before the agent begins, and waits for Watch.
func (s *Session) Watch(ctx context.Context, sub *events.Subscription) {
	defer s.pumped.finish()
	for e := range sub.All(ctx) {
		s.learn(e.Event)
		s.Front.Show(e)
		s.pumped.reach(e.Seq)
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
	if s.Events.Wanted() {
		s.pumped.wait(ctx, s.Events.Newest())
	}
}

// progress is how far events were shown.
type progress struct {
	mu    sync.Mutex
	seq   uint64
	ended bool
	moved chan struct{} // closed when one of them changes
}

func newProgress() *progress { return &progress{moved: make(chan struct{})} }

func (p *progress) reach(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq = seq
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *progress) wait(ctx context.Context, seq uint64) {
	for {
		p.mu.Lock()
		done, moved := p.ended || p.seq >= seq, p.moved
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}
