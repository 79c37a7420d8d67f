package ask_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnswers(t *testing.T) {
	var out strings.Builder
	p := ask.New(strings.NewReader("\n  own \r\nx\n9\n2\n\nmaybe\nno\nhidden \nlast"), &out)
	ctx := t.Context()
	got := []any{}
	record := func(v any, err error) {
		if err != nil {
			got = append(got, err)
			return
		}
		got = append(got, v)
	}
	for range 2 {
		v, err := p.Ask(ctx, "Name", "usual")
		record(v, err)
	}
	for range 2 {
		v, err := p.Choose(ctx, "Number", []string{"one", "two", "three"}, 2)
		record(v, err)
	}
	yes, err := p.Confirm(ctx, "So?")
	record(yes, err)
	secret, err := p.AskSecret(ctx, "Key")
	record(secret, err)
	_, err = p.Ask(ctx, "More", "")
	record(nil, err)
	want := []any{"usual", "own", 1, 2, false, "hidden", ask.ErrEOF}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %v, want %v", i, got[i], want[i])
		}
	}
	for _, text := range []string{"Name [usual]: ", "  3  three\n", "Number [3]: ", "from 1 to 3, or a part of one line.", "So? [Y/n]: ", "y or n"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("no %q in %q", text, out.String())
		}
	}
}

func TestAnswerIsBounded(t *testing.T) {
	p := ask.New(strings.NewReader(strings.Repeat("x", 2<<20)), &strings.Builder{})
	if _, err := p.Ask(t.Context(), "Name", ""); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
}

// Ask returns the cause of a canceled context and leaves no goroutine behind.
func TestContextEndsWaiting(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := ask.New(r, &strings.Builder{})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := p.Ask(ctx, "Name", "")
		done <- err
	}()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Error(err)
	}
}

// Text chooses the only item that contains its words, or lists those that do.
func TestChooseByText(t *testing.T) {
	var out strings.Builder
	p := ask.New(strings.NewReader("fix\nparser FIX\n"), &out)
	index, err := p.Choose(t.Context(), "Number", []string{"today", "yesterday", "before"}, 0, "fix the lexer", "write docs", "fix the parser")
	if index != 2 || err != nil {
		t.Errorf("%d, %v", index, err)
	}
	if want := "Number [1]:   1  today\n  3  before\nNumber [1]: "; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want it to end with %q", out.String(), want)
	}
}
