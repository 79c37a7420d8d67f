package helper

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// handshake sends Setup and judges the answer.
func (c *Client) handshake(ctx context.Context) error {
	body, err := json.Marshal(c.cfg.Setup)
	if err != nil {
		return fmt.Errorf("encode setup: %w", err)
	}
	late := time.NewTimer(HandshakeWait)
	defer late.Stop()
	outbox := c.outbox
	for {
		select {
		case outbox <- Frame{Kind: KindSetup, Body: body}:
			outbox = nil // sent; a nil channel is never ready
		case c.hello = <-c.greeted:
			return c.check()
		case <-c.over:
			select {
			case c.hello = <-c.greeted: // it was the last thing to come
				return c.check()
			default:
				return c.Err()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			return fmt.Errorf("%w: no answer to the setup in %s", ErrSilent, HandshakeWait)
		}
	}
}

func (c *Client) check() error {
	if c.hello.Version != Version {
		return fmt.Errorf("%w: it speaks protocol %d, not %d", ErrMismatch, c.hello.Version, Version)
	}
	if c.cfg.Hash != "" && c.hello.Hash != c.cfg.Hash {
		return fmt.Errorf("%w: its hash is %.64q, not %s", ErrMismatch, c.hello.Hash, c.cfg.Hash)
	}
	return nil
}
