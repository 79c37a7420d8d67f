package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories/scripts"
)

// fakeOptions are the flags of mini fake-model.
type fakeOptions struct {
	replies, listen, price string
	statsFile              string   // --books
	faultRules             []string // --fault
	faultShare             string   // --faults
	seed                   uint64   // of --faults
	models                 []string
	limits                 fake.Limits
	requireKey, verbose    bool
	listFaults             bool
}

// fakeReplies is the script without --replies: a step that runs ls, and a step
// that submits.
const fakeReplies = `
- "I look around.\n\n` + "```bash\\nls\\n```" + `"
- "That is all.\n\n` + "```bash\\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n```" + `"
`

// NewFakeModel returns the command mini fake-model.
func NewFakeModel(a *app.App) *cobra.Command {
	o := &fakeOptions{}
	cmd := &cobra.Command{
		Use:   "fake-model",
		Short: "Serve scripted replies as a provider does, with faults",
		Long: `Serves the APIs of OpenAI and Anthropic on this machine, for tests of their
clients. Ctrl-C stops the server and prints statistics; see docs/fake-model.md.`,
		Example: `  mini fake-model --replies replies.yaml --faults 5% --rpm 600
  mini fake-model --fault rate-limit@1,2 --fault cut@5`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listFaults {
				return printFaults(a)
			}
			return o.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.replies, "replies", "", "`FILE` of replies (YAML) or trajectory (default: two steps that submit)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 is a free one")
	f.StringArrayVar(&o.models, "model", nil, "serve only the model with this `NAME`; repeatable")
	f.BoolVar(&o.requireKey, "require-key", false, "answer 401 to requests without a key")
	f.StringArrayVar(&o.faultRules, "fault", nil, "fault `NAME` for every request; NAME@1,5 only for requests 1 and 5")
	f.StringVar(&o.faultShare, "faults", "", "share `P` of requests that fail: 5%, or 5%:cut,reset for these faults")
	f.Uint64Var(&o.seed, "seed", 0, "seed of --faults")
	f.BoolVar(&o.listFaults, "list-faults", false, "print the names of faults and exit")
	f.IntVar(&o.limits.RequestsPerMinute, "rpm", 0, "limit of requests per minute (0: none)")
	f.Int64Var(&o.limits.TokensPerMinute, "tpm", 0, "limit of tokens per minute (0: none)")
	f.IntVar(&o.limits.Concurrent, "concurrent", 0, "limit of concurrent requests (0: none)")
	f.StringVar(&o.price, "price", "", "prices in `USD` per million tokens: input,output,cached,written")
	f.StringVar(&o.statsFile, "books", "", "write a line of JSON per request to `FILE` at the end")
	f.BoolVar(&o.verbose, "verbose", false, "print a line for each request")
	return cmd
}

// printFaults prints a table of all faults.
func printFaults(a *app.App) error {
	rows := [][]string{{"FAULT", "CHARGED", "WHAT A CLIENT SEES"}}
	for _, f := range fake.Faults() {
		charged := "no"
		if f.Charged {
			charged = "yes"
		}
		rows = append(rows, []string{f.Name, charged, f.Description})
	}
	_, err := io.WriteString(a.Out, cmdutil.FormatColumns(rows))
	return err
}

// run serves requests until ctx is canceled, then prints the statistics.
func (o *fakeOptions) run(ctx context.Context, a *app.App) error {
	config, err := o.config(a)
	if err != nil {
		return usage.Wrap(err)
	}
	server, err := fake.New(config)
	if err != nil {
		return usage.Wrap(err)
	}
	listener, err := o.openListener(ctx)
	if err != nil {
		return usage.Wrap(err)
	}
	o.printAddresses(a, listener.Addr())
	var serving errgroup.Group
	serving.Go(func() error { return server.Serve(listener) })
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = server.Close() // Serve returns the errors of the listener
	})
	err = serving.Wait()
	if stop() {
		_ = server.Close() // Serve returned before ctx was canceled
	} else {
		<-closed
	}
	return errors.Join(err, o.writeStats(a, server.Stats()))
}

// printAddresses prints the base URLs for clients on stdout, as assignments that a
// shell can read. It prints notes for the user on stderr.
func (o *fakeOptions) printAddresses(a *app.App, addr net.Addr) {
	_, _ = fmt.Fprintf(a.Out, "OPENAI_BASE_URL=http://%s/v1\nANTHROPIC_BASE_URL=http://%s\n", addr, addr) // best effort
	_, _ = fmt.Fprintln(a.Err, "mini: the fake model is serving; press Ctrl-C to stop it and print statistics")
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		_, _ = fmt.Fprintln(a.Err, "      anyone who can reach this machine can use it and read its statistics")
	}
}

