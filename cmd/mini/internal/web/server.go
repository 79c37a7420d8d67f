package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/trajectories/query"
)

// errNotFound is the error of an address that names nothing.
var errNotFound = errors.New("no such page")

// errTooFew is the error of a comparison of one run.
var errTooFew = errors.New("there is nothing to compare")

// Server serves the pages of a Viewer. It answers GET and HEAD and changes nothing, except that the
// forms of the page of an instance change its labels and its note.
type Server struct {
	viewer *Viewer
	hosts  []string // accepted values of the Host header
	token  string   // that the first request has to know; "" for none
	form   string   // that a form has to know
	mux    *http.ServeMux
}

// NewServer returns a server that accepts requests for these host:port names. If token is not
// empty, a request has to know it.
func NewServer(v *Viewer, hosts []string, token string) *Server {
	s := &Server{viewer: v, hosts: hosts, token: token, form: rand.Text(), mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /{$}", s.page(s.home))
	s.mux.HandleFunc("GET /r/{run}/{$}", s.page(s.runPage))
	s.mux.HandleFunc("GET /r/{run}", s.redirect)
	s.mux.HandleFunc("GET /r/{run}/i/{instance}", s.page(s.instancePage))
	s.mux.HandleFunc("GET /r/{run}/i/{instance}/a/{attempt}", s.page(s.attemptPage))
	s.mux.HandleFunc("GET /r/{run}/i/{instance}/a/{attempt}/steps", s.steps)
	s.mux.HandleFunc("GET /r/{run}/i/{instance}/a/{attempt}/search", s.search)
	s.mux.HandleFunc("GET /r/{run}/i/{instance}/a/{attempt}/raw/{step}/{item}", s.raw)
	s.mux.HandleFunc("GET /r/{run}/i/{instance}/a/{attempt}/patch", s.rawPatch)
	s.mux.HandleFunc("GET /r/{run}/i/{instance}/log/{verdict}", s.rawLog)
	s.mux.HandleFunc("GET /compare", s.page(s.comparePage))
	s.mux.HandleFunc("GET /compare/i/{instance}", s.page(s.compareInstancePage))
	s.mux.HandleFunc("POST /r/{run}/i/{instance}/labels", s.changeLabels)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			refuseMethod(w)
			return
		}
		s.fail(w, errNotFound)
	})
	s.mux.HandleFunc("GET /viewer.css", s.asset("text/css; charset=utf-8", styleSheet+chart.CSS))
	s.mux.HandleFunc("GET /icon.svg", s.asset("image/svg+xml", icon))
	s.mux.HandleFunc("GET /viewer.js", s.asset("text/javascript; charset=utf-8", script))
	return s
}

// contentPolicy is the Content-Security-Policy of pages. The policy "mini" of trusted types wraps
// the fragments of this server.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types mini"

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !s.isOwnHost(r.Host):
		// A page of another site can make the browser send a request here under its own name.
		http.Error(w, "mini: this is not an address of the viewer", http.StatusForbidden)
	case r.URL.Path == "/favicon.ico": // browsers ask for it beside a sandboxed text, which has no origin
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		w.WriteHeader(http.StatusNoContent)
	case !isOwnSite(r.Header.Get("Sec-Fetch-Site")) && r.Header.Get("Sec-Fetch-Mode") != "navigate":
		http.Error(w, "mini: the request comes from another site", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		refuseMethod(w)
	case !s.isAdmitted(w, r):
	case r.Method == http.MethodPost && !s.mayChange(w, r):
	default:
		s.mux.ServeHTTP(w, r)
	}
}

func refuseMethod(w http.ResponseWriter) {
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "mini: the viewer only reads", http.StatusMethodNotAllowed)
}

// isOwnSite reports whether a request comes from a page of this server, from the user, or from a
// program that is not a browser. Another port of this machine is another site.
func isOwnSite(site string) bool { return site == "" || site == "same-origin" || site == "none" }

