//go:build full

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newSetup starts a terminal with an empty home folder, where mini is not configured.
// The shell exports vars.
func newSetup(t *testing.T, vars string) *screen {
	t.Helper()
	dir := t.TempDir()
	s := newScreen(t, dir)
	s.tmux("resize-window", "-x", "200", "-y", "50") // paths of tests are long
	s.typeLine("unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL ANTHROPIC_API_KEY ANTHROPIC_BASE_URL OPENROUTER_API_KEY MSWEA_MODEL_NAME XDG_CONFIG_HOME XDG_STATE_HOME")
	s.typeLine("OLLAMA_HOST=127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9; export OLLAMA_HOST HTTPS_PROXY " + vars + "; clear") // no provider answers
	s.until("a clear screen", "ready$")
	return s
}

// answer waits for a question and types the answer.
func (s *screen) answer(question, text string) {
	s.t.Helper()
	s.until("a question", question)
	s.typeLine(text)
}

// checkFile compares the content of a file below the home folder; "" means that the
// file is missing or empty.
func (s *screen) checkFile(name, want string) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	if got := string(data); got != want {
		s.t.Errorf("%s is %q, want %q", name, got, want)
	}
}

const (
	ownFile = ".config/mini/config.yaml"
	keyFile = ".config/mini/.env"
)

func TestSetUp(t *testing.T) {
	t.Parallel()
	t.Run("a provider, with its key", func(t *testing.T) {
		t.Parallel()
		s := newSetup(t, "")
		s.typeLine("mini config setup; echo code $?")
		s.until("the providers", "1  OpenAI       OPENAI_API_KEY is not set", "5  a server on this machine (none")
		s.answer("Number or name [1]:", "2")
		s.answer("Name of the environment variable for the key [ANTHROPIC_API_KEY]:", "")
		s.answer("Key (not shown):", "sk-ant-typed\x7f\x7fd")
		s.until("why there is no list", "api.anthropic.com does not answer: connection refused. Type the name of the model.")
		s.answer("Model [claude-sonnet-4-5]:", "")
		s.answer("Test it now with one small call? [Y/n]", "n")
		s.until("the end", "stored claude-sonnet-4-5 of Anthropic in", "stored the key in", "next: mini doctor", "code 0")
		if shown := s.tmux("capture-pane", "-p", "-S", "-200"); strings.Contains(shown, "sk-ant") {
			t.Errorf("the key is on the screen:\n%s", shown)
		}
		s.checkFile(ownFile, "model:\n  model_class: anthropic\n  api_key_env: ANTHROPIC_API_KEY\n  model_name: claude-sonnet-4-5\n")
		s.checkFile(keyFile, "ANTHROPIC_API_KEY=sk-ant-typd\n")
		for _, name := range []string{ownFile, keyFile} {
			if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}

		// The second time, the current values are in brackets. The other settings stay.
		s.typeLine("clear; mini config set agent.step_limit 9")
		s.typeLine("mini config setup; echo code $?")
		s.answer("Number or name [2]:", "1")
		s.answer("Name of the environment variable for the key [OPENAI_API_KEY]:", "sk-by-mistake")
		s.answer("Not the name of a variable", "OPENAI_API_KEY")
		s.answer("Key (not shown):", "")
		s.answer("Model [gpt-5-mini]:", "openai/gpt-5")
		s.answer("use gpt-5.", "gpt-5")
		s.until("the end", "stored gpt-5 of OpenAI in", "next: export OPENAI_API_KEY=...; then", "code 0")
		s.checkFile(ownFile, "model:\n  model_class: openai\n  api_key_env: OPENAI_API_KEY\n  model_name: gpt-5\nagent:\n  step_limit: 9\n")
		s.checkFile(keyFile, "ANTHROPIC_API_KEY=sk-ant-typd\n")
	})
	t.Run("by itself, with a local server", func(t *testing.T) {
		t.Parallel()
		local := newLocal(t, "", "qwen3:latest", "other")
		s := newSetup(t, "OLLAMA_HOST="+local+" TERM=dumb")
		s.typeLine("mini -y --exit-immediately -t 'do it'; echo code $?")
		s.until("why", "mini: no model is set up yet.")
		s.answer("Number or name [5]:", "nine")
		s.answer("a number from 1 to ", "")
		s.until("its models", "1  qwen3:latest", "2  other")
		s.answer("Model [qwen3:latest]:", "gone")
		s.answer("Ollama does not list gone; the same name again uses it anyway.", "")
		s.answer("Test it now with one small call? [Y/n]", "")
		s.until("the test", "It works:")
		s.until("the task", "stored qwen3:latest of Ollama in", "Submitted after 1 step", "code 0")
		s.checkFile(ownFile, "model:\n  model_class: openai\n  base_url: http://"+local+"/v1\n  api_key_env: LOCAL_API_KEY\n  model_name: qwen3:latest\n  price:\n    free: true\n")
		s.typeLine("clear; mini -y --exit-immediately -t 'do it'; echo again $?")
		s.until("it is not asked again", "again 0")
	})
	t.Run("another server", func(t *testing.T) {
		t.Parallel()
		s := newSetup(t, "")
		s.typeLine("mini config setup; echo code $?")
		s.answer("Number or name [1]:", "4")
		s.answer("Address of its API", "api.deepseek.com")
		s.answer("Not an address", "https://api.deepseek.com/v1/")
		s.answer("Name of the environment variable for the key [DEEPSEEK_API_KEY]:", "WORKKEY")
		s.answer("mini stores only variables that end with _KEY", "WORK_DEEPSEEK_KEY")
		s.answer("Key (not shown):", "with a space")
		s.answer("Not a key: it has spaces", "sk-work")
		s.answer("Model:", "")
		s.answer("Model:\nModel:", "sk-again")
		s.answer("looks like a key.", "deepseek-chat")
		s.answer("Test it now", "n")
		s.until("the end", "stored", "code 0")
		s.checkFile(ownFile, "model:\n  model_class: openai\n  base_url: https://api.deepseek.com/v1\n  api_key_env: WORK_DEEPSEEK_KEY\n  model_name: deepseek-chat\n")
		s.checkFile(keyFile, "WORK_DEEPSEEK_KEY=sk-work\n")
		s.typeLine("clear; mini doctor | grep ' key '")
		s.until("mini reads it", "WORK_DEEPSEEK_KEY is set in")
	})
}

