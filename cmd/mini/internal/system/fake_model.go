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
	replies, listen, faults, price, books string
	fault, models                         []string
	seed                                  uint64
	limits                                fake.Limits
	requireKey, verbose, list             bool
}

// fakeReplies are given to everybody where no file is named: a look around, and
// the end.
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
		Long: `Serves the APIs of OpenAI and Anthropic on this machine, to test what talks to
them. Ctrl-C ends it with its books; docs/fake-model.md says more.`,
		Example: `  mini fake-model --replies replies.yaml --faults 5% --rpm 600
  mini fake-model --fault rate-limit@1,2 --fault cut@5`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.list {
				return listFaults(s)
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
	f.StringArrayVar(&o.fault, "fault", nil, "`NAME` for every request, NAME@1,5 for these")
	f.StringVar(&o.faults, "faults", "", "`P` as 5%, or 5%:cut,reset, of the requests")
	f.Uint64Var(&o.seed, "seed", 0, "seed of --faults")
	f.BoolVar(&o.list, "list-faults", false, "print the names of faults, and end")
	f.IntVar(&o.limits.RequestsPerMinute, "rpm", 0, "limit of requests a minute (0: none)")
	f.Int64Var(&o.limits.TokensPerMinute, "tpm", 0, "limit of tokens a minute (0: none)")
	f.IntVar(&o.limits.Concurrent, "concurrent", 0, "limit of concurrent requests (0: none)")
	f.StringVar(&o.price, "price", "", "`USD` per million: input,output,cached,written")
	f.StringVar(&o.books, "books", "", "write a line of JSON per request to `FILE` at the end")
	f.BoolVar(&o.verbose, "verbose", false, "a line for each request")
	return cmd
}

func listFaults(s cmdutil.Streams) error {
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

// run serves until the context ends, which is how it is meant to end.
func (o *fakeOptions) run(ctx context.Context, s cmdutil.Streams) error {
	config, err := o.config(s)
	if err != nil {
		return usage.Wrap(err)
	}
	server, err := fake.New(config)
	if err != nil {
		return usage.Wrap(err)
	}
	l, err := o.open(ctx)
	if err != nil {
		return usage.Wrap(err)
	}
	o.greet(s, l.Addr())
	var work errgroup.Group
	work.Go(func() error { return server.Serve(l) })
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = server.Close() // what it says of listeners is Serve's to tell
	})
	err = work.Wait()
	if stop() {
		_ = server.Close() // it ended by itself
	} else {
		<-ended
	}
	return errors.Join(err, o.tell(s, server.Stats()))
}

// greet prints the two lines that clients need, in the form of a shell's; what
// is for people goes elsewhere.
func (o *fakeOptions) greet(s cmdutil.Streams, at net.Addr) {
	_, _ = fmt.Fprintf(s.Out, "OPENAI_BASE_URL=http://%s/v1\nANTHROPIC_BASE_URL=http://%s\n", at, at) // only for people
	_, _ = fmt.Fprintln(s.Err, "mini: a fake model answers there; Ctrl-C ends it and prints its books")
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		_, _ = fmt.Fprintln(s.Err, "      everybody who reaches this machine can ask it, and read its books")
	}
}

// tell prints the books in short, and writes them where they are wanted.
func (o *fakeOptions) tell(s cmdutil.Streams, b fake.Stats) error {
	if _, err := fmt.Fprint(s.Err, b.Summary()); err != nil {
		return err
	}
	if o.books == "" {
		return nil
	}
	var data bytes.Buffer
	lines := json.NewEncoder(&data)
	for _, r := range b.Requests {
		if err := lines.Encode(r); err != nil {
			return fmt.Errorf("write books: %w", err)
		}
	}
	if err := atomicfile.Write(o.books, data.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write books: %w", err)
	}
	return nil
}

// open listens on this machine alone, unless an address is named.
func (o *fakeOptions) open(ctx context.Context) (net.Listener, error) {
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
