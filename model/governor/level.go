package governor

import "time"

// level is how many requests may be in flight. It follows what the provider
// does: of a burst, those that are not refused are what it has room for.
//
// A refusal above every level that was ever answered is a ceiling, the more
// surely the more were refused at once; a ceiling is left alone for a while,
// longer each time that it proves to be one. Where nothing is known yet, and
// where requests are refused for no reason that one sees, it takes several. A
// refusal at a level that worked before is a bad moment, and the call's own wait
// is enough for it; where a good part of what is in flight is refused, the level
// falls, by half at the most, and soon rises again.
type level struct {
	most  int // as configured; 0: no bound
	limit int // 0: no bound yet
	good  int // the highest level at which there was an answer
	proof int // how many answers there were at it

	ceiling int
	until   time.Time // the ceiling is left alone
	hold    time.Duration

	burst   int64 // the newest request when the level last began to fall
	refusal time.Time
	before  struct{ limit, good, ceiling int } // the burst
	above   int                                // refusals of the burst above what was good
	below   int                                // and at what was good
	doubts  int                                // refusals above what was good, since it last rose
	noise   float64                            // part of the requests that is refused at what is good, of late
	won     int                                // answers since the burst
	held    time.Duration                      // hold before the burst
	credit  int                                // answers since the last rise
}

const (
	firstHold  = calm
	provenHold = 10 * time.Minute
	longest    = time.Hour
	// surely is how many refusals make a ceiling sure, and how many answers a
	// level.
	surely = 3
	// part of what is in flight, one in so many, is more than a bad moment; few
	// of it are less than a ceiling while none is known.
	part = 4
	few  = 16
	// step is how far the level rises above what was good before there is an
	// answer at it: one in so many, and at least one.
	step = 8
	// calm is how long after a refusal the level rises no further than it was
	// good before. Who asks to wait longer speaks of time, and not of how many
	// there are at once.
	calm = 2 * time.Second
	// noisy is the noise at which one refusal says nothing of a ceiling, memory
	// over how many requests it is counted.
	noisy  = 0.002
	memory = 256
)

// refused takes in that a request was one too many. accepted are those still in
// flight, newest is the number of the last one that was sent, after is what the
// provider asks to wait.
func (l *level) refused(t *ticket, accepted int, newest int64, after time.Duration, now time.Time) {
	if t.number > l.burst { // it was sent knowing of the last fall
		l.burst, l.above, l.below, l.won, l.held = newest, 0, 0, 0, l.hold
		l.before.limit, l.before.good, l.before.ceiling = l.limit, l.good, l.ceiling
		if l.limit == 0 {
			l.before.limit = accepted + 1
		}
	}
	l.refusal, l.credit = now, 0
	if t.level == l.good && l.proof < surely && accepted > 0 {
		l.good-- // an answer was on its way, and its place free already
	}
	if accepted == 0 && l.won == 0 { // all of them: no ceiling, but a bad moment
		l.ceiling, l.until = 0, time.Time{}
	}
	switch {
	case t.level > l.good, t.level == l.good && accepted >= l.good: // or another one of them is the one too many
		l.above++
		if l.doubts++; l.doubtful(accepted) {
			return
		}
		fall := max(1, l.good, accepted)
		if accepted > 0 {
			l.cap(fall, accepted, after, now)
		}
		l.fall(fall)
	default:
		if t.level < l.good {
			l.noise += 1.0 / memory
		}
		if l.below++; l.below > 1 && part*l.below >= l.before.limit {
			fall := max(1, accepted, l.before.limit/2)
			l.good = max(fall, (l.before.good+fall+1)/2)
			l.fall(fall)
		}
	}
}

// doubtful says that a refusal above what was good may have been by chance.
func (l *level) doubtful(accepted int) bool {
	return l.limit == 0 && few*l.doubts < max(accepted, l.good) || l.noise > noisy && l.doubts < surely
}

func (l *level) fall(to int) {
	if l.limit == 0 || to < l.limit {
		l.limit = to
	}
}

// cap makes n the ceiling.
func (l *level) cap(n, accepted int, after time.Duration, now time.Time) {
	l.hold = firstHold
	if l.above >= surely && part*l.above >= accepted && after <= calm {
		l.hold = provenHold
	}
	if d := n - l.before.ceiling; l.before.ceiling > 0 && d >= -1 && d <= 1 { // the same again
		l.hold = min(longest, max(provenHold, 2*l.held))
	}
	l.ceiling, l.until = n, now.Add(l.hold)
}

// answered takes in that a request was answered. inFlight is with itself, wanted
// says that more are waiting.
func (l *level) answered(at, inFlight int, wanted bool, now time.Time) {
	l.won++
	l.noise -= l.noise / memory
	// With which others it was let through, or was left with: the smaller
	// number is what surely was not too many.
	switch surely := min(at, inFlight); {
	case surely > l.good:
		l.good, l.proof, l.doubts = surely, 1, 0
	case surely == l.good:
		l.proof++
	}
	l.ceiling = max(l.ceiling, l.good)
	bound := l.most
	if now.Before(l.until) && (bound == 0 || l.ceiling < bound) {
		bound = l.ceiling
	}
	if l.limit == 0 || bound > 0 && l.limit >= bound || !wanted && inFlight < l.limit {
		return
	}
	switch {
	case l.limit < l.good:
		l.limit++
	case l.limit-l.good >= max(1, l.good/step): // not answered yet
	case now.Sub(l.refusal) >= calm:
		if l.credit++; 4*l.credit >= l.limit {
			l.limit++
			l.credit = 0
		}
	}
}
