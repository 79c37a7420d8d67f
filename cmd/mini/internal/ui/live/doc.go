// Package live shows a running batch on a terminal: one row per worker, the overall progress,
// and the latest results.
//
// The view updates a board with each event of the runner, which is cheap enough for thousands of
// events per second. It redraws the board a few times per second after changes, and else once
// per second. Package terminal restores the terminal on every exit. The view makes no decisions
// about the run; it sends the user's orders to a Controller.
//
//	view := live.Start(live.Config{Terminal: os.Stderr, Interrupt: stop, Controller: controller})
//	log := runner.NewLog(folder, view.HandleEvent)
//	...
//	err := view.Close()
package live
