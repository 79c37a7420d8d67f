package host

import (
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// SearchName is the name of the search tool.
const SearchName = "search"

// maxLimit bounds the number of results that a call may request.
const maxLimit = 100

// NewSearch returns the search tool. It ignores Name, Usage and Check of c.
func NewSearch(c Config) (*Tool, error) {
	c.Name, c.Usage, c.Check = SearchName, SearchName+" [--limit N] QUERY", checkQuery
	if c.Description == "" {
		c.Description = "searches, and prints what was found"
	}
	return New(c)
}

func checkQuery(c tools.Call) error {
	a, err := tools.ParseArgs(c.Args, tools.Flag{Name: "limit"})
	if err != nil {
		return err
	}
	if _, err := a.Int("limit", 0, 1, maxLimit); err != nil {
		return err
	}
	if len(a.Positional) == 1 && a.Positional[0] == "-" {
		a.Positional = []string{string(c.Input)}
	}
	if strings.TrimSpace(strings.Join(a.Positional, " ")) == "" {
		return tools.Usagef("the query is missing")
	}
	return nil
}
