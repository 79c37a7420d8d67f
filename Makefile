# Each target is one line; what it takes is in scripts/.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/minibench/mini/internal/version.linked=$(VERSION)
# Off the usual address the file is not mapped in pages of 2 MB, which keep all
# of it in memory where a few hundred kB are used: 12 MB less, resident.
LDFLAGS += $(if $(filter linux/amd64,$(shell go env GOOS)/$(shell go env GOARCH)),-T 0x481000)
# With the same flags everywhere, a package is compiled once for the programs, the tests
# and the linter (and once more for the race detector).
export CGO_ENABLED := 0
export GOFLAGS += -trimpath
LINTER := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT := mvdan.cc/gofumpt@v0.12.0

.PHONY: help build build-kubernetes helper helper-here images demo test test-full test-rest test-kubernetes screenshots lint fmt fuzz bench man golden tour clean

help: ## say what the targets do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

build: helper ## build bin/mini, with the sandbox helper inside
	go build -ldflags '$(LDFLAGS)' -o bin/mini ./cmd/mini

build-kubernetes: helper ## build bin/mini-kubernetes, which can use a cluster
	go build -ldflags '$(LDFLAGS)' -tags kubernetes -o bin/mini-kubernetes ./cmd/mini

helper: ## build the program that runs inside sandboxes
	@scripts/helper.sh

helper-here: # the same, only for the architecture of this machine
	@HELPER_ARCHS=$$(go env GOARCH) scripts/helper.sh

images: ## make the local images of the demo and the tests (mini-*)
	@if scripts/engine.sh; then scripts/images.sh; fi

demo: setup-demo ## watch an agent fix five small repositories, and have the patches judged
	@HELPER_ARCHS=$$(go env GOARCH) $(MAKE) --no-print-directory -j2 build images
	bin/mini bench --subset demo -w 5 --eval
	@scripts/demo-left.sh

test: setup-test helper-here images ## install what tests need, then run them (minutes)
	@scripts/test.sh main $(TESTFLAGS)

test-full: setup-full helper-here images ## all tests once: also slow ones, races, pods, podman, the browser
	@scripts/test.sh full $(TESTFLAGS)

test-rest: setup-full helper-here images ## what test-full has beyond test; CI runs both
	@scripts/test.sh rest $(TESTFLAGS)

test-kubernetes: helper images ## test sandboxes on a real cluster: that of KUBECONFIG
	@scripts/test-kubernetes.sh

setup-%:
	@scripts/setup.sh $*

lint: ## the linter, go vet among its checks
	go run $(LINTER) run ./...

fmt: ## format the code
	go run $(GOFUMPT) -w agent cmd configs datasets env internal model runner trajectories

tour: helper-here images ## run the tour of README.md and docs/tour.md and keep what the screens showed in ./tour
	mkdir -p tour && go test -tags full -count=1 -run TestTour -artifacts -outputdir $(CURDIR)/tour ./cmd/mini/internal/cli && find tour -name '*.txt' | sort

screenshots: setup-full build images ## take the pictures of mini view in docs/images
	scripts/screenshots.sh

fuzz: ## each fuzz target for ten seconds
	@scripts/fuzz.sh 10s

bench: build images ## measure, and compare with the limits in docs/performance.md
	@scripts/bench.sh

man: ## write the manual pages to bin/man
	SOURCE_DATE_EPOCH=$(shell git log -1 --format=%ct) go run ./cmd/mini/internal/man bin/man

golden: ## rewrite golden files; look at the difference before you commit it
	go test -tags full ./... -update

clean: ## remove what was built here
	rm -rf bin env/helper/binaries/mini-helper-*