// If the user stops the setup, nothing is written and the terminal is restored.
func TestSetUpStopped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ at, key, says string }{
		"ctrl-c at a choice": {"Number or name [1]:", "C-c", "code 130"},
		"ctrl-c at the key":  {"Key (not shown):", "C-c", "code 130"},
		"ctrl-d at a line":   {"Name of the environment variable for the key", "C-d", "code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, "")
			s.typeLine("mini config setup; echo code $?")
			answers := map[string]string{"Number or name [1]:": "", "Name of the environment variable for the key": "", "Key (not shown):": "sk-typed"}
			for _, question := range []string{"Number or name [1]:", "Name of the environment variable for the key", "Key (not shown):", "Model [gpt-5-mini]:"} {
				if question == test.at {
					break
				}
				s.answer(question, answers[question])
			}
			s.until("the question", test.at)
			s.tmux("send-keys", test.key)
			s.until("the end", "nothing was changed", test.says)
			if _, err := os.Stat(filepath.Join(s.dir, ".config")); !os.IsNotExist(err) {
				t.Errorf("something was written: %v", err)
			}
			s.typeLine(`clear; echo modes: $(stty -a | tr -s ' ;' '\n' | grep -x -e icanon -e echo -e opost -e isig | sort)`)
			s.until("the terminal", "modes: echo icanon isig opost")
		})
	}
}

// mini asks for a key, and does not show it.
func TestSetAsksForKey(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "")
	s.typeLine("mini config set OPENAI_API_KEY; echo code $?")
	s.answer("OPENAI_API_KEY (not shown):", "sk-typed")
	s.until("the end", "stored OPENAI_API_KEY in", "code 0")
	s.checkFile(keyFile, "OPENAI_API_KEY=sk-typed\n")
}
