package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/cmd/mini/internal/prompt"
	"github.com/minibench/mini/cmd/mini/internal/ptytest"
)

const childEnv = "PROMPT_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		time.AfterFunc(3*ptytest.Deadline, func() { os.Exit(3) }) // however a test ends
		if err := child(part); err != nil {
			fmt.Println("FAILED", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var commands = prompt.Commands{
	"help", "yolo", "diff", "thinking", "dirs",
}

// child asks again and again, and says what it got.
func child(part string) error {
	history, err := prompt.OpenHistory(os.Getenv("PROMPT_HISTORY"))
	if err != nil {
		return err
	}
	cancel := make(chan os.Signal, 1)
	signal.Notify(cancel, syscall.SIGUSR1)
	signal.Ignore(syscall.SIGHUP)
	r := prompt.New(prompt.Config{
		In: os.Stdin, Out: os.Stdout, Dumb: strings.HasPrefix(part, "dumb"), History: history, Complete: commands.Complete,
		Suspend: func() {
			resumed := make(chan os.Signal, 1)
			signal.Notify(resumed, syscall.SIGCONT)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-resumed
		},
	})
	for {
		text, err := ask(r, part, cancel)
		fmt.Printf("GOT %d %.200q %v.\n", len(text), text, err)
		if path := os.Getenv("PROMPT_RESULT"); path != "" { // there may be no terminal any more
			_ = os.WriteFile(path, fmt.Append(nil, err), 0o600)
		}
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, prompt.ErrInterrupted) {
			signal.Stop(cancel)
			return goleak.Find(goleak.IgnoreTopFunction("os/signal.signal_recv"), goleak.IgnoreAnyFunction("os/signal.loop"))
		}
	}
}

func ask(r *prompt.Reader, part string, cancelled <-chan os.Signal) (string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-cancelled:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-done }()
	switch strings.TrimPrefix(part, "dumb ") {
	case "text":
		return r.Text(ctx, "text: ")
	case "secret":
		return r.Secret(ctx, "key: ")
	}
	return r.Line(ctx, "one\nline: ")
}
