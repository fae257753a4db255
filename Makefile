# Linters are built once for a version of Go, from the module in tools/.
BIN := .bin/$(shell go env GOVERSION)
TOOLS := $(BIN)/.built
EACH := SKIP_MODULES=tools scripts/each-module.sh
# Modules without tests, or whose tests start servers.
SERVERS := tools integration examples/service

# The race detector needs a C compiler. RACE= turns it off.
RACE ?= -race

.PHONY: help build quick test test-modules test-servers check bench torture fmt
.PHONY: vet staticcheck gofumpt golangci-lint tidy coverage cross consumer

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile every module
	$(EACH) go build -o /dev/null ./...

quick: ## run what needs no server, without the race detector: within a minute, once built
	SKIP_MODULES="$(SERVERS)" scripts/each-module.sh go test -short ./...

test: ## run all tests: under the race detector, but for those over real servers
	scripts/install-servers.sh
	@$(MAKE) --no-print-directory --keep-going test-modules test-servers

test-modules: ## test: every module that needs no server
	SKIP_MODULES="$(SERVERS)" scripts/each-module.sh go test $(RACE) ./...

test-servers: ## test: the stores, and waiting and leading, over real servers
	cd integration && go test -count=1 -p 1 ./...
	cd examples/service && go test -count=1 ./...

check: ## run every check below, and report all faults of all of them
	@$(MAKE) --no-print-directory --keep-going vet staticcheck gofumpt golangci-lint tidy coverage cross consumer
	@echo "check: ok"

bench: ## print what a lock costs: medians of the benchmarks, and ratios
	scripts/bench.sh

torture: ## run the heavy gates, which take long
	scripts/torture.sh

fmt: $(TOOLS) ## format the sources
	$(BIN)/gofumpt -w .

vet: ## check: go vet
	@$(EACH) go vet ./...
	@echo "vet: ok"

staticcheck: $(TOOLS) ## check: staticcheck
	@$(EACH) "$(CURDIR)/$(BIN)/staticcheck" ./...
	@echo "staticcheck: ok"

gofumpt: $(TOOLS) ## check: the format of the sources
	@unformatted=$$($(BIN)/gofumpt -l .) || exit; \
	test -z "$$unformatted" || { echo "gofumpt: 'make fmt' would change:"; echo "$$unformatted"; exit 1; }
	@echo "gofumpt: ok"

golangci-lint: $(TOOLS) ## check: the linters that .golangci.yml lists
	@$(EACH) "$(CURDIR)/$(BIN)/golangci-lint" run --config "$(CURDIR)/.golangci.yml"
	@echo "golangci-lint: ok"

tidy: ## check: go.mod and go.sum of every module
	@scripts/each-module.sh go mod tidy -diff
	@echo "tidy: ok"

coverage: ## check: statements reached in the packages that decide
	@scripts/coverage.sh

cross: ## check: the code compiles for Windows and macOS
	@GOOS=windows $(EACH) go build -o /dev/null ./...
	@GOOS=darwin $(EACH) go build -o /dev/null ./...
	@echo "cross: ok"

consumer: ## check: who uses fxlock alone gets no client of a server
	@scripts/consumer.sh

$(TOOLS): tools/go.mod tools/go.sum
	cd tools && GOWORK=off GOBIN="$(CURDIR)/$(BIN)" go install tool
	@touch $@
