package helper

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// Run is the settings of one command; the script travels beside it.
type Run struct {
	Dir           string            `json:"dir,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Interpreter   []string          `json:"interpreter,omitempty"` // instead of Setup's
	TimeoutMillis int64             `json:"timeout_ms"`
	OutputLimit   int               `json:"output_limit"`
	Markers       []string          `json:"markers,omitempty"`
	// Asks says that the command may ask, Local which tools mini-tool has itself.
	Asks  bool     `json:"asks,omitempty"`
	Local []string `json:"local,omitempty"`
	// Inside is the command that this one runs inside of, one that may ask; 0 for
	// none. When that one is over the helper is silent on this one: its Exit says
	// enough.
	Inside uint32 `json:"inside,omitempty"`
}

// Bounds of commands that ask, and of those that run inside of others.
const (
	// MaxAsks is how many requests of a command are under way at once.
	MaxAsks = 16
	// MaxDepth is how deep commands run inside of each other: those inside of
	// one that runs by itself are at depth 1.
	MaxDepth = 8
	// MaxInside is how many commands run inside of others at once, in all.
	MaxInside = 64
)

// runWire is Run as it travels. JSON holds text only; what is not UTF-8 goes
// beside it, byte for byte.
type runWire struct {
	Run
	RawDir []byte   `json:"raw_dir,omitempty"`
	RawEnv [][]byte `json:"raw_env,omitempty"` // names and values by turns
}

func wireOf(r Run) runWire {
	w := runWire{Run: r}
	if !utf8.ValidString(r.Dir) {
		w.Dir, w.RawDir = "", []byte(r.Dir)
	}
	for name, value := range r.Env {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			continue
		}
		if len(w.RawEnv) == 0 {
			w.Env = maps.Clone(r.Env) // the caller's stays as it is
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

// EncodeRun makes the body of a Run frame: the length of the settings (uint32
// big endian), the settings as JSON, then the script, byte for byte.
func EncodeRun(r Run, script string) ([]byte, error) {
	settings, err := json.Marshal(wireOf(r))
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
	var w runWire
	if err := json.Unmarshal(rest[:n], &w); err != nil {
		return Run{}, "", fmt.Errorf("%w: settings: %w", ErrFrame, err)
	}
	return w.run(), string(rest[n:]), nil
}

// Exit is the helper's report of a command that ended. The output travelled
// before it; Head says where the gap is when Truncated.
type Exit struct {
	env.Result
	Cancelled bool `json:"cancelled,omitempty"`
	Over      bool `json:"over,omitempty"` // ended with the command that it ran inside of
}
