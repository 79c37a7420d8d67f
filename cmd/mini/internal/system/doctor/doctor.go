// Package doctor checks whether a machine is ready for a batch: container engine, disks, keys,
// servers and limits. It changes nothing, and its output contains no secrets.
//
//	checks := doctor.Run(ctx, doctor.Config{Environment: "docker", Workers: 8})
//	err := doctor.Doc(checks).WriteText(os.Stdout, 80)
package doctor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
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

// maxText is the length in characters of a text, which may come from a server.
const maxText = 400

// Doc returns the checks for readers.
func Doc(checks []Check) *doc.Doc {
	d, rows, warnings := &doc.Doc{}, [][]string{}, 0
	for _, c := range checks {
		mark := string(c.Status)
		switch c.Status {
		case Fail:
			mark = "FAIL"
		case Warn:
			warnings++
		}
		rows = append(rows, []string{mark, c.Name, text.ClipRunes(c.Finding, maxText)})
		if c.Advice != "" {
			rows = append(rows, []string{"", "", "-> " + text.ClipRunes(c.Advice, maxText)})
		}
	}
	d.Table("llw", rows)
	switch failed := len(FailedChecks(checks)); {
	case failed > 0: // the error of the command names the failed checks
	case warnings == 0:
		d.Blank()
		d.Line(0, "ready")
	default:
		d.Blank()
		d.Line(0, "ready, with %s", text.Count(warnings, "warning"))
	}
	return d
}
