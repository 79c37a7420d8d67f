package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
)

// request is the body of POST /rollouts. One of Instance, Row and Task says what the
// attempts are at.
type request struct {
	// Subset is a dataset of the service; "" means all.
	Subset   string          `json:"subset,omitempty"`
	Instance string          `json:"instance,omitempty"`
	Row      json.RawMessage `json:"row,omitempty"`  // a row with the columns of SWE-bench
	Task     string          `json:"task,omitempty"` // the folder of a task in Harbor's form
	Model    string          `json:"model,omitempty"`
	BaseURL  string          `json:"base_url,omitempty"`
	APIKey   string          `json:"api_key,omitempty"` // never written to a file
	Sampling map[string]any  `json:"sampling,omitempty"`
	Group    string          `json:"group,omitempty"`
	K        int             `json:"k,omitempty"` // the default, 1, is set before the body is decoded
	Evaluate *bool           `json:"evaluate,omitempty"`
	Tokens   *bool           `json:"tokens,omitempty"`

	endsWithClient bool // of POST /run
}

// Limits of requests.
const (
	maxBody  = 8 << 20
	maxK     = 64
	maxField = 2000 // bytes of a text
)

// httpError is the error of a request: its status and what the client reads.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

// errEnds is the error of a request that the end of the service cuts off.
var errEnds = &httpError{http.StatusServiceUnavailable, "the service ends; send the request again to the next one"}

func badRequest(format string, args ...any) error {
	return &httpError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// readBody decodes the body of a request into v, whose fields are all that it may have
// if strict is set.
func readBody(w http.ResponseWriter, r *http.Request, strict bool, v any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &httpError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody)}
	}
	if err != nil {
		return badRequest("the body cannot be read to its end")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	if err = d.Decode(v); err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is text after the JSON value")
		}
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return badRequest("%.100s: a %.100s is the wrong type; GET /openapi.json describes the fields", e.Field, e.Value)
	}
	if err != nil {
		return badRequest("the body is not the JSON that GET /openapi.json describes: %.300s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// check validates the fields, and sets those that have a default.
func (q *request) check() error {
	kinds := 0
	for _, isSet := range []bool{q.Instance != "", len(q.Row) > 0, q.Task != ""} {
		if isSet {
			kinds++
		}
	}
	if kinds != 1 {
		return badRequest("give one of instance, row and task")
	}
	for name, value := range map[string]string{
		"subset": q.Subset, "instance": q.Instance, "task": q.Task, "model": q.Model, "base_url": q.BaseURL, "api_key": q.APIKey, "group": q.Group,
	} {
		if len(value) > maxField || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return badRequest("%s: want at most %d bytes without control characters", name, maxField)
		}
	}
	if q.K < 1 || q.K > maxK {
		return badRequest("k: want a number of attempts from 1 to %d", maxK)
	}
	if q.BaseURL == "" && q.APIKey != "" {
		return badRequest("api_key: it is for base_url, which is not given; the key of the service's own model is in its environment")
	}
	if q.BaseURL != "" {
		return checkURL(q.BaseURL)
	}
	return nil
}

// settings returns the settings of the request, as layers over those of the service.
func (q *request) settings() (layers []configs.Layer, err error) {
	add := func(key string, value any) {
		encoded, encodeErr := json.Marshal(value)
		layer, layerErr := configs.ParseSetting(configs.RequestLayer, key, string(encoded))
		layers, err = append(layers, layer), errors.Join(err, encodeErr, layerErr)
	}
	if q.Model != "" {
		add("model.model_name", q.Model)
	}
	if q.BaseURL != "" {
		add("model.base_url", q.BaseURL)
		add("model.model_class", "openai")
	}
	if len(q.Sampling) > 0 {
		add("model.model_kwargs", q.Sampling)
	}
	if q.Tokens != nil {
		add("model.tokens", *q.Tokens)
	}
	add("run.attempts", q.K)
	add("run.eval", q.Evaluate == nil || *q.Evaluate)
	return layers, err
}

// hash identifies what is requested, without the key.
func (q request) hash() string {
	q.APIKey = ""
	data, _ := json.Marshal(q) //nolint:gosec // it has no key
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// checkURL returns an error for an address that no model server has.
func checkURL(address string) error {
	u, err := url.Parse(model.Conversation{Instance: "i", Session: "s"}.Expand(address, url.PathEscape))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return badRequest("base_url: want http:// or https://, a host and a path, without user, query or fragment")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return badRequest("base_url: %.20q is no port", p)
		}
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		if checkIP(ip.Unmap().WithZone("")) != nil {
			return badRequest("base_url: %v", checkIP(ip.Unmap().WithZone("")))
		}
	} else if isNumber(host) {
		return badRequest("base_url: write the address of the host with four numbers, or its name")
	}
	if host == "metadata" || strings.HasPrefix(host, "metadata.") || host == "instance-data" || strings.HasSuffix(host, ".internal") && strings.HasPrefix(host, "metadata") {
		return badRequest("base_url: %.100s is a metadata service", host)
	}
	return nil
}

// isNumber reports whether some resolvers read a host as an address: 2852039166 or 0xA9FEA9FE.
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil
}

// Metadata services of clouds whose addresses are not link-local.
var metadataIPs = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("168.63.129.16"),
}

// checkIP returns an error for an address to which no request of a client may lead:
// those of metadata services, which give out credentials of this machine.
func checkIP(ip netip.Addr) error {
	isMetadata := ip.IsLinkLocalUnicast()
	for _, known := range metadataIPs {
		isMetadata = isMetadata || ip == known
	}
	if isMetadata || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("%s is a link-local address or a metadata service, where no model is", ip)
	}
	return nil
}

// findSubset returns the dataset that has an instance.
func (s *server) findSubset(subset, instance string) (string, error) {
	names := s.options.Datasets.Subsets
	if subset != "" {
		names = nil
		for _, name := range s.options.Datasets.Subsets {
			if name == subset {
				names = []string{name}
			}
		}
		if names == nil {
			return "", &httpError{http.StatusNotFound, fmt.Sprintf("this service has no dataset %.100q; it has %s", subset, strings.Join(s.options.Datasets.Subsets, ", "))}
		}
	}
	var ids []string
	for _, name := range names {
		if _, ok := s.service.Rows[name][instance]; ok {
			return name, nil
		}
		for id := range s.service.Rows[name] {
			ids = append(ids, id)
		}
	}
	hint := ""
	if near := datasets.ClosestIDs(instance, ids, 1); len(near) > 0 {
		hint = "; did you mean " + near[0] + "?"
	}
	return "", &httpError{http.StatusNotFound, fmt.Sprintf("no dataset of this service has the instance %.100q%s", instance, hint)}
}

// taskFolder returns the path of a task, which must be in one of the folders of --tasks.
func (s *server) taskFolder(task string) (string, error) {
	refused := &httpError{http.StatusForbidden, "task: the folder is in none of those that this service was started with (--tasks)"}
	for _, allowed := range s.options.tasks {
		path := task
		if !filepath.IsAbs(path) {
			path = filepath.Join(allowed, path)
		}
		real, err := filepath.EvalSymlinks(path)
		root, rootErr := filepath.EvalSymlinks(allowed)
		if err != nil || rootErr != nil {
			continue
		}
		if real, err = filepath.Abs(real); err == nil {
			root, err = filepath.Abs(root)
		}
		if rel, relErr := filepath.Rel(root, real); err == nil && relErr == nil && filepath.IsLocal(rel) && rel != "." {
			return real, nil
		}
	}
	return "", refused
}
