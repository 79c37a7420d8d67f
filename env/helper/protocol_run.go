package helper

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// Run holds the settings of one command. The script follows the settings in the same
// frame.
type Run struct {
	Dir           string            `json:"dir,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	User          string            `json:"user,omitempty"`
	Interpreter   []string          `json:"interpreter,omitempty"` // overrides Setup.Interpreter
	TimeoutMillis int64             `json:"timeout_ms"`
	OutputLimit   int               `json:"output_limit"` // bytes
	Markers       []string          `json:"markers,omitempty"`
	// AllowTools lets the command call tools. LocalTools names the tools that mini-tool
	// runs itself.
	AllowTools bool     `json:"asks,omitempty"`
	LocalTools []string `json:"local,omitempty"`
	// Outer is the id of the outer command, which must be one that may call tools; 0 if
	// the command is not nested. If the outer command has ended, the helper sends no
	// Exit for this one, because the Exit of the outer command implies that this one
	// has ended.
	Outer uint32 `json:"inside,omitempty"`
	// Bridge offers the command a loopback port (see BridgeVariable), whose connections
	// become streams. The command may not call tools nor be nested.
	Bridge bool `json:"bridge,omitempty"`
}

// Limits of tool requests and nested commands.
const (
	// MaxToolRequests is the maximum number of open tool requests of a command.
	MaxToolRequests = 16
	// MaxNesting is the maximum nesting depth. A command nested in one that is not
	// nested has depth 1.
	MaxNesting = 8
	// MaxNested is the maximum number of running nested commands, in total.
	MaxNested = 64
)

// runWire is the JSON form of Run. JSON strings must be UTF-8, so a Dir, or a variable
// of Env, that is not is sent as base64.
type runWire struct {
	Run
	RawDir []byte   `json:"raw_dir,omitempty"`
	RawEnv [][]byte `json:"raw_env,omitempty"` // alternating names and values
}

func toWire(r Run) runWire {
	w := runWire{Run: r}
	if !utf8.ValidString(r.Dir) {
		w.Dir, w.RawDir = "", []byte(r.Dir)
	}
	for name, value := range r.Env {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			continue
		}
		if len(w.RawEnv) == 0 {
			w.Env = maps.Clone(r.Env) // do not modify the caller's map
		}
		delete(w.Env, name)
		w.RawEnv = append(w.RawEnv, []byte(name), []byte(value))
	}
	return w
}

func (w runWire) run() Run {
	r := w.Run
	if len(w.RawDir) > 0 {
		r.Dir = string(w.RawDir)
	}
	for i := 0; i+1 < len(w.RawEnv); i += 2 {
		if r.Env == nil {
			r.Env = map[string]string{}
		}
		r.Env[string(w.RawEnv[i])] = string(w.RawEnv[i+1])
	}
	return r
}

// EncodeRun returns the body of a Run frame: the length of the settings (big-endian
// uint32), the settings as JSON, and the script, byte for byte. The error wraps
// ErrFrame if the body exceeds MaxClientFrame.
func EncodeRun(r Run, script string) ([]byte, error) {
	settings, err := json.Marshal(toWire(r))
	if err != nil {
		return nil, fmt.Errorf("encode run: %w", err)
	}
	b := make([]byte, 4, 4+len(settings)+len(script))
	binary.BigEndian.PutUint32(b, uint32(len(settings)))
	b = append(b, settings...)
	b = append(b, script...)
	if len(b) > MaxClientFrame {
		return nil, fmt.Errorf("%w: run of %d bytes, allowed %d", ErrFrame, len(b), MaxClientFrame)
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
	var w runWire
	if err := json.Unmarshal(rest[:n], &w); err != nil {
		return Run{}, "", fmt.Errorf("%w: settings: %w", ErrFrame, err)
	}
	return w.run(), string(rest[n:]), nil
}

// Exit is the helper's report of a finished command. The Output frames precede it. If
// the output is truncated, Head is the offset at which bytes are missing.
type Exit struct {
	env.Result
	Cancelled  bool `json:"cancelled,omitempty"`
	OuterEnded bool `json:"over,omitempty"` // the command ended with its outer command
}
