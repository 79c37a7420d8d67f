package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) env.Environment {
	t.Helper()
	box, err := local.New(t.Context(), local.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestConformance(t *testing.T) { envtest.Run(t, open) }
