// Package env defines the sandbox interface: an Environment runs the commands of one
// attempt, one after another, each in a new shell.
//
// The package holds types and one small interface. The implementations live in its
// subfolders (local, bubblewrap, docker) and pass the same conformance suite (envtest).
// The package imports the standard library only and does not depend on models or
// agents.
//
//	sandbox, err := engine.Start(ctx, docker.Config{Image: "mini-base"})
//	if err != nil { ... }
//	defer sandbox.Close(ctx)
//	res, err := sandbox.Execute(ctx, env.Command{Script: "git status", Timeout: time.Minute})
package env

import (
	"context"
	"io"
	"time"
)

// Environment is a running sandbox.
//
// A command that fails, times out, is killed or cannot be started is a Result, not an
// error: the agent sees it and continues. An error means that the sandbox failed (see
// Error), that Command.Sink failed (see ErrSink), or that ctx ended. When ctx ends
// while a command runs, Execute kills every process that the command started and
// returns the partial Result with an error that wraps the context's cause.
//
// Methods are safe for concurrent use, but commands run one at a time: a second
// Execute waits for the first.
type Environment interface {
	// Execute runs one command, waits for it and returns its result.
	Execute(ctx context.Context, c Command) (Result, error)
	// Info describes the sandbox. It does not change while the sandbox runs.
	Info() Info
	// Close kills every process in the sandbox and removes the sandbox's resources. A
	// second call returns nil. Execute after Close is an error.
	Close(ctx context.Context) error
}

// Files is implemented by environments that can copy files in and out without a shell:
// names and contents are copied byte for byte. A tree is copied as a tar stream (PAX),
// the format of "docker cp -"; package env/files reads and writes it. Put and Get wait
// for a running command, as Execute does.
type Files interface {
	// Put unpacks a tar stream into dir, an absolute path, and creates dir if it does
	// not exist. Existing files are replaced, symbolic links below dir are not
	// followed, and the new files belong to the user that commands run as.
	Put(ctx context.Context, dir string, tree io.Reader) error
	// Get writes path as a tar stream: a file under its base name, a directory under
	// its base name with its contents. Symbolic links stay links. The error wraps
	// fs.ErrNotExist if path does not exist.
	Get(ctx context.Context, path string, tree io.Writer) error
}

// AsFiles returns e as Files; see As.
func AsFiles(e Environment) (f Files, ok bool) { return As[Files](e) }

// As returns e as T, or the first environment in its chain of Unwrap() Environment methods
// that implements T. ok is false if there is none.
func As[T any](e Environment) (as T, ok bool) {
	for {
		if as, ok = e.(T); ok {
			return as, true
		}
		wrapper, ok := e.(interface{ Unwrap() Environment })
		if !ok {
			return as, false
		}
		e = wrapper.Unwrap()
	}
}

// NetworkChanger is implemented by environments whose network can be changed while they
// run.
type NetworkChanger interface {
	// ChangeNetwork replaces the network of the environment by another one, named as in
	// the environment's configuration. Processes that run keep running.
	ChangeNetwork(ctx context.Context, network string) error
}

// Limits of commands and of their output.
const (
	// MaxScript is the maximum length of a command text, in bytes. A command with a
	// longer text is not run (see Result.Failure).
	MaxScript = 10 << 20
	// DefaultOutputLimit is the number of bytes of output kept when
	// Command.OutputLimit is zero: half from the beginning and half from the end, but
	// at most MaxTail from the end.
	DefaultOutputLimit = 256 << 10
	// MinOutputLimit is the smallest effective output limit, in bytes. Smaller limits
	// are raised to it, because a head and a tail of a few bytes could not hold even
	// one character.
	MinOutputLimit = 64 << 10
	// SubmissionLimit is the maximum number of bytes kept of an output that begins with
	// one of Command.SubmissionMarkers, unless the output limit allows a longer head.
	SubmissionLimit = 100 << 20
	// MaxTail is the maximum number of bytes kept from the end of an output. The tail
	// is buffered until the command ends, so a larger limit extends the head instead.
	MaxTail = 8 << 20
	// SinkLimit is the largest output limit, in bytes, for a command with a Sink;
	// without a Sink it is SubmissionLimit. Environments with a helper enforce it.
	SinkLimit = 1 << 30
)

