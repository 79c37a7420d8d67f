package ratelimit

import "time"

// concurrency limits the number of requests in flight and adapts to the
// provider. A burst is the set of requests in flight at a refusal. If the provider
// refuses some requests of a burst, the number of the others is the provider's capacity.
//
// A refusal at a concurrency above proven, the highest concurrency with an answer,
// sets a ceiling. The limit does not exceed the ceiling for a time that grows, up to
// maxHold, each time the same ceiling is confirmed. Several refusals may be needed
// while no limit is known, or if the provider also refuses requests at random (see
// isDoubtful).
//
// A refusal at a concurrency that worked before is treated as transient: the
// caller's backoff is enough. If many of the requests in flight are refused, the
// limit falls, at most by half, and rises again soon.
type concurrency struct {
	configured    int // configured limit; 0: none
	limit         int // current limit; 0: not known yet
	proven        int // highest concurrency with an answer
	provenAnswers int // number of answers at proven

	ceiling      int
	ceilingUntil time.Time     // the limit does not exceed ceiling until then
	ceilingHold  time.Duration // how long the ceiling holds from when it is set

	burstSeq         int64 // sequence number of the newest request of the burst
	lastRefusal      time.Time
	beforeBurst      struct{ limit, proven, ceiling int } // values before the burst
	refusedAbove     int                                  // refusals in the burst above proven
	refusedBelow     int                                  // refusals in the burst at or below proven
	unconfirmed      int                                  // refusals above proven since proven last rose
	noise            float64                              // moving average of the share refused below proven
	burstAnswers     int                                  // answers since the burst began
	previousHold     time.Duration                        // ceilingHold before the burst
	answersSinceRise int                                  // answers since the limit last rose
}

const (
	initialHold   = cooldown
	confirmedHold = 10 * time.Minute
	maxHold       = time.Hour
	// confirmations is how many refusals confirm a ceiling, and how many answers
	// confirm a concurrency.
	confirmations = 3
	// The limit falls if at least two requests of a burst, and 1/fallDivisor of the
	// limit before it, are refused at or below proven. While no limit is known,
	// refusals above proven are ignored if they are fewer than 1/minRefusedDivisor
	// of the larger of proven and the requests in flight.
	fallDivisor       = 4
	minRefusedDivisor = 16
	// The limit exceeds proven by at most proven/probeDivisor (at least one) until
	// a request at the higher concurrency is answered.
	probeDivisor = 8
	// cooldown is how long after a refusal the limit does not rise above proven. A
	// Retry-After longer than cooldown refers to a quota per time, not to concurrency.
	cooldown = 2 * time.Second
	// maxNoise is the noise above which fewer than confirmations refusals do not set a
	// ceiling; noiseWindow is roughly the number of requests averaged.
	maxNoise    = 0.002
	noiseWindow = 256
)

// onRefused handles a refusal for too many requests. accepted is the number of
// requests still in flight, newest the sequence number of the latest request, and
// retryAfter the wait that the provider asked for.
func (l *concurrency) onRefused(t *ticket, accepted int, newest int64, retryAfter time.Duration, now time.Time) {
	if t.seq > l.burstSeq { // sent after the last burst: a new one begins
		l.burstSeq, l.refusedAbove, l.refusedBelow, l.burstAnswers, l.previousHold = newest, 0, 0, 0, l.ceilingHold
		l.beforeBurst.limit, l.beforeBurst.proven, l.beforeBurst.ceiling = l.limit, l.proven, l.ceiling
		if l.limit == 0 {
			l.beforeBurst.limit = accepted + 1
		}
	}
	l.lastRefusal, l.answersSinceRise = now, 0
	if t.inFlight == l.proven && l.provenAnswers < confirmations && accepted > 0 {
		l.proven-- // the provider may have finished a request that still counted as in flight
	}
	if accepted == 0 && l.burstAnswers == 0 { // the whole burst was refused: an outage, not a ceiling
		l.ceiling, l.ceilingUntil = 0, time.Time{}
	}
	switch {
	case t.inFlight > l.proven, t.inFlight == l.proven && accepted >= l.proven: // the others alone reach proven
		l.refusedAbove++
		if l.unconfirmed++; l.isDoubtful(accepted) {
			return
		}
		fall := max(1, l.proven, accepted)
		if accepted > 0 {
			l.setCeiling(fall, accepted, retryAfter, now)
		}
		l.lower(fall)
	default:
		if t.inFlight < l.proven {
			l.noise += 1.0 / noiseWindow
		}
		if l.refusedBelow++; l.refusedBelow > 1 && fallDivisor*l.refusedBelow >= l.beforeBurst.limit {
			fall := max(1, accepted, l.beforeBurst.limit/2)
			l.proven = max(fall, (l.beforeBurst.proven+fall+1)/2)
			l.lower(fall)
		}
	}
}

// isDoubtful reports whether a refusal above proven may be random.
func (l *concurrency) isDoubtful(accepted int) bool {
	return l.limit == 0 && minRefusedDivisor*l.unconfirmed < max(accepted, l.proven) || l.noise > maxNoise && l.unconfirmed < confirmations
}

func (l *concurrency) lower(to int) {
	if l.limit == 0 || to < l.limit {
		l.limit = to
	}
}

// setCeiling makes n the ceiling, and sets how long it holds.
func (l *concurrency) setCeiling(n, accepted int, retryAfter time.Duration, now time.Time) {
	l.ceilingHold = initialHold
	if l.refusedAbove >= confirmations && fallDivisor*l.refusedAbove >= accepted && retryAfter <= cooldown {
		l.ceilingHold = confirmedHold
	}
	if d := n - l.beforeBurst.ceiling; l.beforeBurst.ceiling > 0 && d >= -1 && d <= 1 { // confirmed again
		l.ceilingHold = min(maxHold, max(confirmedHold, 2*l.previousHold))
	}
	l.ceiling, l.ceilingUntil = n, now.Add(l.ceilingHold)
}

// onAnswered handles an answered request. sentAt is the number of requests in
// flight when it was sent, inFlight the number now, both including it. waiting
// reports that more requests are queued.
func (l *concurrency) onAnswered(sentAt, inFlight int, waiting bool, now time.Time) {
	l.burstAnswers++
	l.noise -= l.noise / noiseWindow
	// The provider certainly accepts the smaller of the concurrencies at the start
	// and at the end of the request.
	switch accepted := min(sentAt, inFlight); {
	case accepted > l.proven:
		l.proven, l.provenAnswers, l.unconfirmed = accepted, 1, 0
	case accepted == l.proven:
		l.provenAnswers++
	}
	l.ceiling = max(l.ceiling, l.proven)
	bound := l.configured
	if now.Before(l.ceilingUntil) && (bound == 0 || l.ceiling < bound) {
		bound = l.ceiling
	}
	if l.limit == 0 || bound > 0 && l.limit >= bound || !waiting && inFlight < l.limit {
		return
	}
	switch {
	case l.limit < l.proven:
		l.limit++
	case l.limit-l.proven >= max(1, l.proven/probeDivisor): // probing: no answer at this concurrency yet
	case now.Sub(l.lastRefusal) >= cooldown:
		if l.answersSinceRise++; 4*l.answersSinceRise >= l.limit {
			l.limit++
			l.answersSinceRise = 0
		}
	}
}
