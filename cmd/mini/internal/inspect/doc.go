// Package inspect shows trajectories: a list that can be sorted, filtered and
// searched, and each step by step, on a terminal or as text.
//
// What is listed is found in the background and held as summaries; only the one
// trajectory that is read is in memory. Folders, files and all that stands in
// them may be anybody's: nothing of it steers the terminal, and a broken file is
// a row that says what is wrong.
//
//	err := inspect.Run(ctx, inspect.Config{Terminal: os.Stderr, Path: "runs/first"})
//	notes, err := inspect.Print(ctx, os.Stdout, inspect.Printing{Path: "runs/first"})
package inspect
