package fake

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/minibench/mini/model/scripted"
)

// defaultReplies is the script without -replies: a step that runs ls, and a step that submits.
const defaultReplies = `
- "I look around.\n\n` + "```bash\\nls\\n```" + `"
- "That is all.\n\n` + "```bash\\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n```" + `"
`

// Main is the program model/fake/serve. It serves until SIGINT, and returns the exit code.
func Main(args []string, out, errs io.Writer) int {
	config, address, err := parseFlags(args, errs)
	if err == nil {
		err = serveUntilInterrupt(config, address, out, errs)
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	default:
		_, _ = fmt.Fprintln(errs, "fake model:", err) // best effort
		return 2
	}
}

func parseFlags(args []string, errs io.Writer) (c Config, address string, err error) {
	var names []string
	for _, f := range faults {
		names = append(names, fmt.Sprintf("%s (%s)", f.Name, f.Description))
	}
	c.Plan = &Plan{}
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&address, "listen", "127.0.0.1:0", "`address` to listen on; port 0 is a free one")
	replies := f.String("replies", "", "`file` of replies, YAML or JSON (default: two steps that submit)")
	f.Func("model", "serve only the model with this `name`; repeatable", func(name string) error {
		c.Models = append(c.Models, name)
		return nil
	})
	f.BoolFunc("require-key", "answer 401 to requests without a key", func(string) error {
		c.CheckKey = func(key string) bool { return key != "" }
		return nil
	})
	f.Func("fault", "`fault` of every request; NAME@1,5 only of requests 1 and 5; repeatable. Faults: "+strings.Join(names, ", "), func(value string) error {
		name, numbers, _ := strings.Cut(value, "@")
		rule := Rule{Faults: []string{name}}
		for number := range strings.SplitSeq(numbers, ",") {
			if n, err := strconv.Atoi(number); err == nil {
				rule.Requests = append(rule.Requests, n)
			} else if numbers != "" {
				return fmt.Errorf("after @ come numbers of requests, as in %s@1,5", name)
			}
		}
		c.Plan.Rules = append(c.Plan.Rules, rule)
		return rule.Validate()
	})
	share := f.Float64("faults", 0, "`share` of requests that fail with a fault after which a retry succeeds, such as 0.05")
	f.Uint64Var(&c.Plan.Seed, "seed", 0, "seed of -faults")
	f.BoolVar(&c.Tokens, "tokens", false, "answer chat completions as vLLM does, with token ids and log probabilities; without faults and prices")
	f.Func("price", "prices in `dollars` per million tokens: input,output,cached,written", func(value string) (err error) {
		fields := []*float64{&c.Price.Input, &c.Price.Output, &c.Price.Cached, &c.Price.CacheWrite}
		for i, text := range strings.Split(value, ",") {
			if i == len(fields) {
				return errors.New("more than four prices")
			}
			if *fields[i], err = strconv.ParseFloat(text, 64); err != nil {
				return err
			}
		}
		return nil
	})
	if err := f.Parse(args); err != nil {
		return c, "", err
	}
	if c.Tokens && (len(c.Plan.Rules) > 0 || *share > 0 || c.Price.IsKnown()) {
		return c, "", errors.New("-tokens: there are no faults and prices with it; leave -fault, -faults and -price out")
	}
	if *share > 0 {
		c.Plan.Rules = append(c.Plan.Rules, Rule{Probability: *share, Faults: TransientFaults()})
	}
	data := []byte(defaultReplies)
	if *replies != "" {
		if data, err = os.ReadFile(*replies); err != nil {
			return c, "", err
		}
	}
	c.Script, err = scripted.Parse(*replies, data)
	return c, address, err
}

// serveUntilInterrupt prints the addresses on out, as assignments that a shell can read, and the
// statistics on errs.
func serveUntilInterrupt(c Config, address string, out, errs io.Writer) error {
	server, err := New(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "OPENAI_BASE_URL=http://%s/v1\nANTHROPIC_BASE_URL=http://%[1]s\n", listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = errors.Join(server.Close(), <-served)
	}
	_, printErr := fmt.Fprint(errs, server.Stats().Summary())
	return errors.Join(err, printErr)
}
