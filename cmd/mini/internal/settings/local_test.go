package settings

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/model/localservers"
)

func TestSelectLocalServer(t *testing.T) {
	responding := func(name string, models ...string) localservers.ProbeResult {
		f := localservers.ProbeResult{Server: localservers.Server{Name: name, BaseURL: "http://" + name + "/v1"}}
		for _, m := range models {
			f.Models = append(f.Models, localservers.Model{Name: m})
		}
		return f
	}
	failing := func(name string, err error) localservers.ProbeResult {
		return localservers.ProbeResult{Server: localservers.Server{Name: name, BaseURL: "http://" + name + "/v1"}, Err: err}
	}
	unreachable := fmt.Errorf("%w: refused", localservers.ErrUnreachable)
	tests := map[string]struct {
		found []localservers.ProbeResult
		model string
		want  string // name of the server, or part of the error
	}{
		"one":              {[]localservers.ProbeResult{failing("a", unreachable), responding("b", "m")}, "", "b"},
		"one, other model": {[]localservers.ProbeResult{responding("b", "m")}, "x", "b"},
		"by its model":     {[]localservers.ProbeResult{responding("a", "m"), responding("b", "n:latest")}, "n", "b"},
		"another fails":    {[]localservers.ProbeResult{failing("a", errors.New("no server of models")), responding("b", "m")}, "", "b"},
		"several":          {[]localservers.ProbeResult{responding("A", "m"), responding("b", "m")}, "m", "several servers answer: A at http://A/v1, b at http://b/v1; say which, as --local=a"},
		"none":             {[]localservers.ProbeResult{failing("a", unreachable), failing("b", unreachable)}, "", "no server answers on this machine (a, b, on their usual ports)"},
		"wants a key":      {[]localservers.ProbeResult{failing("a", unreachable), failing("b", errors.New("it wants a key"))}, "", "--local: b at http://b/v1: it wants a key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := selectLocalServer(test.found, test.model)
			if got := f.Name; err == nil && got != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if err != nil && cmdutil.ExitCode(err) != cmdutil.ExitUsage {
				t.Errorf("exit code %d", cmdutil.ExitCode(err))
			}
		})
	}
}
