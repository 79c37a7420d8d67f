// Package helper implements the protocol between mini and its helper, a small program
// that runs in every sandbox, in containers as PID 1: length-prefixed frames over one
// byte stream in each direction, such as a container's attached stdin and stdout.
//
// The package holds the frames, their limits and the client. The helper itself is
// cmd/mini-helper; env/helper/binaries embeds its binaries. Besides package env, the
// package imports the standard library only.
//
// Data from a sandbox is untrusted: the client checks the size of frames before it
// reads them, matches them by id, and waits for them with a deadline on its own clock.
//
// # Frames
//
//	uint32 big endian   length of the rest: 5 + len(body)
//	byte                kind
//	uint32 big endian   id of the command or transfer; 0 if none
//	...                 body: JSON, text or bytes (see Kind)
//
// The client opens with Setup, and the helper responds with Hello. Then the client
// sends Run frames. The helper responds to each with any number of Output frames and
// one Exit. Every frame of the client renews the lease; Keepalive frames, which may be
// sent at any time, do nothing else. At the end of its input the helper kills every
// process and exits.
//
// If its Run allows it, a command may call tools. For each call the helper sends a
// ToolRequest frame with the id of the command; its body starts with the number of the
// request, counted from 1. The client responds to each with one ToolResponse with the
// same number; at most MaxToolRequests are open. A ToolCancel frame says that the
// caller of a request has exited; the client still responds, which frees the slot.
// Between mini-tool and the helper, ToolRequest and ToolResponse frames without id and
// number are sent over a socket in the sandbox.
//
// A Run may name an outer command, which must be one that may call tools. The nested
// command runs at the same time as the outer one and other nested ones. The Exit of a
// command comes after those of its nested commands. A nested command whose outer
// command has just ended gets no Exit, and its tool requests get no response.
//
// If its Run asks for a bridge, the helper listens on a loopback port for the time of
// the command, and passes each connection on as a stream: an Open frame with a new id,
// larger than all before, then StreamData frames of both sides. Each side may send
// StreamWindow chunks, and further ones as StreamCredit frames acknowledge them.
// StreamClose says that its sender sends nothing more; a client that has sent it also
// reads nothing more. The stream ends when both sides have sent it, or with the Exit of
// the command. The client may send frames of a stream that has just ended.
//
// Between commands, files are transferred as tar streams, cut into Data frames. To
// write files, the client sends Put, the data and an empty Data frame. To read files,
// it sends Get, and the helper sends the data. The helper ends both with Done. It may
// end a Put early if it cannot write the files. The sender may be up to Window chunks
// ahead of the receiver, which acknowledges chunks with WindowUpdate frames, so that
// neither side buffers more.
package helper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/env"
)

// Version is the version of the protocol. It changes with every incompatible change;
// client and helper require the same version. Version 5 added streams.
const Version = 5

// Kind is the type of a frame.
type Kind byte

// The kinds of frames, with their senders.
const (
	KindSetup        Kind = 'S' // client: Setup as JSON; the first frame
	KindRun          Kind = 'R' // client: see EncodeRun
	KindPut          Kind = 'P' // client: a directory, raw bytes; files to write there follow
	KindGet          Kind = 'G' // client: a path, raw bytes; the helper sends its contents
	KindData         Kind = 'D' // sender of files: a chunk of the tar stream, at most MaxChunk bytes
	KindWindowUpdate Kind = 'M' // receiver of files: the number of processed chunks, see EncodeWindowUpdate
	KindCancel       Kind = 'C' // client: kill the command with this id, or cancel the transfer
	KindKeepalive    Kind = 'K' // client: renews the lease; no body, no response
	KindHello        Kind = 'H' // helper: Hello as JSON; the response to Setup
	KindOutput       Kind = 'O' // helper: raw output, at most MaxChunk bytes
	KindExit         Kind = 'X' // helper: Exit as JSON; ends the command with this id
	KindDone         Kind = 'E' // helper: Done as JSON; ends the Put or Get with this id
	KindError        Kind = 'F' // helper: an error message; the helper exits
	KindToolRequest  Kind = 'Q' // mini-tool and helper: a ToolRequest, to the client after a request number
	KindToolResponse Kind = 'A' // client and helper: a ToolResponse, from the client after a request number
	KindToolCancel   Kind = 'L' // helper: the number of a request whose caller has exited; the client still responds
	KindOpen         Kind = 'N' // helper: a new stream with this id; no body
	KindStreamData   Kind = 'B' // client and helper: a chunk of the stream, 1 to MaxChunk bytes
	KindStreamCredit Kind = 'W' // client and helper: the number of processed chunks, see EncodeWindowUpdate
	KindStreamClose  Kind = 'Z' // client and helper: the sender sends nothing more; no body
)