func (s *Server) isOwnHost(host string) bool {
	for _, own := range s.hosts {
		if host == own {
			return true
		}
	}
	return false
}

// page returns the handler of a page. The function returns the name of the template and its data.
func (s *Server) page(f func(r *http.Request) (name string, data any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, data, err := f(r)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.write(w, r, http.StatusOK, name, data)
	}
}

// write renders a template completely before it sends it, so that an error is not in the middle of
// a page. The ETag lets a page that polls learn that nothing is new.
func (s *Server) write(w http.ResponseWriter, r *http.Request, code int, name string, data any) {
	var b bytes.Buffer
	if err := render(&b, links{}, name, data); err != nil {
		s.fail(w, err)
		return
	}
	tag := etag(b.Bytes())
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the reader may have left
}

func (s *Server) fail(w http.ResponseWriter, err error) {
	code, message := http.StatusInternalServerError, text.Printable(err.Error())
	switch {
	case errors.Is(err, errTooFew):
		code, message = http.StatusBadRequest, "Choose two or more runs to compare."
	case errors.Is(err, errNotFound):
		code, message = http.StatusNotFound, "There is no such page. The run may have changed since the link was made."
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_ = render(w, links{}, "error.html", map[string]any{"Title": "Error", "Message": message}) // the reader may have left
}

func (s *Server) asset(contentType, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(content)) // the reader may have left
	}
}

func (s *Server) home(r *http.Request) (string, any, error) {
	q := r.URL.Query()
	s.viewer.refresh()
	return "home.html", s.viewer.newHomePage(q.Get("filter"), q.Get("sort")), nil
}

// names returns the run, the instance and the attempt in the path of a request; a missing attempt
// is -1.
func (s *Server) names(r *http.Request) (own *run, id string, attempt int, err error) {
	if own = s.viewer.run(r.PathValue("run")); own == nil {
		return nil, "", 0, errNotFound
	}
	if attempt, err = strconv.Atoi(r.PathValue("attempt")); err != nil {
		attempt = -1
	}
	return own, r.PathValue("instance"), attempt, nil
}

// redirect leads to the page of a run, whose links need the slash at the end of its address.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request) {
	own, _, _, err := s.names(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	address := links{}.Run(own)
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	http.Redirect(w, r, address, http.StatusSeeOther) //nolint:gosec // a page of this server
}

func (s *Server) runPage(r *http.Request) (string, any, error) {
	own, _, _, err := s.names(r)
	if err != nil {
		return "", nil, err
	}
	q := r.URL.Query()
	p, err := s.viewer.newRunPage(r.Context(), own, q.Get("filter"), q.Get("sort"))
	return "run.html", p, err
}

func (s *Server) instancePage(r *http.Request) (string, any, error) {
	own, id, _, err := s.names(r)
	if err != nil {
		return "", nil, err
	}
	p, err := s.viewer.newInstancePage(own, id)
	if err != nil {
		return "", nil, err
	}
	if !p.Run.IsTemporary {
		p.Form = &instanceForm{Token: s.form}
	}
	return "instance.html", p, nil
}

func (s *Server) attemptPage(r *http.Request) (string, any, error) {
	own, id, number, err := s.names(r)
	if err != nil {
		return "", nil, err
	}
	q := r.URL.Query()
	p, err := s.viewer.newAttemptPage(own, id, number, q.Get("step"), q.Get("q"), false)
	return "attempt.html", p, err
}

func (s *Server) comparePage(r *http.Request) (string, any, error) {
	q := r.URL.Query()
	chosen, err := s.viewer.choose(q["run"])
	if err != nil {
		return "", nil, err
	}
	base := 0
	if key := q.Get("base"); key != "" {
		base = slices.Index(chosen, s.viewer.run(key))
	}
	p, err := s.viewer.newComparePage(chosen, base, compare.MissingRule(cmp.Or(q.Get("missing"), string(compare.Drop))))
	return "compare.html", p, err
}

