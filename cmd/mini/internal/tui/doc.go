// Package tui shows a batch on a terminal while it runs: a row for each worker,
// how far the batch has come, and what ended last.
//
// The runner's events are folded into a board, which is cheap and may happen
// thousands of times a second; a few times a second, and only when something
// changed, the board is drawn. The screen is given back on every way out, also
// when this process is killed: see package screen. What happens in a run is not decided
// here.
//
//	live := tui.Start(tui.Config{Terminal: os.Stderr, Interrupt: stop})
//	log := runner.NewLog(folder, live.Event)
//	...
//	err := live.Close()
package tui
