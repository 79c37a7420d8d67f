//go:build unix

package screen

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// listen waits for the terminal's hangup, which is the core's to act on.
func (s *Screen) listen(ctx context.Context) {
	if signal.Ignored(syscall.SIGHUP) {
		return // nohup's wish
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	select {
	case <-signals:
		s.hungUp()
		<-ctx.Done() // a second one does not kill
	case <-ctx.Done():
	}
}
