package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/minibench/mini/runner/report"
)

// ofServers checks each server. What is so of several is said once.
func (e *examination) ofServers(check func(Server, context.Context) []Check) func(context.Context) []Check {
	return func(ctx context.Context) []Check {
		found := make([][]Check, len(e.Servers))
		var all sync.WaitGroup
		for i, s := range e.Servers {
			all.Go(func() { found[i] = check(s, ctx) })
		}
		all.Wait()
		var checks []Check
		for _, c := range slices.Concat(found...) {
			if !slices.Contains(checks, c) {
				checks = append(checks, c)
			}
		}
		return checks
	}
}

// key says whether there is one, and nothing else of it.
func (s Server) key(context.Context) []Check {
	switch {
	case s.Scripted:
		return []Check{{"key", OK, "the replies are scripted; none is needed", ""}}
	case s.Key != "":
		return []Check{{"key", OK, s.KeyEnv + " is set", ""}}
	case s.OwnServer:
		return []Check{{"key", OK, s.KeyEnv + " is not set; a server of one's own may need none", ""}}
	}
	return []Check{{"key", Warn, s.KeyEnv + " is not set", "export " + s.KeyEnv + "=..., or name a server that needs none: -c model.base_url=URL"}}
}

// maxModels bounds the list of a server's models, in bytes.
const maxModels = 4 << 20

// endpoint asks the model's server for its models: that costs nothing, and
// shows that it is there and takes the key.
func (s Server) endpoint(ctx context.Context) []Check {
	if s.Scripted {
		return nil
	}
	u, err := url.Parse(s.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return []Check{{"model", Warn, "the server's address is no URL", "it looks like https://HOST/v1; see model.base_url and " + s.baseURLEnv()}}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("models").String(), nil)
	if err != nil {
		return []Check{{"model", Warn, "the server's address is no URL", "see model.base_url and " + s.baseURLEnv()}}
	}
	s.authorize(req)
	defer http.DefaultClient.CloseIdleConnections() // the process is about to end
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return []Check{{"model", Warn, u.Host + " does not answer: " + reason(err), "is the address right, and does a proxy stand between? A batch needs it"}}
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it matters
	return []Check{s.answer(u.Host, resp)}
}

// authorize shows the key in the way of the server's API.
func (s Server) authorize(req *http.Request) {
	key := strings.TrimSpace(s.Key)
	switch {
	case s.Anthropic:
		req.URL.RawQuery = "limit=1000" // else the newest twenty
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if key != "" {
			req.Header.Set("X-Api-Key", key)
		}
	case key != "":
		req.Header.Set("Authorization", "Bearer "+key)
	}
}

func (s Server) baseURLEnv() string {
	if s.Anthropic {
		return "ANTHROPIC_BASE_URL"
	}
	return "OPENAI_BASE_URL"
}

// has says whether a list has the model. Anthropic's has names with dates, and
// takes them without.
func (s Server) has(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == s.Model || s.Anthropic && strings.HasPrefix(name, s.Model+"-20")
	})
}

// answer judges what the server said.
func (s Server) answer(host string, resp *http.Response) Check {
	code := resp.StatusCode
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if s.Key == "" {
			return Check{"model", Warn, fmt.Sprintf("%s answers, and wants a key (%d)", host, code), "export " + s.KeyEnv + "=..."}
		}
		return Check{"model", Warn, fmt.Sprintf("%s refuses the key in %s (%d)", host, s.KeyEnv, code), "is it the key for this server, and still valid?"}
	case code == http.StatusTooManyRequests:
		return Check{"model", Warn, host + " answers that there were too many requests (429)", "wait, or use fewer workers"}
	case code >= 500:
		return Check{"model", Warn, fmt.Sprintf("%s answers with an error of its own (%d)", host, code), "try again later"}
	case code != http.StatusOK:
		return Check{"model", OK, fmt.Sprintf("%s answers; it has no list of models (%d)", host, code), ""}
	}
	names, err := models(resp.Body)
	switch {
	case err != nil || len(names) == 0:
		return Check{"model", OK, host + " answers; its list of models says nothing", ""}
	case s.Model == "":
		return Check{"model", OK, fmt.Sprintf("%s answers and has %s; -m picks one", host, report.Count(len(names), "model")), ""}
	case s.has(names):
		return Check{"model", OK, fmt.Sprintf("%s answers and has %s", host, s.Model), ""}
	}
	return Check{
		"model", Warn, fmt.Sprintf("%s answers, and %s is not among its %s", host, s.Model, report.Count(len(names), "model")),
		"it has " + some(names),
	}
}

// models reads a list as the API has it: {"data": [{"id": NAME}]}.
func models(r io.Reader) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxModels)).Decode(&list); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// hub is about the server that datasets come from.
func (e *examination) hub(ctx context.Context) []Check {
	if e.Hub == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := e.Hub(ctx); err != nil {
		text := err.Error() // the hub's own, without addresses that hold secrets
		if errors.Is(err, context.DeadlineExceeded) {
			text = "the hub says " + reason(err)
		}
		advice := "datasets that were fetched before, and files, work without it"
		if e.Hint != nil && e.Hint(err) != "" {
			advice = e.Hint(err)
		}
		return []Check{{"datasets", Warn, text, advice}}
	}
	return []Check{{"datasets", OK, "the hub answers", ""}}
}

// reason is why a request failed, without its address: that may hold a secret.
func reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	name, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("nothing within %v", askTimeout)
	case unresolved && name.IsNotFound:
		return "there is no such host"
	case unresolved:
		return "its name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case strings.Contains(err.Error(), "invalid proxy address"):
		return "the address of the proxy is no URL"
	}
	return err.Error()
}

// proxyVars are the variables that Go's client heeds, and one that it does not.
var proxyVars = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}

// proxy says what stands between this machine and servers. User names and
// passwords in the addresses are left out.
func (e *examination) proxy(context.Context) []Check {
	var set []string
	for _, name := range proxyVars {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		if !strings.Contains(value, "://") {
			value = "http://" + value
		}
		u, err := url.Parse(value)
		if err != nil || u.Host == "" {
			return []Check{{"proxy", Warn, name + " is no address", "it looks like http://HOST:PORT"}}
		}
		set = append(set, name+" is "+u.Host)
	}
	switch {
	case len(set) == 0 && os.Getenv("ALL_PROXY")+os.Getenv("all_proxy") != "":
		return []Check{{"proxy", Warn, "ALL_PROXY is set, which mini does not heed", "set HTTPS_PROXY and HTTP_PROXY instead"}}
	case len(set) == 0:
		return []Check{{"proxy", OK, "none is set", ""}}
	}
	text := strings.Join(set, ", ")
	host, _ := engineHost()
	if address, ok := strings.CutPrefix(host, "tcp://"); ok && proxied(address) {
		return []Check{{"proxy", Warn, text + "; the container engine at " + address + " is asked through it", "add the engine's host to NO_PROXY"}}
	}
	return []Check{{"proxy", OK, text + "; it is for the model and the hub, sandboxes do not get it", ""}}
}

func proxied(address string) bool {
	u, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "http", Host: address}})
	return err == nil && u != nil
}
