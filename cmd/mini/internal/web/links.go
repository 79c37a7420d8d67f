package web

import (
	"net/url"
	"strconv"
)

// links makes the addresses of pages: paths of the server, or fragments in a file. They consist of
// names, so that they stay valid when other runs come and go. A name is one escaped segment.
type links struct {
	file bool
}

// start is what addresses begin with.
func (l links) start() string {
	if l.file {
		return "#"
	}
	return "/"
}

// Home returns the address of the list of runs.
func (l links) Home() string {
	if l.file {
		return "#home"
	}
	return "/"
}

// Run returns the address of a run. On the server it ends with a slash, for Row.
func (l links) Run(r *run) string {
	address := l.start() + "r/" + url.PathEscape(r.Key)
	if l.file {
		return address
	}
	return address + "/"
}

// Instance returns the address of an instance.
func (l links) Instance(r *run, id string) string {
	return l.start() + "r/" + url.PathEscape(r.Key) + "/i/" + url.PathEscape(id)
}

// Row returns the address of an instance on the page of its run. It is short, because the page
// has some for each instance.
func (l links) Row(r *run, id string) string {
	if l.file {
		return l.Instance(r, id)
	}
	return "i/" + url.PathEscape(id)
}

// Attempt returns the address of an attempt.
func (l links) Attempt(r *run, id string, attempt int) string {
	return l.Instance(r, id) + "/a/" + strconv.Itoa(attempt)
}

// Step returns the address of a step of an attempt; step is the name of its anchor.
func (l links) Step(r *run, id string, attempt int, step string) string {
	if l.file {
		return l.Attempt(r, id, attempt) + "/s" + step
	}
	return l.Attempt(r, id, attempt) + "?step=" + step + "#s" + step
}

// Compare returns the address of the comparison of runs.
func (l links) Compare(runs []*run) string {
	if l.file {
		return "#compare"
	}
	return "/compare" + selection(runs)
}

// CompareInstance returns the address of the comparison of runs at an instance.
func (l links) CompareInstance(runs []*run, id string) string {
	if l.file {
		return "#compare/i/" + url.PathEscape(id)
	}
	return "/compare/i/" + url.PathEscape(id) + selection(runs)
}

// selection returns the parameters that name runs.
func selection(runs []*run) string {
	q := url.Values{}
	for _, r := range runs {
		q.Add("run", r.Key)
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}