// writeStats prints a summary of the requests. With --books, it also writes all
// requests to a file.
func (o *fakeOptions) writeStats(a *app.App, stats fake.Stats) error {
	if _, err := fmt.Fprint(a.Err, stats.Summary()); err != nil {
		return err
	}
	if o.statsFile == "" {
		return nil
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	for _, r := range stats.Requests {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write statistics: %w", err)
		}
	}
	if err := atomicfile.Write(o.statsFile, data.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write statistics: %w", err)
	}
	return nil
}

// openListener listens on the address of --listen. An address without a host means
// loopback.
func (o *fakeOptions) openListener(ctx context.Context) (net.Listener, error) {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, usage.Errorf("--listen: %w; want ADDRESS:PORT, as 127.0.0.1:8080", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// config returns the configuration that the flags describe. It validates these flags, but not
// --listen and --books.
func (o *fakeOptions) config(a *app.App) (fake.Config, error) {
	c := fake.Config{Models: o.models, Limits: o.limits}
	var err error
	if c.Script, err = o.script(); err != nil {
		return c, err
	}
	if c.Plan, err = o.faultPlan(); err != nil {
		return c, err
	}
	if c.Price, err = o.parsePrice(); err != nil {
		return c, err
	}
	if o.requireKey {
		c.CheckKey = func(key string) bool { return key != "" }
	}
	if o.verbose {
		c.OnRequest = func(r fake.Request) {
			_, _ = fmt.Fprintln(a.Err, text.Printable(requestText(r))) // best effort
		}
	}
	return c, nil
}

// requestText describes a request in one line.
func requestText(r fake.Request) string {
	fields := []string{strconv.Itoa(r.Number), r.API, r.Model, r.Instance, "step", strconv.Itoa(r.Step), string(r.Outcome), strconv.Itoa(r.Status)}
	if r.Stream {
		fields = append(fields, "stream")
	}
	if r.Limit != "" {
		fields = append(fields, "over the limit of "+r.Limit)
	}
	if r.Fault != "" {
		fields = append(fields, r.Fault)
	}
	return strings.Join(fields, " ")
}

// script returns the replies of --replies, or else fakeReplies.
func (o *fakeOptions) script() (*scripted.Script, error) {
	if o.replies == "" {
		return scripted.Parse("the replies of fake-model", []byte(fakeReplies))
	}
	script, err := scripts.Load(o.replies)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage.Errorf("--replies: %s: no such file; it holds the replies, as YAML or JSON, or is a trajectory", o.replies)
	}
	return script, err
}

// faultPlan returns the rules of --fault, followed by the rule of --faults.
func (o *fakeOptions) faultPlan() (*fake.Plan, error) {
	p := &fake.Plan{Seed: o.seed}
	for _, flag := range o.faultRules {
		name, requests, _ := strings.Cut(flag, "@")
		rule := fake.Rule{Faults: []string{name}}
		if err := rule.Validate(); err != nil {
			return nil, usage.Errorf("--fault %.60q: %w; see mini fake-model --list-faults", flag, err)
		}
		for number := range strings.SplitSeq(requests, ",") {
			n, err := strconv.Atoi(number)
			if requests != "" && (err != nil || n < 1) {
				return nil, usage.Errorf("--fault %s: after @ come numbers of requests, as in %s@1,5", flag, name)
			}
			if requests != "" {
				rule.Requests = append(rule.Requests, n)
			}
		}
		p.Rules = append(p.Rules, rule)
	}
	if o.faultShare != "" {
		chance, names, _ := strings.Cut(o.faultShare, ":")
		rule := fake.Rule{Faults: fake.TransientFaults()}
		var err error
		if rule.Probability, err = parseProbability(chance); err != nil {
			return nil, usage.Errorf("--faults: %w", err)
		}
		if names != "" {
			rule.Faults = strings.Split(names, ",")
		}
		if err := rule.Validate(); err != nil {
			return nil, usage.Errorf("--faults: %w; see mini fake-model --list-faults", err)
		}
		if rule.Probability > 0 { // a rule with probability 0 applies to every request
			p.Rules = append(p.Rules, rule)
		}
	}
	return p, nil
}

// parseProbability parses a percentage such as 5%, or a number such as 0.05.
func parseProbability(text string) (float64, error) {
	digits, isPercent := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	if isPercent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("%.60q is no probability: want 5%%, or 0.05", text)
	}
	return p, nil
}

// parsePrice parses --price.
func (o *fakeOptions) parsePrice() (model.Price, error) {
	var p model.Price
	if o.price == "" {
		return p, nil
	}
	fields := []*float64{&p.Input, &p.Output, &p.Cached, &p.CacheWrite}
	texts := strings.Split(o.price, ",")
	if len(texts) < 2 || len(texts) > len(fields) {
		return p, usage.Errorf("--price: want 2 to 4 prices in US dollars per million tokens: input,output,cached,written")
	}
	for i, text := range texts {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(f >= 0 && f < 1e9) {
			return p, usage.Errorf("--price: %.60q is no price in US dollars", text)
		}
		*fields[i] = f
	}
	return p, nil
}
