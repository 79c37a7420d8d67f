package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// RegistryAuth implements imagestore.Registry. The result contains a password: pass it
// only to the engine.
func (c *Client) RegistryAuth(ctx context.Context, ref string) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("find credentials for %s: %w", ref, err)
	}
	found, err := credentials(ctx, parsed.Context())
	if err != nil {
		return "", fmt.Errorf("find credentials for %s: %w", parsed.Context().RegistryStr(), err)
	}
	if *found == (authn.AuthConfig{}) {
		return "", nil
	}
	header, err := json.Marshal(map[string]string{
		"username": found.Username, "password": found.Password, "auth": found.Auth,
		"identitytoken": found.IdentityToken, "registrytoken": found.RegistryToken,
		"serveraddress": parsed.Context().RegistryStr(),
	})
	if err != nil {
		return "", errors.New("encode credentials: invalid value") // the cause might quote them
	}
	return base64.URLEncoding.EncodeToString(header), nil
}

// credentials returns the credentials from the Docker configuration.
func credentials(ctx context.Context, resource authn.Resource) (*authn.AuthConfig, error) {
	auth, err := authn.Resolve(ctx, authn.DefaultKeychain, resource)
	if err != nil {
		return nil, err
	}
	return authn.Authorization(ctx, auth)
}

// keychain is an authn.Keychain of the Docker configuration. On an error it is
// anonymous: the registry may not require credentials.
type keychain struct{}

// Resolve implements authn.Keychain.
func (k keychain) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	found, err := credentials(context.Background(), resource)
	if err != nil {
		return authn.Anonymous, nil //nolint:nilerr // RegistryAuth reports the error
	}
	return authn.FromConfig(*found), nil
}
