package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

// tokenCookie is the start of the name of the cookie that holds the token after the first request.
const tokenCookie = "mini-view-"

// cookieName returns the name of the cookie. Browsers send a cookie to all ports of a host, so that
// viewers need names of their own.
func (s *Server) cookieName() string {
	sum := sha256.Sum256([]byte(s.token))
	return tokenCookie + hex.EncodeToString(sum[:4])
}

// isAdmitted reports whether a request knows the token. The first request has it in its address;
// the response stores it in a cookie and asks the browser for the address without it. Otherwise
// isAdmitted responds with an error.
func (s *Server) isAdmitted(w http.ResponseWriter, r *http.Request) bool {
	if s.token == "" {
		return true
	}
	if c, err := r.Cookie(s.cookieName()); err == nil && isEqual(c.Value, s.token) {
		return true
	}
	query := r.URL.Query()
	if !isEqual(query.Get("token"), s.token) {
		http.Error(w, "mini: open the address that mini view printed", http.StatusForbidden)
		return false
	}
	cookie := &http.Cookie{Name: s.cookieName(), Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode} //nolint:gosec // G124: not Secure, the server has no TLS
	http.SetCookie(w, cookie)
	query.Del("token")
	// A path that begins with two slashes would be another host to the browser.
	own := path.Clean("/" + r.URL.EscapedPath())
	if own != "/" && strings.HasSuffix(r.URL.Path, "/") {
		own += "/"
	}
	if len(query) > 0 {
		own += "?" + query.Encode()
	}
	http.Redirect(w, r, own, http.StatusSeeOther) //nolint:gosec // a page of this server
	return false
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// etag identifies the content of a response.
func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}
