// Package browser browses trajectories: a list that can be sorted, filtered and searched, and
// each trajectory step by step, on a terminal or as text.
//
// Sources are read in the background and kept as summaries; only the open trajectory is in
// memory. All content is untrusted and sanitized. A file that cannot be read is an entry with
// the error.
//
//	err := browser.Run(ctx, browser.Config{Terminal: os.Stderr, Path: "runs/first"})
//	warnings, err := browser.Print(ctx, os.Stdout, browser.PrintOptions{Path: "runs/first"})
package browser
