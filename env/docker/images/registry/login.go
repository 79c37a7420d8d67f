package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// loginTimeout bounds a helper for credentials, which may ask the user.
const loginTimeout = 20 * time.Second

var errHelperSilent = errors.New("the helper for credentials did not answer")

// Login implements images.Registry. The word it returns holds a password: it
// is for the engine, and for nobody else to see.
func (c *Client) Login(ctx context.Context, ref string) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("find credentials for %s: %w", ref, err)
	}
	found, err := c.credentials(ctx, parsed.Context())
	if err != nil {
		return "", fmt.Errorf("find credentials for %s: %w", parsed.Context().RegistryStr(), err)
	}
	if found == (authn.AuthConfig{}) {
		return "", nil
	}
	word, err := json.Marshal(map[string]string{
		"username": found.Username, "password": found.Password, "auth": found.Auth,
		"identitytoken": found.IdentityToken, "registrytoken": found.RegistryToken,
		"serveraddress": parsed.Context().RegistryStr(),
	})
	if err != nil {
		return "", errors.New("credentials cannot be encoded") // the cause might quote them
	}
	return base64.URLEncoding.EncodeToString(word), nil
}

// failedFor is how long a failure to find credentials is remembered.
const failedFor = 5 * time.Minute

// login is one question for credentials. The rest is set once answered is
// closed.
type login struct {
	begun    time.Time
	answered chan struct{}
	config   authn.AuthConfig
	err      error
}

// login is the question that counts for a registry. One that hangs is not asked
// again: nobody waits longer for it than loginTimeout after it began, and a late
// answer counts.
func (c *Client) login(of authn.Resource) *login {
	c.mu.Lock()
	defer c.mu.Unlock()
	registry := of.RegistryStr()
	if l := c.logins[registry]; l != nil {
		select {
		case <-l.answered:
			if l.err == nil || time.Since(l.begun) < failedFor {
				return l
			}
		default:
			return l
		}
	}
	l := &login{begun: time.Now(), answered: make(chan struct{})}
	c.logins[registry] = l
	go func() { // a helper that hangs cannot be ended from here, and is left
		defer close(l.answered)
		auth, err := authn.DefaultKeychain.Resolve(of)
		if err != nil {
			l.err = err
			return
		}
		config, err := auth.Authorization()
		if err != nil {
			l.err = err
			return
		}
		l.config = *config
	}()
	return l
}

// logOut forgets the credentials of a registry that did not take them, and says
// whether there were any.
func (c *Client) logOut(registry string) bool {
	fresh, err := c.newPuller()
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.logins[registry]
	if l == nil || err != nil {
		return false
	}
	select {
	case <-l.answered:
	default:
		return false
	}
	if l.err != nil || l.config == (authn.AuthConfig{}) {
		return false
	}
	delete(c.logins, registry)
	c.puller = fresh
	return true
}

// credentials asks the Docker configuration once for each registry: helpers
// are programs, and slow.
func (c *Client) credentials(ctx context.Context, of authn.Resource) (authn.AuthConfig, error) {
	l := c.login(of)
	clock := time.NewTimer(time.Until(l.begun.Add(loginTimeout)))
	defer clock.Stop()
	select {
	case <-l.answered:
		return l.config, l.err
	default:
	}
	select {
	case <-l.answered:
		return l.config, l.err
	case <-clock.C:
		return authn.AuthConfig{}, errHelperSilent
	case <-ctx.Done():
		return authn.AuthConfig{}, context.Cause(ctx)
	}
}

// keychain is the client's own view on credentials, for the library.
type keychain struct{ c *Client }

// Resolve implements authn.Keychain.
func (k keychain) Resolve(of authn.Resource) (authn.Authenticator, error) {
	return k.ResolveContext(context.Background(), of)
}

// ResolveContext implements authn.ContextKeychain. Whoever cannot be logged in
// is nobody: the registry may not mind.
func (k keychain) ResolveContext(ctx context.Context, of authn.Resource) (authn.Authenticator, error) {
	found, err := k.c.credentials(ctx, of)
	if err != nil || found == (authn.AuthConfig{}) {
		return authn.Anonymous, nil //nolint:nilerr // as the comment says; Login reports it
	}
	return authn.FromConfig(found), nil
}
