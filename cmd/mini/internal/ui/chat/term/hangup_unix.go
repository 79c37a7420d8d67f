//go:build unix

package term

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// watchHangup reports SIGHUP to the input handler.
func (f *Frontend) watchHangup(ctx context.Context) {
	if signal.Ignored(syscall.SIGHUP) {
		return // started by nohup
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	select {
	case <-signals:
		f.notifyHangup()
		<-ctx.Done() // ignore further hangups
	case <-ctx.Done():
	}
}
