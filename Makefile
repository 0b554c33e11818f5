# The commands of a checkout. All set-up goes below $SIDECAR_CACHE (by default
# ~/.cache/sidecar-lab), unpacked and not installed; root is not needed.

GO ?= go

.PHONY: build test demo bench generate vet setup

build:
	$(GO) build -o sidecar ./cmd/sidecar

# Runs the main job: a private Tomcat is overloaded and the sidecar beside it
# tells what happens, live.
demo: need-go
	@$(GO) run ./internal/lab/demo

# All tests, those with real servers included. `go test -short ./...` leaves
# these out.
test: setup
	$(GO) test -timeout 30m ./...

setup: need-go
	@$(GO) run ./internal/lab/setup

# Benchmarks with their allocations. Bars are ratios, since machines differ.
bench: need-go
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./collectors/process/bench

generate: need-go
	$(GO) generate ./...

vet: need-go
	$(GO) vet ./...
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "Go is missing (looked for '$(GO)' on the PATH). Install it, or name it: make GO=/usr/local/go/bin/go"; exit 1; }
