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

// logOut forgets the credentials of a registry that did not take them, and says
// whether there were any.
func (c *Client) logOut(registry string) bool {
	fresh, err := c.newPuller()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logins[registry] == (authn.AuthConfig{}) || err != nil {
		return false
	}
	delete(c.logins, registry)
	c.puller = fresh
	return true
}

// credentials asks the Docker configuration once for each registry: helpers
// are programs, and slow. One that hangs cannot be ended from here, and is left.
func (c *Client) credentials(ctx context.Context, of authn.Resource) (authn.AuthConfig, error) {
	c.mu.Lock()
	known, ok := c.logins[of.RegistryStr()]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, errHelperSilent)
	defer cancel()
	type answer struct {
		config *authn.AuthConfig
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		auth, err := authn.DefaultKeychain.Resolve(of)
		if err != nil {
			answered <- answer{nil, err}
			return
		}
		config, err := auth.Authorization()
		answered <- answer{config, err}
	}()
	select {
	case <-ctx.Done():
		return authn.AuthConfig{}, context.Cause(ctx)
	case a := <-answered:
		if a.err != nil {
			return authn.AuthConfig{}, a.err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.logins[of.RegistryStr()] = *a.config
		return *a.config, nil
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
