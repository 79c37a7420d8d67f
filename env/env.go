// Package env says what a sandbox is: a place where the commands of one
// attempt run, one after another, each in a new shell.
//
// The package holds types and one small interface; the sandboxes themselves
// live beside it (local, docker), one folder each, and pass the same
// conformance suite (envtest). It imports the standard library only, and knows
// neither models nor agents.
//
//	box, err := engine.Start(ctx, docker.Config{Image: "mini-base"})
//	if err != nil { ... }
//	defer box.Close(ctx)
//	res, err := box.Execute(ctx, env.Command{Script: "git status", Timeout: time.Minute})
package env

import (
	"context"
	"io"
	"time"
)

// Environment is a sandbox that is up and running.
//
// A command that fails, times out, is killed or cannot be started by its
// shell is a Result, never an error: the agent is told and goes on. An error
// says that the sandbox itself is lost (see Error), that Command.Sink failed
// (see ErrSink) or that ctx ended; when ctx ends in mid-command everything the command started is killed before
// Execute returns, and the partial Result comes with the context's cause.
//
// Methods are safe for concurrent use, but commands run one at a time: a
// second Execute waits for the first.
type Environment interface {
	// Execute runs one command to its end and returns what it did.
	Execute(ctx context.Context, c Command) (Result, error)
	// Info describes the sandbox from within; it is known once the sandbox
	// is up and does not change.
	Info() Info
	// Close ends every process in the sandbox and removes what was created
	// for it. A second call returns nil. Execute after Close is an error.
	Close(ctx context.Context) error
}

// Files is implemented by environments that carry files in and out, past the
// shell: any name and any content travels byte for byte. A tree travels as a
// tar stream (PAX), as "docker cp -" has it; env/files makes and reads them.
// Put and Get take turns with commands.
type Files interface {
	// Put unpacks a tar stream below dir, an absolute path, which is made when
	// it is missing. Files that are there are replaced, a symbolic link is
	// never followed on the way, and owners are those that commands run as.
	Put(ctx context.Context, dir string, tree io.Reader) error
	// Get writes path as a tar stream: a file by its base name, a directory as
	// its base name and all below it. Symbolic links stay links. An error that
	// wraps fs.ErrNotExist says that there is no such path.
	Get(ctx context.Context, path string, tree io.Writer) error
}

// FilesOf is e as Files, or the nearest environment that e stands around, which it
// says by a method Unwrap() Environment.
func FilesOf(e Environment) (f Files, ok bool) {
	for {
		if f, ok = e.(Files); ok {
			return f, true
		}
		around, is := e.(interface{ Unwrap() Environment })
		if !is {
			return nil, false
		}
		e = around.Unwrap()
	}
}

// Limits every environment keeps, whatever a command asks for.
const (
	// MaxScript is the longest command text, in bytes. A longer one is not
	// run; the Result says so.
	MaxScript = 10 << 20
	// DefaultOutputLimit is how many bytes of output are kept when
	// Command.OutputLimit is zero: its beginning and its end, half of each as
	// long as MaxTail allows.
	DefaultOutputLimit = 256 << 10
	// MinOutputLimit is the smallest limit that is honoured: below it the
	// head and tail of an observation could cut a character.
	MinOutputLimit = 64 << 10
	// SubmissionLimit is how many bytes are kept of an output that begins
	// with one of Command.Markers.
	SubmissionLimit = 100 << 20
	// MaxTail bounds the end that is kept, in bytes: it has to be held until it
	// is known what the end is. A larger limit goes to the beginning.
	MaxTail = 8 << 20
	// SinkLimit is the largest limit that is honoured for a command with a
	// Sink; without one it is SubmissionLimit.
	SinkLimit = 1 << 30
)

// Command is one action: a text for the shell and the bounds it runs in.
type Command struct {
	// Script is the text for the interpreter ("bash -c" unless the
	// environment was configured otherwise), at most MaxScript bytes. Any
	// size is passed whole; a text with a NUL byte cannot be run and gives a
	// Result that says so.
	Script string
	// Dir is the working directory; empty means the environment's own.
	Dir string
	// Env is added to the environment's variables and wins over them.
	Env map[string]string
	// Interpreter replaces the environment's for this command; empty keeps it.
	Interpreter []string
	// Timeout bounds the command. Zero means the environment's default.
	Timeout time.Duration
	// OutputLimit is how many bytes of output are kept (head and tail);
	// zero means DefaultOutputLimit.
	OutputLimit int
	// Markers lift the output limit to SubmissionLimit when the first line
	// of the output, leading white space aside, equals one of them: a patch
	// must never be shortened.
	Markers []string
	// Sink, where it is not nil, is given the kept output as it comes, from
	// another goroutine than the caller's, and Result.Output stays empty: a long
	// log takes no memory. Nothing is written to it after Execute has returned.
	//
	// A Sink that fails, or takes nothing for long (sink.Patience), ends the
	// command as the end of ctx does; the error wraps ErrSink and the sandbox
	// stays usable. One that never returns from Write keeps a goroutine.
	Sink io.Writer
	// Watch, where it is not nil, is shown the kept output as it comes, beside
	// Result.Output or the Sink: all pieces together are that. It may be
	// called from another goroutine than the caller's, one call at a time, and
	// is not after Execute has returned. The piece is only valid during the call, and
	// not to be changed. The call must be quick, and use no method of the
	// environment: the output, and with it the command, waits for it.
	//
	// The beginning of an output, which is half of the limit or more, comes as
	// it is written. What comes after it is held at its source, for only when the
	// command is over is it known what its end is; the end comes then, in one
	// go (see Result.Head). An output that begins with a marker comes whole.
	Watch func(piece []byte)
	// Tools, where it is not nil, is what the command can ask for. Environments
	// without Info.Tools do not heed it.
	Tools *Tools
}

