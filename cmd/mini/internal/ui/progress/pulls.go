package progress

import (
	"fmt"
	"sync"
	"time"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/runner"
)

// pullInterval is the minimum time between two events about one pull, except the
// last one.
const pullInterval = 2 * time.Second

// PullEvents returns a callback that converts the progress of image pulls to run
// events. It limits their rate by pullInterval.
func PullEvents(emit func(runner.Event)) func(docker.PullProgress) {
	var mu sync.Mutex
	lastEvent := map[string]time.Time{}
	return func(p docker.PullProgress) {
		mu.Lock()
		defer mu.Unlock()
		if !p.Done && time.Since(lastEvent[p.Image]) < pullInterval {
			return
		}
		lastEvent[p.Image] = time.Now()
		text := fmt.Sprintf("%s: %d of %d layers, %d of %d MB", p.Image, p.LayersDone, p.Layers, p.Bytes/1e6, p.Total/1e6)
		switch {
		case p.Stopped:
			text = p.Image + ": the pull was stopped"
		case p.Failed:
			text = p.Image + ": the pull has failed"
		case p.Done:
			text = p.Image + ": the pull has ended"
		}
		emit(runner.Event{Type: runner.PullProgress, Text: text, Pull: &runner.PullState{
			Image: p.Image, Layers: p.Layers, LayersDone: p.LayersDone, Bytes: p.Bytes, Total: p.Total,
			Done: p.Done, Failed: p.Failed, Stopped: p.Stopped,
		}})
	}
}
