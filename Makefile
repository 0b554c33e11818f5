# The commands of a checkout. All set-up goes below $SIDECAR_CACHE (by default
# ~/.cache/sidecar-lab), unpacked and not installed; root is not needed.

GO ?= go

.PHONY: build test test-real test-deploy demo bench bench-gclog bench-accesslog bench-applog bench-engine generate vet setup

build:
	$(GO) build -o sidecar ./cmd/sidecar

# Runs the main job: a private Tomcat is overloaded and the sidecar beside it
# tells what happens, live.
demo: need-go
	@$(GO) run ./internal/lab/demo

# All tests, those with real servers included. `go test -short ./...` leaves
# these out. What needs no server runs first. The rest is mostly waiting: for
# servers that come up, for alerts that hold, for the turn of whoever has a server
# running (one package at a time). So two packages run side by side, and beside
# them what lies in deploy/ and has modules of its own.
test: setup
	$(GO) test -short -timeout 10m ./...
	@$(MAKE) --no-print-directory -j2 -Otarget test-real test-deploy

test-real: need-go
	$(GO) test -p 2 -parallel 3 -timeout 35m $(REAL)

# REAL are the packages whose tests start servers, JVMs or other programs: those
# that leave tests out with -short.
REAL = $(shell grep -rl --include='*_test.go' --exclude-dir=check --exclude-dir=package 'testing\.Short()' . | xargs -n1 dirname | sort -u)

# The manifests against the Kubernetes and operator types, and the package against
# dpkg and systemd. -count=1, because the test cache does not see files outside of a
# module.
test-deploy: need-go
	cd deploy/check && $(GO) test -count=1 ./...
	cd deploy/package && $(GO) test -count=1 -timeout 15m ./...

setup: need-go
	@$(GO) run ./internal/lab/setup

# Benchmarks with their allocations, then whole programs beside their peers in
# one run, on short files. Bars are ratios, since machines differ. The full sizes:
#
#   make bench-gclog MB=200
#   make bench-accesslog LINES_N=2000000 ROUNDS=5
#   make bench-applog SIZE=2000000000 PART=100000000 ROUNDS=3
#
# Each is stopped after BENCH_LIMIT seconds. A bar that does not hold is told, and
# the rest goes on.
BENCH_LIMIT ?= 900

bench: need-go
	-@$(MAKE) --no-print-directory bench-gclog
	-@$(MAKE) --no-print-directory bench-accesslog
	-@$(MAKE) --no-print-directory bench-applog
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 200ms ./...
	$(GO) run ./internal/follow/bench
	$(GO) run ./collectors/process/bench
	-@$(MAKE) --no-print-directory bench-engine
	-timeout $(BENCH_LIMIT) $(GO) run ./internal/ship/bench
	-timeout $(BENCH_LIMIT) $(GO) run ./internal/web/bench

bench-gclog: export MB ?= 30
bench-gclog: need-go
	timeout $(BENCH_LIMIT) collectors/gclog/bench/compare.sh

bench-accesslog: export LINES_N ?= 1000000
bench-accesslog: export ROUNDS ?= 3
bench-accesslog: export SLOW ?= 1
bench-accesslog: need-go
	timeout $(BENCH_LIMIT) collectors/accesslog/bench/run.sh

bench-applog: export SIZE ?= 1000000000
bench-applog: export PART ?= 20000000
bench-applog: export ROUNDS ?= 3
bench-applog: need-go
	timeout $(BENCH_LIMIT) collectors/applog/bench/run.sh

# Beside Debian's Prometheus in real time, two hours of samples, and the panels.
bench-engine: need-go
	timeout $(BENCH_LIMIT) $(GO) run ./internal/engine/bench

generate: need-go
	$(GO) generate ./...

# For Windows and macOS it is built and vetted, and not run.
vet: need-go
	$(GO) vet ./...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "Go is missing (looked for '$(GO)' on the PATH). Install it, or name it: make GO=/usr/local/go/bin/go"; exit 1; }
