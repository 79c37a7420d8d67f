// Package helper is the conversation between mini and the small program that
// is PID 1 of every sandbox: length-prefixed frames over one byte stream in
// each direction (a container's attached stdin and stdout).
//
// It holds the frames, their limits and the client side. The program itself is
// cmd/mini-helper; the binaries that are put into containers are embedded by
// env/helper/binaries. Standard library only.
//
// What comes out of a sandbox is hostile until proven otherwise: frames are
// bounded before they are read, matched by id, and awaited with a deadline on
// mini's own clock.
//
// # Frames
//
//	uint32 big endian   length of the rest: 5 + len(body)
//	byte                kind
//	uint32 big endian   id of the command it belongs to; 0 where there is none
//	...                 body: JSON, or raw bytes for output and scripts
//
// The client opens with Setup, the helper answers Hello; from then on the
// client sends Run and the helper answers with any number of Output frames
// and one Exit. Alive frames, sent at any time, renew the lease. At the end of
// its input the helper kills everything and exits.
//
// A command may ask, where its Run says so. Then the helper sends Ask frames, with
// the id of the command, and in front of the request a number that counts from 1;
// the client sends one Answer frame for each, with the same number, at most
// MaxAsks of them being open. A Gone frame says of a request that nobody awaits its
// answer; it gets one all the same, which frees its place. The same two kinds,
// without id and number, are what mini-tool and the helper say to each other
// over a socket in the sandbox. A Run may name a command, one that may ask, to be
// inside of: the two run at once, and so do several inside of one. The Exit of a
// command comes after those of all inside of it; a Run that comes too late to be
// inside of its command gets none, nor does a request then get an answer.
//
// Between commands files travel, as tar streams cut into Data frames. The client
// opens with Put (it sends, and ends with an empty Data frame) or with Get (the
// helper sends); either way the helper's Done is the last word, and ends a Put
// early when the files cannot be written. Whoever sends may be Window chunks
// ahead of what the other side has said, in More frames, that it has used up:
// neither ever holds more than that.
package helper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/env"
)

// Version of the protocol. It changes with every incompatible change; client
// and helper refuse to talk across versions. 4 brought requests of commands, and
// commands inside of commands.
const Version = 4

// Kind says what a frame is.
type Kind byte

// The kinds of frames, and who sends them.
const (
	KindSetup  Kind = 'S' // client: Setup as JSON; the first frame
	KindRun    Kind = 'R' // client: see EncodeRun
	KindPut    Kind = 'P' // client: a directory, raw bytes; files follow that go there
	KindGet    Kind = 'G' // client: a path, raw bytes; the helper sends what is there
	KindData   Kind = 'D' // who sends files: a piece of the tar stream, at most MaxChunk bytes
	KindMore   Kind = 'M' // who takes files: how many chunks were used up, see EncodeMore
	KindCancel Kind = 'C' // client: kill the command with this id, as at a timeout, or give up its files
	KindAlive  Kind = 'K' // client: renews the lease; no body, no answer
	KindHello  Kind = 'H' // helper: Hello as JSON; the answer to Setup
	KindOutput Kind = 'O' // helper: raw output, at most MaxChunk bytes
	KindExit   Kind = 'X' // helper: Exit as JSON; ends the command with this id
	KindDone   Kind = 'E' // helper: Done as JSON; ends the Put or Get with this id
	KindFault  Kind = 'F' // helper: text; the helper cannot go on and exits
	KindAsk    Kind = 'Q' // mini-tool and helper: an Ask; towards the client after a number
	KindAnswer Kind = 'A' // client and helper: an Answer; towards the helper after the number of its Ask
	KindGone   Kind = 'L' // helper: the number of an Ask whose asker is gone; it is to be answered all the same
)

// Bounds of frames, in bytes. Each side checks the length before it reads on.
const (
	headerSize = 5
	// MaxChunk bounds the body of an Output or Data frame.
	MaxChunk = 64 << 10
	// MaxPath bounds the body of a Put or Get frame.
	MaxPath = 64 << 10
	// Window is how many Data frames may be on their way.
	Window = 16
	// MaxReply bounds the body of every other frame of the helper.
	MaxReply = 256 << 10
	// MaxRequest bounds the body of the client's frames: a script and its
	// settings.
	MaxRequest = env.MaxScript + 2<<20
)

