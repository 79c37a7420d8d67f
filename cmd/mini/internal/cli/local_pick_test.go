package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/servers"
)

func TestPickLocal(t *testing.T) {
	here := func(name string, models ...string) servers.Found {
		f := servers.Found{Place: servers.Place{Name: name, BaseURL: "http://" + name + "/v1"}}
		for _, m := range models {
			f.Models = append(f.Models, servers.Model{Name: m})
		}
		return f
	}
	gone := func(name string, err error) servers.Found {
		return servers.Found{Place: servers.Place{Name: name, BaseURL: "http://" + name + "/v1"}, Err: err}
	}
	nobody := fmt.Errorf("%w: refused", servers.ErrNobody)
	tests := map[string]struct {
		found []servers.Found
		model string
		want  string // the name of the server, or what the error has
	}{
		"one":              {[]servers.Found{gone("a", nobody), here("b", "m")}, "", "b"},
		"one, other model": {[]servers.Found{here("b", "m")}, "x", "b"},
		"by its model":     {[]servers.Found{here("a", "m"), here("b", "n:latest")}, "n", "b"},
		"one has a site":   {[]servers.Found{gone("a", errors.New("no server of models")), here("b", "m")}, "", "b"},
		"several":          {[]servers.Found{here("A", "m"), here("b", "m")}, "m", "several servers answer: A at http://A/v1, b at http://b/v1; say which, as --local=a"},
		"none":             {[]servers.Found{gone("a", nobody), gone("b", nobody)}, "", "no server answers on this machine (a, b, on their usual ports)"},
		"wants a key":      {[]servers.Found{gone("a", nobody), gone("b", errors.New("it wants a key"))}, "", "--local: b at http://b/v1: it wants a key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := pickLocal(test.found, test.model)
			if got := f.Name; err == nil && got != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if err != nil && exitCode(err) != exitUsage {
				t.Errorf("exit code %d", exitCode(err))
			}
		})
	}
}
