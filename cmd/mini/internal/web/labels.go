package web

import (
	"fmt"
	"mime"
	"net/http"

	"github.com/minibench/mini/runner/labels"
)

// maxForm bounds the body of a request, in bytes.
const maxForm = 64 << 10

// changeLabels adds and removes labels of an instance, or replaces its note, and leads back to its
// page.
func (s *Server) changeLabels(w http.ResponseWriter, r *http.Request) {
	own, id, _, err := s.names(r)
	if err == nil {
		_, _, err = own.find(id)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	form := r.PostForm // parsed by mayChange
	switch {
	case form.Has("note"):
		err = labels.SetNote(own.Dir, id, form.Get("note")) //nolint:contextcheck // it waits for the lock for a short time
	default:
		_, err = labels.Change(own.Dir, id, form["add"], form["remove"]) //nolint:contextcheck // as above
	}
	if err != nil {
		s.fail(w, fmt.Errorf("%w: %w", errRefused, err))
		return
	}
	own.reload()
	http.Redirect(w, r, links{}.Instance(own, id)+"#labels", http.StatusSeeOther) //nolint:gosec // a page of this server
}

// mayChange reports whether a request comes from a form of this server, and parses the form.
// Otherwise it responds with an error. A browser says where a request comes from, except for
// servers without TLS on another machine. The token of the form is unknown to other sites.
func (s *Server) mayChange(w http.ResponseWriter, r *http.Request) bool {
	refuse := func(code int, message string) bool {
		http.Error(w, "mini: "+message, code)
		return false
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return refuse(http.StatusForbidden, "the request comes from another site")
	}
	// Without a referrer, browsers send "null" also for their own site.
	if origin := r.Header.Get("Origin"); origin != "" && origin != "null" && origin != "http://"+r.Host {
		return refuse(http.StatusForbidden, "the request comes from another site")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return refuse(http.StatusUnsupportedMediaType, "the request is not from a form")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return refuse(http.StatusBadRequest, "the form cannot be read")
	}
	if !isEqual(r.PostForm.Get("form"), s.form) {
		return refuse(http.StatusForbidden, "the page is too old; load it again")
	}
	return true
}
