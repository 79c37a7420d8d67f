package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/localservers"
	"github.com/minibench/mini/model/openai"
)

// listTimeout limits the request for the list of models.
const listTimeout = 10 * time.Second

// ErrKeyRejected is wrapped by the error of ListModels if the server rejects the key.
var ErrKeyRejected = errors.New("rejects the key")

// ModelsURL returns the address that has the list of models, without /models. The configured address of a
// server with Anthropic's API may end with /v1 or not.
func ModelsURL(m configs.Model) string {
	if m.Class != "anthropic" {
		return cmp.Or(m.BaseURL, openai.DefaultBaseURL)
	}
	base := cmp.Or(m.BaseURL, anthropic.DefaultBaseURL)
	return strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/v1"
}

// ListModels returns the names of the models that write text and that the server of m lists, and the name of
// the server. The error says on one line why there are none. Names are untrusted.
func ListModels(ctx context.Context, m configs.Model, key string) (names []string, host string, err error) {
	api := localservers.API{BaseURL: ModelsURL(m), IsAnthropic: m.Class == "anthropic", Key: key}
	u, err := url.Parse(api.BaseURL)
	if err != nil || u.Host == "" {
		return nil, "", errors.New("the server's address is not a URL")
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	status, models, err := api.ListModels(ctx)
	switch {
	case !localservers.HasAnswered(err):
		err = fmt.Errorf("%s does not answer: %s", u.Host, localservers.ErrorReason(err, listTimeout))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if err = fmt.Errorf("%s %w (%d)", u.Host, ErrKeyRejected, status); key == "" {
			err = fmt.Errorf("%s requires a key (%d)", u.Host, status)
		}
	case status != http.StatusOK:
		err = fmt.Errorf("%s lists no models (%d)", u.Host, status)
	case len(models) == 0:
		err = fmt.Errorf("%s lists no models", u.Host)
	default:
		err = nil
	}
	if err != nil {
		return nil, u.Host, err
	}
	for _, model := range localservers.TextModels(models) {
		names = append(names, strings.TrimPrefix(model.Name, "models/")) // as Gemini lists them
	}
	slices.Sort(names)
	return names, u.Host, nil
}
