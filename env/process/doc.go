// Package process runs shell commands and kills the processes that they start. The
// helper in every sandbox is built on it.
//
// It does three things that os/exec does not:
//
//   - It limits output while the command writes it. Output is passed to the caller as it
//     arrives, up to half of the limit. Of the rest, only the end is kept, up to the
//     other half. All bytes and characters are counted.
//   - A command ends when its shell ends. A background process that still holds the
//     output pipe does not delay the result. What that process wrote before is kept,
//     what it writes later is discarded, and it keeps running.
//   - At a timeout or cancellation it kills every process that the command started,
//     including those that called setsid, double-forked or cleared their environment.
//     Processes of earlier commands keep running (for an exception see
//     env.Result.KilledEarlier).
//
// Commands can be nested (see Scope): they run at the same time, each with its own
// limits, and a nested command ends when the outer one ends.
//
// A Runner takes over all child processes of the program that creates it. This program
// is the helper, which runs as PID 1 in containers. Runners exist on Linux only. The
// functions for scripts and environment variables exist on every system.
//
//	r, err := process.NewRunner()
//	if err != nil { ... }
//	defer r.Close(ctx)
//	var out bytes.Buffer
//	res, err := r.Run(ctx, process.Command{Shell: []string{"bash", "-c"}, Script: "make", Dir: dir}, &out)
//
// Besides package env, the package imports the standard library only, because the
// helper links it.
package process
