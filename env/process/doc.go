// Package process runs one shell command at a time and kills what commands
// started. The helper of every sandbox is built on it.
//
// It does three things that a plain os/exec does not:
//
//   - Output is bounded at the source. The first half of the limit streams to
//     the caller as it arrives, of the rest only the last half is kept, and the
//     whole is counted in bytes and characters.
//   - A command ends when its shell ends. A background process that still
//     holds the output pipe does not delay the result, loses nothing it wrote
//     before, and goes on living with its later output discarded.
//   - At a timeout or cancel everything that the command started dies, however
//     it tried to get away (setsid, double fork, a cleared environment), and
//     what earlier commands left running lives on.
//
// Commands may run inside of one another (see Place): at the same time, each with
// its own bounds, and with the end of the outer one also the end of the inner.
//
// A Runner takes the whole operating-system process for itself: a helper that is
// PID 1 of a sandbox, say. Runners are for Linux only; texts and environments of
// commands are handled on any system.
//
//	r, err := process.NewOwner()
//	if err != nil { ... }
//	defer r.Close(ctx)
//	var out bytes.Buffer
//	res, err := r.Run(ctx, process.Command{Shell: []string{"bash", "-c"}, Script: "make", Dir: dir}, &out)
//
// Standard library only, because it is linked into the helper.
package process
