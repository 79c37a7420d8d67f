package ratelimit

import (
	"cmp"
	"slices"
)

// EndpointState is the state of one endpoint's Limiter.
type EndpointState struct {
	BaseURL string
	State
}

// States returns the states of all endpoints, sorted by URL. A URL that is used with
// several keys occurs once for each.
func (s *Limiters) States() []EndpointState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]EndpointState, 0, len(s.limiters))
	for endpoint, limiter := range s.limiters {
		all = append(all, EndpointState{endpoint.baseURL, limiter.State()})
	}
	slices.SortFunc(all, func(a, b EndpointState) int {
		return cmp.Or(cmp.Compare(a.BaseURL, b.BaseURL), cmp.Compare(b.Limit, a.Limit))
	})
	return all
}