func (s *Server) compareInstancePage(r *http.Request) (string, any, error) {
	chosen, err := s.viewer.choose(r.URL.Query()["run"])
	if err != nil {
		return "", nil, err
	}
	p, err := s.viewer.newCompareInstancePage(chosen, r.PathValue("instance"))
	return "compareinstance.html", p, err
}

// open returns the journal of the attempt that a request names.
func (s *Server) open(r *http.Request) (*attempt, error) {
	own, id, number, err := s.names(r)
	if err != nil {
		return nil, err
	}
	_, in, err := own.find(id)
	if err != nil {
		return nil, err
	}
	if a := in.Attempt(number); a != nil {
		return s.viewer.attempts.get(own.Dir, a.Journal)
	}
	return nil, errNotFound
}

// steps serves the steps from an index on: a chunk or, with after=NAME, the steps after that one
// and the step itself, which may have grown.
func (s *Server) steps(w http.ResponseWriter, r *http.Request) {
	a, err := s.open(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	own, id, number, _ := s.names(r) // open has checked them
	q := r.URL.Query()
	var from int
	var ok bool
	if after := q.Get("after"); after != "" {
		from, ok = indexOf(a.Timeline, after)
	} else {
		from, err = strconv.Atoi(q.Get("from"))
		ok = err == nil
	}
	if !ok || from < 0 || from >= len(a.AllSteps()) {
		s.fail(w, errNotFound)
		return
	}
	c := newChunk(a, from, from+chunkSize, true, q.Get("q"))
	s.write(w, r, http.StatusOK, "steps", stepsData{own, id, number, c})
}

// stepsData is the data of the template of steps.
type stepsData struct {
	Run    *run
	ID     string
	Number int
	Chunk  chunk
}

// search serves the names of the steps that contain a text, one per line.
func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	a, err := s.open(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	var names []string
	if q := r.URL.Query().Get("q"); q != "" {
		match := query.TextMatcher(q)
		for _, step := range a.AllSteps() {
			if step.Contains(match) {
				names = append(names, stepName(step))
			}
		}
	}
	s.writeText(w, strings.Join(names, "\n"))
}

// writeText serves untrusted text. The browser must not interpret it.
func (s *Server) writeText(w http.ResponseWriter, content string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox")
	_, _ = w.Write([]byte(content)) // the reader may have left
}

func (s *Server) raw(w http.ResponseWriter, r *http.Request) {
	a, err := s.open(r)
	if err == nil {
		index, ok := indexOf(a.Timeline, r.PathValue("step"))
		item, itemErr := strconv.Atoi(r.PathValue("item"))
		if ok && itemErr == nil {
			if content, ok := itemText(a.AllSteps()[index], item); ok {
				s.writeText(w, content)
				return
			}
		}
		err = errNotFound
	}
	s.fail(w, err)
}

func (s *Server) rawPatch(w http.ResponseWriter, r *http.Request) {
	a, err := s.open(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	patch, _ := a.Patch()
	s.writeText(w, patch)
}

func (s *Server) rawLog(w http.ResponseWriter, r *http.Request) {
	own, id, _, err := s.names(r)
	if err == nil {
		var p *instancePage
		if p, err = s.viewer.newInstancePage(own, id); err == nil {
			n, convErr := strconv.Atoi(r.PathValue("verdict"))
			if convErr == nil && n >= 0 && n < len(p.Verdicts) {
				if log := readLog(own.Dir, p.Verdicts[n].Files, maxLogBytes); log != nil {
					s.writeText(w, string(log))
					return
				}
			}
			err = errNotFound
		}
	}
	s.fail(w, err)
}

// Limits of the server.
const (
	readHeaderTimeout = 10 * time.Second
	maxHeader         = 64 << 10
)

// Serve serves until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing to finish: all requests read
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve pages: %w", err)
	}
	return nil
}
