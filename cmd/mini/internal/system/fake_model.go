package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model/fake"
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
func NewFakeModel(s cmdutil.Streams) *cobra.Command {
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
				return printFaults(s)
			}
			return o.run(cmd.Context(), s)
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
func printFaults(s cmdutil.Streams) error {
	rows := [][]string{{"FAULT", "CHARGED", "WHAT A CLIENT SEES"}}
	for _, f := range fake.Faults() {
		charged := "no"
		if f.Charged {
			charged = "yes"
		}
		rows = append(rows, []string{f.Name, charged, f.Description})
	}
	_, err := io.WriteString(s.Out, cmdutil.FormatColumns(rows))
	return err
}

// run serves requests until ctx is canceled, then prints the statistics.
func (o *fakeOptions) run(ctx context.Context, s cmdutil.Streams) error {
	config, err := o.config(s)
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
	o.printAddresses(s, listener.Addr())
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
	return errors.Join(err, o.writeStats(s, server.Stats()))
}

// printAddresses prints the base URLs for clients on stdout, as assignments that a
// shell can read. It prints notes for the user on stderr.
func (o *fakeOptions) printAddresses(s cmdutil.Streams, addr net.Addr) {
	_, _ = fmt.Fprintf(s.Out, "OPENAI_BASE_URL=http://%s/v1\nANTHROPIC_BASE_URL=http://%s\n", addr, addr) // best effort
	_, _ = fmt.Fprintln(s.Err, "mini: the fake model is serving; press Ctrl-C to stop it and print statistics")
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		_, _ = fmt.Fprintln(s.Err, "      anyone who can reach this machine can use it and read its statistics")
	}
}

// writeStats prints a summary of the requests. With --books, it also writes all
// requests to a file.
func (o *fakeOptions) writeStats(s cmdutil.Streams, stats fake.Stats) error {
	if _, err := fmt.Fprint(s.Err, stats.Summary()); err != nil {
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
