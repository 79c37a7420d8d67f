// Package events publishes what an agent does, as it happens, to terminals,
// logs and programs that embed mini.
//
// The agent publishes to a Bus. Each subscriber has its own queue, bounded in
// events and bytes. Publishing never blocks. A slow subscriber first misses
// pieces of texts and outputs; a Dropped event counts the missed events. The
// newest RunEnded, with the outcome, is never dropped.
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
// The permanent record is the journal (package trajectories). Subscribers
// cannot change a run. Writer writes events as JSON lines, and Decode reads
// them; see docs/events.md.
package events
