// Package browser shows trajectories on a terminal or as text: a list that can be sorted,
// filtered and searched, and each trajectory step by step.
//
// The package reads a source in the background. It stores a summary of each trajectory, and only
// the open trajectory completely. It treats all content as untrusted and sanitizes it. A damaged
// trajectory is an entry with the error.
//
//	err := browser.Run(ctx, browser.Options{Terminal: os.Stderr, Path: "runs/first"})
//	warnings, err := browser.Print(ctx, os.Stdout, browser.Options{Path: "runs/first"})
package browser
