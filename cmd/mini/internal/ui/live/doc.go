// Package live shows a running batch on a terminal: one row per worker, the overall progress,
// and the latest results.
//
// The view folds the runner's events into a board, which is cheap enough for thousands of
// events a second. It redraws the board a few times a second, and only after a change. The
// terminal is restored on every exit (see package terminal). The view takes no decisions about
// the run; it sends the user's orders to a Controller.
//
//	view := live.Start(live.Config{Terminal: os.Stderr, Interrupt: stop})
//	log := runner.NewLog(folder, view.HandleEvent)
//	...
//	err := view.Close()
package live
