package web

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/minibench/mini/runner/labels"
)

// maxForm bounds the body of a request, in bytes.
const maxForm = 64 << 10

// changeLabels adds and removes labels of an instance and replaces its note, and leads back to its
// page. One form sends all of it, so that no button discards what is typed in a field of another. What is
// refused stays in its field, beside the reason.
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
	typed := instanceForm{Token: s.form}
	note := form.Get("note")
	if note != form.Get("old-note") { // otherwise it may have been changed elsewhere since
		if err := labels.SetNote(own.Dir, id, note); err != nil { //nolint:contextcheck // it waits for the lock for a short time
			typed.Note, typed.NoteError = note, err.Error()
		}
	}
	add := slices.DeleteFunc(form["add"], func(word string) bool { return word == "" })
	if len(add)+len(form["remove"]) > 0 {
		if _, err := labels.Change(own.Dir, id, add, form["remove"]); err != nil { //nolint:contextcheck // as above
			typed.Label, typed.LabelError = strings.Join(add, " "), err.Error()
		}
	}
	own.reload()
	if typed.NoteError == "" && typed.LabelError == "" {
		http.Redirect(w, r, links{}.Instance(own, id)+"#labels", http.StatusSeeOther) //nolint:gosec // a page of this server
		return
	}
	p, err := s.viewer.newInstancePage(own, id)
	if err != nil {
		s.fail(w, err)
		return
	}
	p.Form = &typed
	s.write(w, r, http.StatusBadRequest, "instance.html", p)
}

// instanceForm is the form of the page of an instance: the token that it needs and, if a change was
// refused, what was typed and why it was refused.
type instanceForm struct {
	Token             string
	Label, LabelError string
	Note, NoteError   string
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