// Frame is one message as it travels.
type Frame struct {
	Kind Kind
	ID   uint32
	Body []byte
}

// ErrFrame is wrapped by every error about a frame that breaks the rules.
var ErrFrame = errors.New("malformed frame")

// WriteFrame writes one frame with a single Write.
func WriteFrame(w io.Writer, f Frame) error {
	b := make([]byte, 4+headerSize+len(f.Body))
	binary.BigEndian.PutUint32(b, uint32(headerSize+len(f.Body)))
	b[4] = byte(f.Kind)
	binary.BigEndian.PutUint32(b[5:], f.ID)
	copy(b[4+headerSize:], f.Body)
	_, err := w.Write(b)
	return err
}

// ReadFrame reads one frame whose body is at most limit bytes. It returns
// io.EOF at a clean end, io.ErrUnexpectedEOF inside a frame, and an error that
// wraps ErrFrame, without reading further, when the length breaks the rules.
// No more memory is taken than has arrived.
func ReadFrame(r io.Reader, limit int) (Frame, error) {
	var head [4 + headerSize]byte
	if _, err := io.ReadFull(r, head[:4]); err != nil {
		return Frame{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:4]))
	if n < headerSize || n-headerSize > int64(limit) {
		return Frame{}, fmt.Errorf("%w: length %d, allowed %d to %d", ErrFrame, n, headerSize, headerSize+limit)
	}
	if _, err := io.ReadFull(r, head[4:]); err != nil {
		return Frame{}, NoEOF(err)
	}
	body, err := readBody(r, n-headerSize)
	if err != nil {
		return Frame{}, NoEOF(err)
	}
	return Frame{Kind: Kind(head[4]), ID: binary.BigEndian.Uint32(head[5:]), Body: body}, nil
}

// readBody grows with what arrives, so that a forged length alone costs nothing.
func readBody(r io.Reader, n int64) ([]byte, error) {
	if n <= MaxChunk {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// NoEOF is err, with io.ErrUnexpectedEOF for io.EOF: the end of a stream inside of a
// frame.
func NoEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// NoTrace is an argument of the helper: its commands run without CAP_SYS_PTRACE.
const NoTrace = "no-trace"

// Setup is what the client says first: how every command is to run.
type Setup struct {
	Version int `json:"version"`
	// Dir is where commands start. Where it does not exist the helper uses
	// the directory it was started in, and Hello says so.
	Dir string `json:"dir"`
	// Env is added to the environment the helper was started with.
	Env map[string]string `json:"env,omitempty"`
	// Interpreter is the shell and its flags; the script follows as the next
	// argument. A missing bash is replaced by /bin/sh.
	Interpreter []string `json:"interpreter"`
	// LeaseSeconds is how long the helper lives without a frame; 0 is for ever.
	LeaseSeconds int `json:"lease_seconds"`
	// Meeting is a Unix socket in the sandbox, where the client awaits the helper.
	// When it can be reached, Hello and every later frame of both sides go
	// through it, and the first stream says by its end that the client is gone.
	// Otherwise all stays as it is.
	Meeting string `json:"meeting,omitempty"`
	// ToolDir is the folder with mini-tool, for commands that may ask: it may be
	// empty until the first of them. Empty means that there is none.
	ToolDir string `json:"tool_dir,omitempty"`
}

// Info is what the helper says of the sandbox.
func (h Hello) Info() env.Info {
	return env.Info{
		System: h.System, Node: h.Node, Release: h.Release, Version: h.Kernel, Machine: h.Machine,
		Dir: h.Dir, Tools: true,
	}
}

// Hello is the helper's answer to Setup.
type Hello struct {
	Version int `json:"version"`
	// Hash is the SHA-256 of the helper's own binary, in hex.
	Hash string `json:"hash"`
	// Dir is where commands will start, DirMissing that it is not Setup.Dir.
	Dir        string `json:"dir"`
	DirMissing bool   `json:"dir_missing,omitempty"`
	// Shell is what will run scripts; empty when the image has no shell.
	Shell string `json:"shell"`
	// Uname is asked inside the sandbox.
	System  string `json:"system"`
	Node    string `json:"node"`
	Release string `json:"release"`
	Kernel  string `json:"kernel"`
	Machine string `json:"machine"`
}
