// Package doctor finds out whether a machine is ready for a batch, before
// money is spent: the container engine, disks, keys, servers and limits. It
// looks and reports; it changes nothing, and no secret is in what it says.
//
//	checks := doctor.Examine(ctx, doctor.Config{Environment: "docker", Workers: 8})
//	err := doctor.Write(os.Stdout, checks, 80)
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner/report"
)

// Mark is how a check came out.
type Mark string

// The marks.
const (
	OK   Mark = "ok"
	Warn Mark = "warn" // mini works, but something may not be as it should
	Fail Mark = "fail" // mini will not work
)

// Check is one finding. Advice says what to do; it is empty where all is well.
type Check struct {
	Name    string `json:"name"`
	Mark    Mark   `json:"status"`
	Finding string `json:"finding"`
	Advice  string `json:"advice,omitempty"`
}

// Config says what the machine is to be ready for.
type Config struct {
	// Environment is the class of the sandboxes, "docker", "local" or
	// "bubblewrap". Only what it needs can fail; everything else warns.
	Environment string
	// Sandbox tries what sandboxes without a container engine are made with; nil
	// where the class needs nothing of the kind.
	Sandbox     func(ctx context.Context) error
	HelperDir   string // instead of the embedded helpers
	Platform    string // of the images, as "linux/amd64"; empty is theirs
	MemoryBytes int64  // a sandbox may use
	Workers     int

	// Servers are where the models are asked: one, or those of a route.
	Servers []Server

	// Settings is what is wrong with flags, files or variables; the others
	// are the defaults then.
	Settings error

	Dir   string // where runs go
	Unfit error  // why Dir cannot become a run; nil where it can
	Cache string // where datasets are kept
	// Plan looks at the images of the instances that are to be run; nil
	// without a dataset. Its error is the user's.
	Plan func(ctx context.Context) (Plan, error)
	// Hub asks the server of the datasets for a sign of life; may be nil.
	Hub func(ctx context.Context) error
	// Hint is what to do about an error of Plan or Hub, or empty; may be nil.
	Hint func(err error) string
	// Terminal says what is known of it.
	Terminal string
}

// Plan is what a batch needs of the engine's disk.
type Plan struct {
	Instances int
	Images    int // distinct
	Missing   int // to be pulled
	// MissingBytes is a rough figure of what those take.
	MissingBytes int64
	Problem      string // why nothing is known of the images
}

// probe is checks that are made together. One that does not come back in time
// is answered for.
type probe struct {
	name string
	late Mark
	run  func(ctx context.Context) []Check
}

// How long one question may take, and the whole.
const (
	askTimeout = 5 * time.Second
	allTimeout = 9 * time.Second
)

// Server is where a model is asked; a scripted one needs none.
type Server struct {
	Scripted bool
	Model    string
	// Anthropic says that the server speaks Anthropic's API, not OpenAI's.
	Anthropic bool
	// BaseURL is the server's address, "/v1" included; OwnServer says that the user named it,
	// so that it may need no key.
	BaseURL   string
	OwnServer bool
	KeyEnv    string // the name of the variable with the key
	Key       string `json:"-"` // sent to BaseURL and nowhere else, never shown
}

// Examine makes all checks at the same time. It returns within ten seconds,
// whatever hangs.
func Examine(ctx context.Context, cfg Config) []Check {
	e := &examination{Config: cfg}
	return examine(ctx, allTimeout, []probe{
		{"settings", Fail, e.settings},
		{"docker", e.needed(), e.docker},
		{"helper", e.needed(), e.helper},
		{"sandbox", Fail, e.sandbox},
		{"images", Warn, e.plan},
		{"disk", Warn, e.disks},
		{"key", Warn, e.ofServers(Server.key)},
		{"model", Warn, e.ofServers(Server.endpoint)},
		{"datasets", Warn, e.hub},
		{"proxy", Warn, e.proxy},
		{"programs", Warn, e.programs},
		{"files", Warn, e.files},
		{"terminal", Warn, e.terminal},
	})
}

// examine waits for each probe in turn, and for none beyond the limit. A probe
// can hang where no context reaches, in the statfs of a server that is gone;
// it is left behind then, since the process is about to end.
func examine(ctx context.Context, limit time.Duration, probes []probe) []Check {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	results := make([]chan []Check, len(probes))
	for i, p := range probes {
		results[i] = make(chan []Check, 1)
		go func() { results[i] <- p.run(ctx) }()
	}
	late := make(chan struct{}) // some may have been about to answer
	defer context.AfterFunc(ctx, func() { time.AfterFunc(limit/20, func() { close(late) }) })()
	var checks []Check
	for i, p := range probes {
		select {
		case found := <-results[i]:
			checks = append(checks, found...)
			continue
		case <-late:
		}
		select { // it may have answered long ago
		case found := <-results[i]:
			checks = append(checks, found...)
		default:
			checks = append(checks, Check{p.name, p.late, "no answer within " + limit.String(), "something on this machine hangs; try again"})
		}
	}
	return checks
}

// examination is one run of all checks.
type examination struct {
	Config
	engine shared
}

// needed is how bad it is that there is no container engine.
func (e *examination) needed() Mark {
	if e.onHost() {
		return Warn
	}
	return Fail
}

// onHost says that sandboxes are folders of this machine, and need no engine.
func (e *examination) onHost() bool {
	return configs.OnHost(e.Environment)
}

// Failed are the names of the checks that failed.
func Failed(checks []Check) []string {
	var names []string
	for _, c := range checks {
		if c.Mark == Fail {
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

// Write shows the checks to people, in lines of at most width characters.
func Write(w io.Writer, checks []Check, width int) error {
	var s strings.Builder
	warnings := 0
	for _, c := range checks {
		mark := string(c.Mark)
		switch c.Mark {
		case Fail:
			mark = "FAIL"
		case Warn:
			warnings++
		}
		head := fmt.Sprintf("%-*s %-*s ", markWidth, mark, nameWidth, c.Name)
		s.WriteString(hanging(head, c.Finding, width))
		if c.Advice != "" {
			s.WriteString(hanging(strings.Repeat(" ", len(head))+"-> ", c.Advice, width))
		}
	}
	switch failed := len(Failed(checks)); {
	case failed > 0: // the error says it
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

// maxText bounds one text of a check, in characters: some come from servers.
const maxText = 400

// hanging is a text after a head, its further lines beneath its first.
func hanging(head, text string, width int) string {
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText]) + "…"
	}
	wrapped := report.Wrap(text, max(width-len(head), 20))
	return head + strings.Join(wrapped, "\n"+strings.Repeat(" ", len(head))) + "\n"
}
