package trajectories

import (
	"encoding/json"
	"time"

	"github.com/minibench/mini/model"
)

// Exchange is a model request of an agent other than mini's own, in the provider's form.
// It precedes the records that were derived from it: the messages, and the call.
type Exchange struct {
	Dialect string            `json:"dialect"` // chat, responses, messages or gemini
	Path    string            `json:"path"`
	Count   bool              `json:"count,omitempty"`   // it only counted tokens: no step, no cost
	Headers map[string]string `json:"headers,omitempty"` // that tell the agent's thread
	// Thread is ThreadMain for the conversation of the journal, ThreadChild for that of a
	// subagent, else ThreadSide: the call counts, but its conversation is only here.
	Thread string `json:"thread"`
	Child  int    `json:"child,omitempty"` // number of the subagent
	// Request are the fields of the request. A field in Refs has its value, or the items
	// of its list, in the Contents of this or an earlier exchange, by digest.
	Request  map[string]json.RawMessage `json:"request"`
	Refs     map[string][]string        `json:"refs,omitempty"`
	Contents map[string]json.RawMessage `json:"contents,omitempty"`
	// Response is the answer; that of a streamed one is in the reply's Raw form, if the
	// dialect has one.
	Response json.RawMessage `json:"response,omitempty"`
	// Requested is the model's name in the agent's request, Served the one that the
	// provider reported.
	Requested string      `json:"requested_model,omitempty"`
	Served    string      `json:"served_model,omitempty"`
	Edits     []string    `json:"edits,omitempty"` // of the request, by mini
	Stream    bool        `json:"stream,omitempty"`
	Start     time.Time   `json:"start"`
	Duration  Seconds     `json:"duration"`
	Waited    Seconds     `json:"waited,omitempty"`
	Tries     int         `json:"tries"`
	Usage     model.Usage `json:"usage"`
	Cost      model.Cost  `json:"cost"`
	Cancelled bool        `json:"cancelled,omitempty"` // by the agent
	Error     string      `json:"error,omitempty"`
}

// The values of Exchange.Thread.
const (
	ThreadMain  = "main"
	ThreadChild = "child"
	ThreadSide  = "side"
)

// AgentRun describes an agent other than mini's own after it has ended.
type AgentRun struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Dialect string `json:"dialect,omitempty"`
	Command string `json:"command"`
	SHA256  string `json:"definition_sha256,omitempty"` // of the definition, in hex
	// FolderSHA256 is the hash of the agent's folder, in hex; "" if it has none.
	FolderSHA256 string   `json:"folder_sha256,omitempty"`
	Env          []string `json:"env,omitempty"` // names of variables
	ExitCode     int      `json:"exit_code"`
	// Output is what the agent wrote: if Truncated is set, the beginning, of Head bytes,
	// and the end.
	Output    Bytes   `json:"output"`
	Head      int     `json:"head,omitempty"`
	Truncated bool    `json:"truncated,omitempty"`
	Bytes     int64   `json:"bytes"`
	Duration  Seconds `json:"duration"`
	// Unknown are the requests to paths that no provider has: the version of the agent
	// may be new.
	Unknown []string `json:"unknown_endpoints,omitempty"`
}
