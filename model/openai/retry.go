package openai

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/minibench/mini/model"
)

const (
	firstWait = time.Second
	longest   = time.Minute // between two tries, where the server does not say
	// patience is the longest wait that a server may ask for. Beyond it the
	// error is returned, with what was asked.
	patience = 10 * time.Minute
)

// Query implements model.Model. What may pass is tried again, MaxTries times
// in all, after growing random waits or as long as the server asks.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	sent := outgoing(messages, m.config.SendReasoning)
	var last error
	var waited time.Duration
	tries := 0
	reply, err := backoff.Retry(ctx, func() (model.Reply, error) {
		tries++
		reply, err := m.try(ctx, sent)
		if ctx.Err() == nil {
			last = err
		}
		return reply, advise(err)
	},
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: firstWait, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: longest,
		}),
		backoff.WithMaxTries(uint(m.config.MaxTries)),
		backoff.WithMaxElapsedTime(0), // the context bounds it
		backoff.WithNotify(func(_ error, wait time.Duration) { waited += wait }),
	)
	reply.Tries, reply.Waited = tries, waited
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return reply, interrupted(ctx, last)
	}
	return reply, final(last, tries)
}

// advise tells the retry loop what to do about an error.
func advise(err error) error {
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok || !e.Retryable || e.RetryAfter > patience:
		return backoff.Permanent(err)
	case e.RetryAfter > 0:
		return errors.Join(err, &backoff.RetryAfterError{Duration: e.RetryAfter})
	}
	return err
}

// interrupted is the context's cause. The failure that was being waited for is
// told as text only: the attempt ended for another reason.
func interrupted(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (the model's last failure: %s)", context.Cause(ctx), last.Error())
}

func final(last error, tries int) error {
	e, ok := errors.AsType[*model.Error](last)
	if !ok || tries < 2 {
		return last
	}
	told := *e
	told.Err = fmt.Errorf("%d tries: %w", tries, e.Err)
	return &told
}
