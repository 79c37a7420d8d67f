package export

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// ordered calls f for each value on in, n at a time, and gives the answers in
// the order of the values. Both end with ctx.
func ordered[A, B any](ctx context.Context, g *errgroup.Group, n int, in <-chan A, f func(A) (B, error)) <-chan B {
	turns := make(chan chan B, n)
	out := make(chan B)
	g.Go(func() error {
		defer close(turns)
		work, ctx := errgroup.WithContext(ctx)
		work.SetLimit(n)
		for a := range in {
			answer := make(chan B, 1)
			select {
			case turns <- answer:
			case <-ctx.Done():
				return work.Wait()
			}
			work.Go(func() error {
				b, err := f(a)
				if err == nil {
					answer <- b
				}
				return err
			})
		}
		return work.Wait()
	})
	g.Go(func() error {
		defer close(out)
		for answer := range turns {
			select {
			case b := <-answer:
				select {
				case out <- b:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return out
}
