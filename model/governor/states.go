package governor

import (
	"cmp"
	"slices"
)

// Endpoint is what one endpoint lets through now.
type Endpoint struct {
	BaseURL string
	State
}

// States are those of all endpoints so far, by address. An address stands there
// once for each key.
func (s *Governors) States() []Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Endpoint, 0, len(s.all))
	for e, g := range s.all {
		all = append(all, Endpoint{e.baseURL, g.State()})
	}
	slices.SortFunc(all, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.BaseURL, b.BaseURL), cmp.Compare(b.Limit, a.Limit))
	})
	return all
}
