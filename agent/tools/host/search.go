package host

import (
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// SearchName is the name of the tool that searches.
const SearchName = "search"

// maxLimit is how many results may be asked for.
const maxLimit = 100

// Search makes of c, of which it takes all but name, usage and check, the tool that
// searches.
func Search(c Config) (*Tool, error) {
	c.Name, c.Usage, c.Check = SearchName, SearchName+" [--limit N] QUERY", checkQuery
	if c.About == "" {
		c.About = "searches, and prints what was found"
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
	if len(a.Rest) == 1 && a.Rest[0] == "-" {
		a.Rest = []string{string(c.Input)}
	}
	if strings.TrimSpace(strings.Join(a.Rest, " ")) == "" {
		return tools.Usagef("the query is missing")
	}
	return nil
}