// RepositoryProgram is the name, as an interpreter, of the program with which the helper
// works on a repository (package env/helper/repository). It reads the script, which may
// have NUL bytes, from standard input. An environment without a helper has no such
// program, so mini takes no diff there.
const RepositoryProgram = "mini-repository"

// KillProgram is the name, as an interpreter, of the program that kills every process of an
// environment but the helper. The helper does this itself, without a program of the
// environment, so commands cannot have changed it. There is no script. Result.Killed and
// Result.Survivors have the numbers.
const KillProgram = "mini-kill"

// Command is one command of the agent: a shell script and its limits.
type Command struct {
	// Script is passed to the interpreter ("bash -c" unless the environment is
	// configured otherwise), at most MaxScript bytes. A script with a NUL byte is not
	// run (see Result.Failure).
	Script string
	// Dir is the working directory; empty means the environment's default.
	Dir string
	// Env adds variables to those of the environment and overrides them.
	Env map[string]string
	// User runs the command as another user: a name or number, or USER:GROUP. Only
	// containers whose user is root can; empty means the container's user.
	User string
	// Interpreter overrides the environment's interpreter for this command.
	// RepositoryProgram and KillProgram are two in environments with a helper.
	Interpreter []string
	// Timeout limits the run time of the command. Zero means the environment's
	// default.
	Timeout time.Duration
	// OutputLimit is the number of bytes of output to keep (head and tail); zero means
	// DefaultOutputLimit.
	OutputLimit int
	// SubmissionMarkers raise the output limit to SubmissionLimit when the first line
	// of the output that is not blank, without white space around it, equals one of
	// them. A submitted patch must not be truncated. If the script contains one of
	// them, the first line of standard output counts, whatever is on standard error
	// before it, and the output of a submission that succeeds is standard output alone.
	SubmissionMarkers []string
	// Sink, if not nil, receives the kept output, and Result.Output stays empty, so
	// that a long log needs no memory. Write may be called from another goroutine, but
	// not after Execute has returned.
	//
	// An error from Sink cancels the command, like the end of ctx. The returned error
	// wraps ErrSink, and the sandbox stays usable.
	Sink io.Writer
	// OnOutput, if not nil, is called with each chunk of the kept output while the
	// command runs, in addition to Result.Output or Sink; the chunks together are the
	// kept output. It may be called from another goroutine, one call at a time, and
	// not after Execute has returned. The chunk is valid only during the call and must
	// not be modified. The call must return quickly and must not use the environment:
	// the command waits for it.
	//
	// The head of the output, at least half of the limit, arrives as it is written.
	// The tail arrives when the command ends, because only then is it known (see
	// Result.Head). An output that begins with a submission marker arrives as it is
	// written, up to SubmissionLimit.
	OnOutput func(chunk []byte)
	// Tools, if not nil, lets the command call mini-tool. Environments without
	// Info.Tools ignore it.
	Tools *Tools
	// Bridge, if not nil, offers the command a loopback port: the command finds its
	// address, as HOST:PORT, in the variable MINI_BRIDGE. Bridge is called for each
	// connection to it, and returns at once a stream that stands for the other side;
	// Close of the stream unblocks Read and Write. The connection ends when either side
	// closes it, after what was sent before, or with the command. A command with a
	// Bridge can neither have Tools nor be nested.
	Bridge func() io.ReadWriteCloser
}

