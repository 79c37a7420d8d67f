package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model/localservers"
)

// eachServer returns a probe that runs check for every server and removes duplicate results.
func (e *checker) eachServer(check func(Server, context.Context) []Check) func(context.Context) []Check {
	return func(ctx context.Context) []Check {
		results := make([][]Check, len(e.Servers))
		var running sync.WaitGroup
		for i, s := range e.Servers {
			running.Go(func() { results[i] = check(s, ctx) })
		}
		running.Wait()
		var checks []Check
		for _, c := range slices.Concat(results...) {
			if !slices.Contains(checks, c) {
				checks = append(checks, c)
			}
		}
		return checks
	}
}

// key checks whether the key is set. It never shows the key.
func (s Server) key(context.Context) []Check {
	switch {
	case s.Scripted:
		return []Check{{"key", OK, "not needed: the model is scripted", ""}}
	case s.Key != "" && s.KeyFile != "":
		return []Check{{"key", OK, s.KeyEnv + " is set in " + s.KeyFile, ""}}
	case s.Key != "":
		return []Check{{"key", OK, s.KeyEnv + " is set", ""}}
	case s.CustomServer:
		return []Check{{"key", OK, s.KeyEnv + " is not set; a custom server may not need a key", ""}}
	}
	return []Check{{"key", Warn, s.KeyEnv + " is not set", "export " + s.KeyEnv + "=..., or use a server without a key: -c model.base_url=URL"}}
}

// endpoint requests the list of models, which tests the address and the key at no cost.
func (s Server) endpoint(ctx context.Context) []Check {
	if s.Scripted {
		return nil
	}
	u, err := url.Parse(s.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return []Check{{"model", Warn, "the server's address is not a URL", "it looks like https://HOST/v1; see model.base_url and " + s.baseURLEnv()}}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	status, models, err := s.api().ListModels(ctx)
	if !localservers.HasAnswered(err) {
		advice := "check the address and the proxy; a batch needs the server"
		if os.Getenv("ALL_PROXY")+os.Getenv("all_proxy") != "" {
			advice = "mini ignores ALL_PROXY: set HTTPS_PROXY and HTTP_PROXY instead"
		}
		return []Check{{"model", Warn, u.Host + " does not answer: " + localservers.ErrorReason(err, requestTimeout), advice}}
	}
	return []Check{s.modelCheck(u.Host, status, models)}
}

func (s Server) api() localservers.API {
	return localservers.API{BaseURL: s.BaseURL, IsAnthropic: s.UsesAnthropicAPI, Key: s.Key}
}

func (s Server) baseURLEnv() string {
	if s.UsesAnthropicAPI {
		return "ANTHROPIC_BASE_URL"
	}
	return "OPENAI_BASE_URL"
}

// modelCheck evaluates the response to a request for the list of models.
func (s Server) modelCheck(host string, code int, models []localservers.Model) Check {
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if s.Key == "" {
			return Check{"model", Warn, fmt.Sprintf("%s requires a key (%d)", host, code), "export " + s.KeyEnv + "=..."}
		}
		return Check{"model", Fail, fmt.Sprintf("%s rejects the key in %s (%d)", host, s.KeyEnv, code), "check that the key is valid for this server; " + configs.ReplaceKey(s.KeyEnv)}
	case code == http.StatusTooManyRequests:
		return Check{"model", Warn, host + " is rate-limiting requests (429)", "wait, or use fewer workers"}
	case code >= 500:
		return Check{"model", Warn, fmt.Sprintf("%s responds with a server error (%d)", host, code), "try again later"}
	case code != http.StatusOK:
		return Check{"model", OK, fmt.Sprintf("%s responds; it lists no models (%d)", host, code), ""}
	}
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	switch {
	case len(names) == 0:
		return Check{"model", OK, host + " responds; its list of models is empty", ""}
	case s.Model == "":
		return Check{"model", OK, fmt.Sprintf("%s responds and has %s; select one with -m", host, text.Count(len(names), "model")), ""}
	case s.api().HasModel(names, s.Model):
		return Check{"model", OK, fmt.Sprintf("%s responds and has %s", host, s.Model), ""}
	}
	return Check{
		"model", Fail, fmt.Sprintf("%s responds, but %s is not among its %s", host, s.Model, text.Count(len(names), "model")),
		"it has " + firstNames(names),
	}
}

// hub checks the dataset server.
func (e *checker) hub(ctx context.Context) []Check {
	if e.PingHub == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := e.PingHub(ctx); err != nil {
		text := err.Error() // contains no URL with a password
		if errors.Is(err, context.DeadlineExceeded) {
			text = "the hub: " + localservers.ErrorReason(err, requestTimeout)
		}
		advice := "fetched datasets and local files work without it"
		return []Check{{"datasets", Warn, text, cmp.Or(cmdutil.Hint(err), advice)}}
	}
	return []Check{{"datasets", OK, "the hub responds", ""}}
}
