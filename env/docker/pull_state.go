package docker

import "time"

// pullState computes the progress of one pull from the engine's messages.
type pullState struct {
	image      string
	report     func(PullProgress)
	layers     map[string]layer
	lastReport time.Time
}

type layer struct {
	bytes, total int64
	done         bool
}

func (s *pullState) add(m pullMessage) {
	l, known := s.layers[m.ID]
	switch m.Status {
	case "Pulling fs layer", "Waiting":
	case "Downloading":
		l.bytes, l.total = m.Progress.Current, max(m.Progress.Total, m.Progress.Current)
	case "Verifying Checksum", "Download complete", "Extracting":
		l.bytes = l.total
	case "Pull complete", "Already exists":
		l.bytes, l.done = l.total, true
	default: // about the image as a whole
		return
	}
	s.layers[m.ID] = l
	if now := time.Now(); !known || l.done || now.Sub(s.lastReport) >= progressInterval {
		s.lastReport = now
		s.notify(PullProgress{})
	}
}

// finish reports the end of the pull; stopped means that it was cancelled.
func (s *pullState) finish(err error, stopped bool) {
	s.notify(PullProgress{Done: true, Failed: err != nil && !stopped, Stopped: err != nil && stopped})
}

func (s *pullState) notify(p PullProgress) {
	if s.report == nil {
		return
	}
	p.Image, p.Layers = s.image, len(s.layers)
	for _, l := range s.layers {
		p.Bytes += l.bytes
		p.Total += l.total
		if l.done {
			p.LayersDone++
		}
	}
	s.report(p)
}