// Result is the outcome of a command. Stdout and stderr share one pipe, so Output has
// them in the order in which they were written. The JSON form is what the helper sends
// (see helper.Exit), after the output.
type Result struct {
	// Output is the output as written, byte for byte. If Truncated, it is the first
	// Head bytes and the last len(Output)-Head bytes of the output. It is empty if
	// Command.Sink received the output.
	Output    []byte `json:"-"`
	Head      int    `json:"head"`
	Truncated bool   `json:"truncated,omitempty"`
	// Bytes and Chars count the whole output, including what was not kept. A character
	// is a Unicode code point; each byte that is not part of valid UTF-8 counts as
	// one.
	Bytes int64 `json:"bytes"`
	Chars int64 `json:"chars"`
	// ExitCode is the exit code of the shell: 128+n if signal n killed it (then Signal
	// is n), -1 if the command timed out, was cancelled or was not run.
	ExitCode int           `json:"exit_code"`
	Signal   int           `json:"signal,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	// TimedOut reports that the command was killed at its timeout, with every process
	// it had started. Survivors is the number of processes that could not be killed,
	// because they hang in a system call.
	TimedOut  bool `json:"timed_out,omitempty"`
	Survivors int  `json:"survivors,omitempty"`
	// Killed is the number of processes killed at the timeout or cancellation.
	Killed int `json:"killed,omitempty"`
	// KilledEarlier reports that processes of earlier commands were killed too, because
	// the kill could not distinguish them from those of this command, or because they
	// used up the process limit, so that this command could not start.
	KilledEarlier bool `json:"collateral,omitempty"`
	// Background lists the processes that the command left running when it ended
	// normally, oldest first, at most MaxBackground.
	Background []Process `json:"background,omitempty"`
	// OOMKilled is the number of processes that the kernel's OOM killer killed while
	// the command ran; -1 if unknown.
	OOMKilled int `json:"oom_killed"`
	// DiskFull reports that the file system of "/" was full when the command ended. It
	// matters in containers only, where "/" is on the disk of the container engine.
	DiskFull bool `json:"root_full,omitempty"`
	// Failure is a sentence that says why the command was not run, for example that
	// there is no shell or that the text is too long; empty if the command was run.
	Failure string `json:"failure,omitempty"`
}

// MaxBackground is the maximum length of Result.Background.
const MaxBackground = 32

// Process is a process that a command left running.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // the kernel's short name (comm), 15 bytes at most
}

// Info describes a sandbox, as seen from inside it.
type Info struct {
	// System, Node, Release, Version and Machine are the fields of uname(2).
	System  string `json:"system"`
	Node    string `json:"node"`
	Release string `json:"release"`
	Version string `json:"version"`
	Machine string `json:"machine"`
	// Dir is the working directory in which commands start. If the configured directory
	// does not exist, Dir is another one, and Warnings has a sentence about it.
	Dir string `json:"cwd"`
	// Network reports whether commands can use a network.
	Network bool `json:"network"`
	// NetworkProof is the result of a test that commands cannot use a network: a text that
	// begins with NetworkProven or NetworkUnproven. It is empty if there was no test.
	NetworkProof string `json:"network_proof,omitempty"`
	// Tools reports whether commands can call mini-tool (see Command.Tools).
	Tools bool `json:"tools,omitempty"`
	// Disposable reports that Dir is deleted with the sandbox. In a container (see
	// Image) this applies to every file that commands can change. In the local
	// environment, commands can still change files outside Dir. The user's own folder
	// is not disposable, nor is a sandbox with a writable mount of a host folder.
	Disposable bool `json:"disposable,omitempty"`
	// Image, ImageID and ImageDigest identify the image of a container; empty for
	// other sandboxes. ImageDigest is name@sha256:... in the registry; locally built
	// images have none. One digest may stand for images for several architectures;
	// ImageArch is the architecture of this image, as in GOARCH.
	Image       string `json:"image,omitempty"`
	ImageID     string `json:"image_id,omitempty"`
	ImageDigest string `json:"image_digest,omitempty"`
	ImageArch   string `json:"image_arch,omitempty"`
	// Warnings are sentences for the user about unusual properties of the sandbox.
	Warnings []string `json:"warnings,omitempty"`
	// Prepared describes the preparation of the image; nil if there was none.
	Prepared *ImagePreparation `json:"-"`
}

// Beginnings of Info.NetworkProof.
const (
	NetworkProven   = "proven: "   // followed by what cannot be reached
	NetworkUnproven = "unproven: " // followed by the reason
)

// ImagePreparation describes work that was done once on an image, for all sandboxes
// started from it.
type ImagePreparation struct {
	// Note is the text that the preparation stored for later sandboxes.
	Note string
	// Waited is how long the start of this sandbox waited for the preparation.
	Waited time.Duration
}
