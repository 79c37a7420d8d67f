package transport

import (
	"fmt"
	"net/http"

	"github.com/minibench/mini/model"
)

// maxHost bounds the name of a host in a message, in bytes.
const maxHost = 253

// SameServer is for http.Client.CheckRedirect. It lets no other server have the
// key: the standard library sends it along to another port, from https to http,
// and everywhere in headers that it does not know.
func (x *Exchange) SameServer(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) >= 10 || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		host := x.Redact.Bytes([]byte(req.URL.Host)) // the whole: half a key is none that is found
		return &model.Error{
			Status: model.BadRequest, Err: fmt.Errorf("the server sends its callers on to %s://%s", req.URL.Scheme, host[:min(len(host), maxHost)]),
			Hint: "set the base URL (model.base_url) to where it sends them, if that is to have the key",
		}
	}
	return nil
}
