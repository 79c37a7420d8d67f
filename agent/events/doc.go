// Package events tells whoever listens what an agent does, as it does it: a
// terminal, a log, a program that embeds mini.
//
// The agent publishes to a Bus; each subscriber has a queue of its own, bounded
// in number and in bytes. Publishing never waits for anybody: a subscriber that
// does not keep up loses pieces of texts and outputs first, is told how many
// (Lost), and always learns how the attempt ended (Ended).
//
//	bus := events.NewBus()
//	defer bus.Close()
//	sub := bus.Subscribe(0)
//	go func() {
//		for e := range sub.All(ctx) {
//			if d, ok := e.Event.(events.TextDelta); ok {
//				fmt.Print(d.Text)
//			}
//		}
//	}()
//	out := a.Run(ctx, agent.Session{Events: bus, ...})
//
// What is on record is the journal's affair (trajectories): events are for
// those who watch, and a run is the same with and without them. As JSON lines
// they are written by a Writer, and read by Decode; see docs/events.md.
package events
