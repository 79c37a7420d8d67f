package envopen

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/internal/text"
)

// sweep removes the containers and volumes of mini processes that were killed, and
// prints what it removed. What it cannot remove is a warning; it returns an error only if
// the engine does not answer or ctx has ended.
func sweep(ctx context.Context, engine *docker.Engine, w io.Writer) error {
	removed, err := engine.Sweep(ctx)
	for _, l := range removed {
		_, _ = fmt.Fprintln(w, "mini: removed leftovers of a killed mini:", text.Printable(l.String())) // best effort
	}
	failed, ok := errors.AsType[*env.Error](err)
	if err == nil || !ok || failed.Status == env.DaemonUnavailable {
		return err
	}
	_, _ = fmt.Fprintln(w, "mini: warning: cannot remove leftovers of a killed mini:", text.Printable(err.Error())) // best effort
	return nil
}
