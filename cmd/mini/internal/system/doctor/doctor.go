// Package doctor checks whether a machine is ready for a batch: container engine, disks, keys,
// servers and limits. It changes nothing, and its output contains no secrets.
//
//	checks := doctor.Run(ctx, doctor.Config{Environment: "docker", Workers: 8})
//	err := doctor.Write(os.Stdout, checks, 80)
package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/table"
)

// Status is the result of a check.
type Status string

// The results of checks.
const (
	OK   Status = "ok"
	Warn Status = "warn" // mini works with restrictions
	Fail Status = "fail" // mini does not work
)

// Check is one finding. Advice says what to do; it is empty if all is well.
type Check struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Finding string `json:"finding"`
	Advice  string `json:"advice,omitempty"`
}

// Config describes the intended run.
type Config struct {
	// Environment is the class of the sandboxes: "docker", "local" or "bubblewrap". Checks of
	// what this class does not use return Warn instead of Fail.
	Environment string
	// TrySandbox starts a sandbox of a class without a container engine; nil if not
	// applicable.
	TrySandbox  func(ctx context.Context) error
	HelperDir   string // replaces the embedded helpers
	Platform    string // of the images, e.g. "linux/amd64"; empty means each image's own
	MemoryBytes int64  // memory limit of a sandbox; 0 means no limit
	Workers     int

	// Servers are the model servers: one, or those of a route.
	Servers []Server

	// SettingsError is an error in flags, files or variables. If it is set, the other fields
	// may describe the default settings.
	SettingsError error

	RunDir   string // folder for runs
	DirError error  // why RunDir cannot be used; nil if it can
	CacheDir string // cache of datasets
	// PingHub checks the dataset server; may be nil.
	PingHub func(ctx context.Context) error
}

// Timeouts of one request and of all checks.
const (
	requestTimeout = 5 * time.Second
	totalTimeout   = 9 * time.Second
)

// Server is a model server; a scripted model has none.
type Server struct {
	Scripted bool
	Model    string
	// UsesAnthropicAPI selects Anthropic's API instead of OpenAI's.
	UsesAnthropicAPI bool
	// BaseURL is the address of the server, including "/v1". CustomServer means that the user
	// set it; the server may need no key.
	BaseURL      string
	CustomServer bool
	KeyEnv       string // name of the environment variable with the key
	KeyFile      string // the .env file that sets it, if any
	Key          string `json:"-"` // sent to BaseURL only, never shown
}

// Run runs all checks concurrently. It returns within ten seconds, unless a system call blocks, for example in
// a lost network mount.
func Run(ctx context.Context, cfg Config) []Check {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	e := &checker{Config: cfg}
	probes := []func(context.Context) []Check{
		e.settings, e.docker, e.helper, e.sandbox, e.images, e.disks, e.eachServer(Server.key), e.eachServer(Server.endpoint), e.hub,
	}
	results := make([][]Check, len(probes))
	var running sync.WaitGroup
	for i, probe := range probes {
		running.Go(func() { results[i] = probe(ctx) })
	}
	running.Wait()
	return slices.Concat(results...)
}

// checker runs the checks.
type checker struct {
	Config
	engine engineInfo
}

// engineSeverity returns the status of a check that finds no container engine.
func (e *checker) engineSeverity() Status {
	if e.runsOnHost() {
		return Warn
	}
	return Fail
}

// runsOnHost reports whether sandboxes run without a container engine.
func (e *checker) runsOnHost() bool {
	return configs.RunsOnHost(e.Environment)
}

// FailedChecks returns the names of the failed checks.
func FailedChecks(checks []Check) []string {
	var names []string
	for _, c := range checks {
		if c.Status == Fail {
			names = append(names, c.Name)
		}
	}
	return names
}

// Widths of the first two columns, in characters.
const (
	markWidth = 5
	nameWidth = 10
)

// Write prints the checks and wraps them at width characters, but leaves at least 20 for the text.
func Write(w io.Writer, checks []Check, width int) error {
	var s strings.Builder
	warnings := 0
	for _, c := range checks {
		mark := string(c.Status)
		switch c.Status {
		case Fail:
			mark = "FAIL"
		case Warn:
			warnings++
		}
		head := fmt.Sprintf("%-*s %-*s ", markWidth, mark, nameWidth, c.Name)
		s.WriteString(hangingIndent(head, c.Finding, width))
		if c.Advice != "" {
			s.WriteString(hangingIndent(strings.Repeat(" ", len(head))+"-> ", c.Advice, width))
		}
	}
	switch failed := len(FailedChecks(checks)); {
	case failed > 0: // the error of the command names the failed checks
	case warnings == 0:
		s.WriteString("\nready\n")
	case warnings == 1:
		s.WriteString("\nready, with 1 warning\n")
	default:
		fmt.Fprintf(&s, "\nready, with %d warnings\n", warnings)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// maxText is the length in characters at which hangingIndent cuts a text, which may come from a
// server.
const maxText = 400

// hangingIndent cuts text at maxText, wraps it after head, and indents further lines by the width
// of head.
func hangingIndent(head, text string, width int) string {
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText]) + "…"
	}
	wrapped := table.Wrap(text, max(width-len(head), 20))
	return head + strings.Join(wrapped, "\n"+strings.Repeat(" ", len(head))) + "\n"
}
