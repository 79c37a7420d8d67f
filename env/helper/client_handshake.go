package helper

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// handshake sends Setup, waits for Hello and verifies it.
func (c *Client) handshake(ctx context.Context) error {
	body, err := json.Marshal(c.cfg.Setup)
	if err != nil {
		return fmt.Errorf("encode setup: %w", err)
	}
	timer := time.NewTimer(HandshakeTimeout)
	defer timer.Stop()
	outbox := c.outbox
	for {
		select {
		case outbox <- Frame{Kind: KindSetup, Body: body}:
			outbox = nil // sent; a nil channel is never ready
		case c.hello = <-c.hellos:
			return c.checkHello()
		case <-c.done:
			select {
			case c.hello = <-c.hellos: // it was the last frame
				return c.checkHello()
			default:
				return c.Err()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("%w: no hello in %s", ErrNoResponse, HandshakeTimeout)
		}
	}
}

func (c *Client) checkHello() error {
	if c.hello.Version != Version {
		return fmt.Errorf("%w: its protocol version is %d, not %d", ErrMismatch, c.hello.Version, Version)
	}
	if c.cfg.Hash != "" && c.hello.Hash != c.cfg.Hash {
		return fmt.Errorf("%w: its hash is %.64q, not %s", ErrMismatch, c.hello.Hash, c.cfg.Hash)
	}
	return nil
}