// Limits of frames, in bytes. Each side checks the length before it reads the body.
const (
	headerSize = 5
	// MaxChunk is the maximum body size of an Output or Data frame.
	MaxChunk = 64 << 10
	// MaxPath is the maximum body size of a Put or Get frame.
	MaxPath = 64 << 10
	// Window is the maximum number of Data frames in flight.
	Window = 16
	// MaxHelperFrame is the maximum body size of all other frames of the helper.
	MaxHelperFrame = 256 << 10
	// MaxClientFrame is the maximum body size of the client's frames: a script and its
	// settings.
	MaxClientFrame = env.MaxScript + 2<<20
)

// Frame is one message of the protocol.
type Frame struct {
	Kind Kind
	ID   uint32
	Body []byte
}

// ErrFrame is wrapped by every error about a frame that violates the protocol.
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

// ReadFrame reads one frame whose body is at most limit bytes. It returns io.EOF at the
// end of the stream, io.ErrUnexpectedEOF inside a frame, and an error that wraps
// ErrFrame, without reading the body, if the length is invalid. For a body larger than
// MaxChunk, it allocates memory only as data arrives.
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
		return Frame{}, UnexpectedEOF(err)
	}
	body, err := readBody(r, n-headerSize)
	if err != nil {
		return Frame{}, UnexpectedEOF(err)
	}
	return Frame{Kind: Kind(head[4]), ID: binary.BigEndian.Uint32(head[5:]), Body: body}, nil
}

// readBody allocates memory beyond MaxChunk only as data arrives, so that a forged
// length cannot exhaust the memory.
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

// UnexpectedEOF replaces io.EOF, which marks the end of the stream, by
// io.ErrUnexpectedEOF.
func UnexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ProgramArg is the first command-line argument of a helper. An executable that is not
// mini-helper knows by it that it was started as one.
const ProgramArg = "mini-helper"

// NoTraceArg is a command-line argument of the helper: run commands without
// CAP_SYS_PTRACE.
const NoTraceArg = "no-trace"

// Setup is the first message of the client: settings for all commands.
type Setup struct {
	Version int `json:"version"`
	// Dir is the working directory of commands. If Dir is empty or not an existing
	// directory, the helper uses the directory in which it was started, and in the
	// latter case sets Hello.DirMissing.
	Dir string `json:"dir"`
	// Env is added to the environment with which the helper was started, and overrides
	// it.
	Env map[string]string `json:"env,omitempty"`
	// Interpreter is the shell with its flags; the script is appended as the last
	// argument. If bash is missing, sh is used.
	Interpreter []string `json:"interpreter"`
	// LeaseSeconds is how long the helper waits for the next frame before it exits; 0
	// means forever.
	LeaseSeconds int `json:"lease_seconds"`
	// Socket is the path of a Unix socket in the sandbox on which the client listens.
	// If the helper can connect to it, Hello and all later frames of both sides use
	// this connection, and the end of the first stream tells the helper that the
	// client is gone. Otherwise the first stream is used for all frames.
	Socket string `json:"meeting,omitempty"`
	// ToolDir is the directory of mini-tool. The client installs mini-tool there before
	// the first command that may call tools, at the latest. If ToolDir is "", mini-tool
	// is not on the PATH.
	ToolDir string `json:"tool_dir,omitempty"`
}

// Info returns the env.Info of the sandbox.
func (h Hello) Info() env.Info {
	return env.Info{
		System: h.System, Node: h.Node, Release: h.Release, Version: h.Kernel, Machine: h.Machine,
		Dir: h.Dir, Tools: true,
	}
}

// Hello is the helper's response to Setup.
type Hello struct {
	Version int `json:"version"`
	// Hash is the SHA-256 of the helper's own binary, in hex.
	Hash string `json:"hash"`
	// Dir is the working directory of commands. DirMissing reports that Setup.Dir is
	// not an existing directory.
	Dir        string `json:"dir"`
	DirMissing bool   `json:"dir_missing,omitempty"`
	// Shell is the path of the shell that runs scripts; empty if the image has none.
	Shell string `json:"shell"`
	// The result of uname(2) in the sandbox.
	System  string `json:"system"`
	Node    string `json:"node"`
	Release string `json:"release"`
	Kernel  string `json:"kernel"`
	Machine string `json:"machine"`
}
