// Package serve implements mini serve: attempts and verdicts over HTTP, for programs
// that train models.
//
// Each accepted rollout is a run folder and a file with the request, so that the next
// service continues what this one has accepted. Keys of models are in memory only.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/model/transport"
	"github.com/minibench/mini/runner/runs"
)

// Options are the flags of mini serve.
type Options struct {
	bench.Options
	listen           string
	tlsCert, tlsKey  string
	plainHTTP        bool
	tokenFile        string
	tasks            []string // folders whose tasks in Harbor's form may be requested
	queue, perClient int
}

// TokenVariable is the environment variable with the token of the only client.
const TokenVariable = "MINI_SERVE_TOKEN"

// New returns the command mini serve.
func New(a *app.App) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "serve --subset SET",
		Short: "Serve attempts and verdicts over HTTP, for reinforcement learning",
		Long: `Serves attempts at the instances of a dataset, and verdicts on patches, over HTTP,
until Ctrl-C. POST /rollouts starts attempts, GET /rollouts/ID returns the outcome,
the reward and the tokens, POST /verify returns the verdict on a patch, and
POST /run is the form of NeMo Gym. GET /openapi.json describes all of them, and
docs/rl.md shows how to train with them.

The flags are those of mini bench; a request chooses the model, its address and key,
the sampling and the number of attempts. Every request but GET /health needs the
token of a client: that of ` + TokenVariable + `, one of --token-file, or the one that
mini serve prints. Everything is in the folder -o. A service that begins there again
continues what was accepted.`,
		Example: `  mini serve --subset verified -w 16 --tokens -o serve
  curl -H "Authorization: Bearer $MINI_SERVE_TOKEN" -d '{"instance": "django__django-11099",
    "model": "policy", "base_url": "http://127.0.0.1:8000/v1", "k": 8}' http://127.0.0.1:7350/rollouts`,
		Args: cmdutil.FlagsOnly("subset", "--subset"),
	}
	f := cmd.Flags()
	o.AddFlags(f)
	// A request chooses these, or they are for people.
	others := []string{"instance", "filter", "slice", "shuffle", "seed", "dry-run", "progress", "json", "redo-existing", "events", "attempts", "eval", "force"}
	for _, name := range others {
		f.Lookup(name).Hidden = true
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range others {
			if f.Changed(name) {
				return usage.Errorf("--%s is not for mini serve; docs/rl.md says what a request chooses", name)
			}
		}
		return run(cmd.Context(), a, o)
	}
	f.Lookup("output").Usage = "`FOLDER` of the service, with the folders of runs (default mini-runs/serve)"
	f.StringVar(&o.listen, "listen", "127.0.0.1:7350", "`ADDRESS:PORT` to listen on")
	f.StringVar(&o.tlsCert, "tls-cert", "", "`FILE` with the certificate, for TLS")
	f.StringVar(&o.tlsKey, "tls-key", "", "`FILE` with the key of the certificate")
	f.BoolVar(&o.plainHTTP, "plain-http", false, "listen without TLS on other addresses than this machine's own")
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE` with a line NAME:TOKEN for each client")
	f.StringArrayVar(&o.tasks, "tasks", nil, "`FOLDER` whose tasks in Harbor's form may be requested; repeatable")
	f.IntVar(&o.queue, "queue", 10000, "number of rollouts that may wait or run")
	f.IntVar(&o.perClient, "per-client", 0, "number of rollouts of one client that may wait or run (0: as many as --queue)")
	return cmd
}

// Limits of connections.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 2 * time.Minute // of a request with its body, or of waiting for the response
	writeTimeout      = 2 * time.Minute // of a response, or of waiting for it
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 5 * time.Second
	maxHeader         = 64 << 10
	maxConnections    = 4096
)

func run(ctx context.Context, a *app.App, o *Options) (err error) {
	if o.queue < 1 || o.perClient < 0 {
		return usage.Errorf("--queue and --per-client are numbers of rollouts, from 1; --per-client 0 is as many as --queue")
	}
	for _, dir := range o.tasks {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return usage.Errorf("--tasks %s: there is no such folder", dir)
		}
	}
	if _, err := runs.Detect(o.Output); err == nil && o.Output != "" {
		return usage.Errorf("-o %s: this is the folder of a run; name another one for the service", o.Output)
	}
	if len(o.Datasets.Subsets) == 0 {
		return usage.Errorf("--subset is needed: demo, verified, lite ..., or a file of rows; see mini datasets list")
	}
	if o.Output == "" {
		o.Output = filepath.Join(cmdutil.DefaultRunsDir, "serve")
	}
	if o.perClient == 0 {
		o.perClient = o.queue
	}
	tokens, printed, err := o.clients()
	if err != nil {
		return err
	}
	listener, scheme, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // closed by the server
	if err := os.MkdirAll(o.Output, 0o700); err != nil {
		return usage.Wrap(err)
	}
	root, err := rootdir.Open(o.Output)
	if err != nil {
		return usage.Wrap(err)
	}
	defer root.Close() //nolint:errcheck // only a handle
	lock := flock.New(filepath.Join(o.Output, "serve.lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return usage.Wrap(errors.Join(err, fmt.Errorf("another mini serve uses %s; end it, or choose another folder with -o", o.Output)))
	}
	defer lock.Unlock() //nolint:errcheck // the process releases it anyway
	cmdutil.SetMemory(100, 96<<20)
	// Commands on this machine can keep a thread of mini waiting for a processor. With more threads, few
	// requests wait behind it.
	runtime.GOMAXPROCS(max(8, runtime.GOMAXPROCS(0)))
	service, err := bench.OpenService(ctx, a, &o.Options, &modelopen.Limits{HTTP: transport.NewHTTPClient(checkIP)})
	if err != nil {
		return usage.Wrap(err)
	}
	// The jobs end at the first Ctrl-C; then Close waits for them.
	jobs, stopJobs := context.WithCancelCause(ctx)
	s := newServer(jobs, service, root, o, tokens)
	defer func() {
		stopJobs(errStopped)
		s.wait.Wait()
		err = errors.Join(err, service.Close())
	}()
	continued, err := s.restore() //nolint:contextcheck // the context of the jobs is the server's
	if err != nil {
		return usage.Wrap(err)
	}
	attempts, evaluations := service.Workers()
	_, _ = fmt.Fprintf(a.Err, "mini: %s://%s serves %s with %s and %s\nmini: files go to %s; Ctrl-C ends it, and the next service continues\n", // best effort
		scheme, listener.Addr(), text.Printable(strings.Join(o.Datasets.Subsets, ", ")), text.Count(attempts, "worker"),
		text.Count(evaluations, "evaluation worker"), text.Printable(o.Output))
	if continued > 0 {
		_, _ = fmt.Fprintf(a.Err, "mini: %s of the service before continue\n", text.Count(continued, "rollout"))
	}
	if printed != "" {
		_, _ = fmt.Fprintf(a.Err, "mini: the token of this service: %s\n", printed)
	}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return jobs },
	}
	stop := context.AfterFunc(ctx, func() {
		stopJobs(errStopped) // also ends long polls
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ctx) // connections that are left end with the process
	})
	defer stop()
	if err := server.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// open listens, with TLS if there is a certificate.
func (o *Options) open(ctx context.Context) (_ net.Listener, scheme string, err error) {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, "", usage.Errorf("--listen %.100q: want ADDRESS:PORT, such as 127.0.0.1:7350", o.listen)
	}
	if (o.tlsCert == "") != (o.tlsKey == "") {
		return nil, "", usage.Errorf("--tls-cert and --tls-key are for each other; give both")
	}
	ip := net.ParseIP(host)
	if isLoopback := host == "localhost" || ip != nil && ip.IsLoopback(); !isLoopback && o.tlsCert == "" && !o.plainHTTP {
		return nil, "", usage.Errorf("--listen %.100s: other machines can read tokens and keys without TLS; give --tls-cert and --tls-key, or --plain-http in a network that you trust", o.listen)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return nil, "", usage.Errorf("listen: %w; choose another address with --listen", err)
	}
	if o.tlsCert == "" {
		return listener, "http", nil
	}
	certificate, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, "", usage.Wrap(errors.Join(fmt.Errorf("read certificate: %w", err), listener.Close()))
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}), "https", nil
}

// minToken is the minimum length of a token, in bytes.
const minToken = 16

// clients returns the names of the clients by token. printed is the token to print, if it
// was made here.
func (o *Options) clients() (names map[string]string, printed string, err error) {
	names = map[string]string{}
	add := func(name, token, from string) error {
		if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return usage.Errorf("%s: a token has at least %d printable characters and no spaces", from, minToken)
		}
		names[token] = name
		return nil
	}
	if o.tokenFile == "" {
		token := os.Getenv(TokenVariable)
		if token == "" {
			token = rand.Text()
			printed = token
		}
		return names, printed, add("client", token, TokenVariable)
	}
	data, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return nil, "", usage.Errorf("--token-file: %w", err)
	}
	if info, err := os.Stat(o.tokenFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, "", usage.Errorf("--token-file %s: other users may read it; run chmod 600 %[1]s", o.tokenFile)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, token, ok := strings.Cut(line, ":")
		from := fmt.Sprintf("%s:%d", o.tokenFile, i+1)
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, "", usage.Errorf("%s: want NAME:TOKEN", from)
		}
		if err := add(name, strings.TrimSpace(token), from); err != nil {
			return nil, "", err
		}
	}
	if len(names) == 0 {
		return nil, "", usage.Errorf("--token-file %s has no line NAME:TOKEN", o.tokenFile)
	}
	return names, "", nil
}
