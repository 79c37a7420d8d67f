package docker

import "time"

// pullState adds up the engine's messages on one pull.
type pullState struct {
	image    string
	report   func(PullProgress)
	layers   map[string]layer
	reported time.Time
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
	default: // on the image as a whole
		return
	}
	s.layers[m.ID] = l
	if now := time.Now(); !known || l.done || now.Sub(s.reported) >= progressEvery {
		s.reported = now
		s.tell(PullProgress{})
	}
}

// finish tells how it ended; stopped means that nobody waits for it any more.
func (s *pullState) finish(err error, stopped bool) {
	s.tell(PullProgress{Done: true, Failed: err != nil && !stopped, Stopped: err != nil && stopped})
}

func (s *pullState) tell(p PullProgress) {
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