// Result is what a command did. Stdout and stderr share one pipe, so Output
// has them in the order in which they were written. As JSON a helper reports it
// (see helper.Exit), after the output.
type Result struct {
	// Output is the bytes as written, byte for byte. When Truncated, it is
	// the first Head bytes and the last len(Output)-Head bytes. It is empty
	// where Command.Sink got them.
	Output    []byte `json:"-"`
	Head      int    `json:"head"`
	Truncated bool   `json:"truncated,omitempty"`
	// Bytes and Chars count the whole output, kept or not. A character is a
	// Unicode code point; every byte that is not part of valid UTF-8 counts
	// as one.
	Bytes int64 `json:"bytes"`
	Chars int64 `json:"chars"`
	// ExitCode is the shell's; 128+n when signal n killed it (Signal says
	// which), -1 when the command timed out or never ran.
	ExitCode int           `json:"exit_code"`
	Signal   int           `json:"signal,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	// TimedOut says that the timeout ended the command; all it had started
	// was killed. Survivors counts processes that could not be killed: 0
	// unless the kernel would not let go of them.
	TimedOut  bool `json:"timed_out,omitempty"`
	Survivors int  `json:"survivors,omitempty"`
	// Killed counts the processes that were killed at a timeout or cancel.
	Killed int `json:"killed,omitempty"`
	// Collateral says that processes of earlier commands were killed: the kill at
	// a timeout had to go beyond the command, or they had left no process for
	// this command to be started in.
	Collateral bool `json:"collateral,omitempty"`
	// Background lists processes that the command left running after a
	// normal end, oldest first, at most MaxBackground of them.
	Background []Process `json:"background,omitempty"`
	// OOMKilled counts processes the kernel killed for want of memory while
	// the command ran; -1 where that cannot be known.
	OOMKilled int `json:"oom_killed"`
	// RootFull says that the file system of "/" had no room left when the
	// command had ended: in a container, the disk of its engine. Commands on the
	// host change other file systems, and classes of the host do not tell.
	RootFull bool `json:"root_full,omitempty"`
	// Failure says in a sentence why a command never ran (no shell, working
	// directory missing, NUL byte, text too long); empty when it did run.
	Failure string `json:"failure,omitempty"`
}

// MaxBackground bounds Result.Background.
const MaxBackground = 32

// Process is a process left running by a command.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // the kernel's short name (comm), 15 bytes at most
}

// Info is what a sandbox says of itself, asked inside it.
type Info struct {
	// System, Node, Release, Version and Machine are uname's fields.
	System  string `json:"system"`
	Node    string `json:"node"`
	Release string `json:"release"`
	Version string `json:"version"`
	Machine string `json:"machine"`
	// Dir is the working directory commands start in. It differs from the
	// configured one where that does not exist; Warnings then says so.
	Dir string `json:"cwd"`
	// Network says whether commands can reach a network.
	Network bool `json:"network"`
	// Tools says that commands can ask, see Command.Tools.
	Tools bool `json:"tools,omitempty"`
	// Disposable says that Dir, and all below it, is the sandbox's own and goes
	// with it; in a container (see Image) so do all files that commands can
	// change. On the host, what lies around Dir is somebody's, and commands may
	// reach it. The user's own folder is not disposable, nor is a container that
	// can write to a folder of the host's.
	Disposable bool `json:"disposable,omitempty"`
	// Image, ImageID and ImageDigest name what a container was made from; empty
	// elsewhere. The digest is the registry's; an image made here has none. One
	// digest may stand for images of several processors: ImageArch says which
	// this is, in Go's names.
	Image       string `json:"image,omitempty"`
	ImageID     string `json:"image_id,omitempty"`
	ImageDigest string `json:"image_digest,omitempty"`
	ImageArch   string `json:"image_arch,omitempty"`
	// Warnings are sentences for the user about what is unusual here.
	Warnings []string `json:"warnings,omitempty"`
	// Prepared says what was done to the image beforehand; nil where nothing was.
	Prepared *Prepared `json:"-"`
}

// Prepared is work that was done once on an image, for all its sandboxes.
type Prepared struct {
	// Note is what the work left for the sandboxes.
	Note string
	// Waited is how long the start of this sandbox waited for the work.
	Waited time.Duration
}
