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
package helper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/env"
)

// Version of the protocol. It changes with every incompatible change; client
// and helper refuse to talk across versions.
const Version = 1

// Kind says what a frame is.
type Kind byte

// The kinds of frames, and who sends them.
const (
	KindSetup  Kind = 'S' // client: Setup as JSON; the first frame
	KindRun    Kind = 'R' // client: see EncodeRun
	KindCancel Kind = 'C' // client: kill the command with this id, as at a timeout
	KindAlive  Kind = 'K' // client: renews the lease; no body, no answer
	KindHello  Kind = 'H' // helper: Hello as JSON; the answer to Setup
	KindOutput Kind = 'O' // helper: raw output, at most MaxChunk bytes
	KindExit   Kind = 'X' // helper: Exit as JSON; ends the command with this id
	KindFault  Kind = 'F' // helper: text; the helper cannot go on and exits
)

// Bounds of frames, in bytes. Each side checks the length before it reads on.
const (
	headerSize = 5
	// MaxChunk bounds the body of an Output frame.
	MaxChunk = 64 << 10
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
		return Frame{}, noEOF(err)
	}
	body, err := readBody(r, n-headerSize)
	if err != nil {
		return Frame{}, noEOF(err)
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

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

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

// Run is the settings of one command; the script travels beside it.
type Run struct {
	Dir           string            `json:"dir,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Interpreter   []string          `json:"interpreter,omitempty"` // instead of Setup's
	TimeoutMillis int64             `json:"timeout_ms"`
	OutputLimit   int               `json:"output_limit"`
	Markers       []string          `json:"markers,omitempty"`
}

// EncodeRun makes the body of a Run frame: the length of the settings (uint32
// big endian), the settings as JSON, then the script, byte for byte.
func EncodeRun(r Run, script string) ([]byte, error) {
	settings, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode run: %w", err)
	}
	b := make([]byte, 4, 4+len(settings)+len(script))
	binary.BigEndian.PutUint32(b, uint32(len(settings)))
	b = append(b, settings...)
	b = append(b, script...)
	if len(b) > MaxRequest {
		return nil, fmt.Errorf("%w: run of %d bytes, allowed %d", ErrFrame, len(b), MaxRequest)
	}
	return b, nil
}

// DecodeRun is the inverse of EncodeRun.
func DecodeRun(body []byte) (Run, string, error) {
	if len(body) < 4 {
		return Run{}, "", fmt.Errorf("%w: run of %d bytes", ErrFrame, len(body))
	}
	n := int64(binary.BigEndian.Uint32(body))
	rest := body[4:]
	if n > int64(len(rest)) {
		return Run{}, "", fmt.Errorf("%w: settings of %d bytes in a body of %d", ErrFrame, n, len(rest))
	}
	var r Run
	if err := json.Unmarshal(rest[:n], &r); err != nil {
		return Run{}, "", fmt.Errorf("%w: settings: %w", ErrFrame, err)
	}
	return r, string(rest[n:]), nil
}

// Exit is the helper's report of a command that ended. The output travelled
// before it; Head says where the gap is when Truncated. The other fields are
// those of env.Result.
type Exit struct {
	ExitCode      int           `json:"exit_code"`
	Signal        int           `json:"signal,omitempty"`
	DurationNanos int64         `json:"duration_ns"`
	Head          int           `json:"head"`
	Bytes         int64         `json:"bytes"`
	Chars         int64         `json:"chars"`
	Truncated     bool          `json:"truncated,omitempty"`
	TimedOut      bool          `json:"timed_out,omitempty"`
	Cancelled     bool          `json:"cancelled,omitempty"`
	Killed        int           `json:"killed,omitempty"`
	Survivors     int           `json:"survivors,omitempty"`
	Collateral    bool          `json:"collateral,omitempty"`
	Background    []env.Process `json:"background,omitempty"`
	OOMKilled     int           `json:"oom_killed"`
	RootFull      bool          `json:"root_full,omitempty"`
	Failure       string        `json:"failure,omitempty"`
}
