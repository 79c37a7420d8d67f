package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model/localservers"
	modelopen "github.com/minibench/mini/model/open"
)

// askModel asks for the name of the model. If the server lists its models, the user chooses one of them, or
// types another name twice.
func (u *ProviderSetup) askModel(ctx context.Context, a *ask.Prompter, cfg *configs.Resolved) error {
	names, host, err := u.listModels(ctx, a)
	if err != nil {
		return err
	}
	isListed := func(name string) bool {
		return len(names) == 0 || localservers.API{IsAnthropic: u.Class == "anthropic"}.HasModel(names, name)
	}
	suggestion := u.Model
	switch m := cfg.Model; {
	case m.Name != "" && m.Class == u.Class && m.BaseURL == u.BaseURL && isListed(m.Name):
		suggestion = m.Name
	case u.isLocal:
		suggestion = names[0]
	case !isListed(suggestion):
		suggestion = ""
	}
	if len(names) > 0 {
		if err := errors.Join(a.Printf("%s has these models:", text.Printable(host)), a.ListNames(names)); err != nil {
			return err
		}
	}
	unlisted := ""
	for {
		name, err := a.AskName(ctx, "Model", names, suggestion)
		if err != nil {
			return err
		}
		problem := u.modelProblem(name, cfg)
		switch {
		case name == "":
			continue
		case problem == "" && (isListed(name) || name == unlisted):
			u.Model = name
			return nil
		case problem == "":
			unlisted = name
			problem = fmt.Sprintf("%s does not list %s; the same name again uses it anyway.", text.Printable(host), text.Printable(name))
		}
		if err := a.Printf("%s", problem); err != nil {
			return err
		}
	}
}

// modelProblem says why the provider cannot have a model with a name; "" if it can.
func (u *ProviderSetup) modelProblem(name string, cfg *configs.Resolved) string {
	if strings.ContainsAny(name, " \t") || strings.HasPrefix(name, "sk-") {
		return "Not the name of a model: it has spaces, or looks like a key."
	}
	candidate := *cfg
	candidate.Model.Class, candidate.Model.BaseURL, candidate.Model.Name, candidate.Model.Route = u.Class, u.BaseURL, name, configs.Route{}
	if err := settings.CheckModelNames(&candidate); err != nil {
		return text.Printable(err.Error()) + "."
	}
	return ""
}

// currentKey returns the key of the answers.
func (u *ProviderSetup) currentKey() string { return cmp.Or(u.key, os.Getenv(u.KeyEnv)) }

// listModels returns the names of the server's models and the server. If there are none, it says why. It asks
// for another key if the server rejects the one that was typed.
func (u *ProviderSetup) listModels(ctx context.Context, a *ask.Prompter) (names []string, host string, err error) {
	if u.isLocal {
		for _, m := range u.localServer.TextModels() {
			names = append(names, m.Name)
		}
		return names, cmp.Or(u.localServer.Name, u.localServer.BaseURL), nil
	}
	for {
		names, host, listErr := settings.ListModels(ctx, configs.Model{Class: u.Class, BaseURL: u.BaseURL}, u.currentKey())
		isRejected := errors.Is(listErr, settings.ErrKeyRejected)
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case listErr == nil:
			return names, host, nil
		case !isRejected:
			return nil, host, a.Printf("%s. Type the name of the model.", text.Printable(listErr.Error()))
		case u.key == "":
			return nil, host, a.Printf("%s in %s; mini config set %[2]s stores another one.", text.Printable(listErr.Error()), u.KeyEnv)
		}
		if err := a.Printf("%s. Paste another one; Enter keeps this one.", text.Printable(listErr.Error())); err != nil {
			return nil, "", err
		}
		key, err := u.askValidKey(ctx, a)
		if err != nil || key == "" {
			return nil, host, err
		}
		u.key = key
	}
}

// askTest asks whether to call the model once, and shows the result. Wrong answers are stored, too: the
// server may be down.
func (u *ProviderSetup) askTest(ctx context.Context, a *ask.Prompter, cfg *configs.Resolved) error {
	if !u.IsReady() {
		return nil
	}
	yes, err := a.Confirm(ctx, "Test it now with one small call?")
	if err != nil || !yes {
		return err
	}
	m := cfg.Model
	m.Class, m.BaseURL, m.Name, m.Timeout = u.Class, u.BaseURL, u.Model, testTimeout.Seconds()
	start := time.Now()
	reply, err := modelopen.Try(ctx, m, u.currentKey())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return a.Printf("It does not work: %s", text.Printable(text.Clip(text.OneLine(err.Error()), maxTestText)))
	}
	return a.Printf("It works: %q after %.1f s.", text.Printable(text.Clip(text.OneLine(reply.Message.Content), maxTestReply)), time.Since(start).Seconds())
}

const (
	testTimeout  = time.Minute
	maxTestText  = 300 // bytes
	maxTestReply = 60
)
