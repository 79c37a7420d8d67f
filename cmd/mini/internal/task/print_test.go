package task

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
)

// The print mode says that it waits for a slow writer, and the user can end that.
func TestReadPiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var shown strings.Builder
		a := app.New(t.Context(), cmdutil.Streams{In: r, Err: &shown})
		go func() {
			time.Sleep(time.Hour)
			_, _ = io.WriteString(w, "late")
			_ = w.Close()
		}()
		text, err := readPiped(t.Context(), a)
		if text != "late" || err != nil || strings.Count(shown.String(), "from stdin") != 1 {
			t.Errorf("%q, %v, %q", text, err, &shown)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(stopped)
		}()
		var shown strings.Builder
		if _, err := readPiped(ctx, app.New(ctx, cmdutil.Streams{In: r, Err: &shown})); !errors.Is(err, stopped) || shown.Len() > 0 {
			t.Errorf("%v, %q", err, &shown)
		}
		_ = w.Close() // ends the reader
	})
}
