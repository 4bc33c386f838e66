# Weir: every task of the house by name. `make` lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The three programs; they need nothing at run time but a kernel.
PROGRAMS := jobmaster taskexecutor weir
# A checkout stamps its commit into the binaries; an unpacked archive has none.
VCS := $(shell git rev-parse --verify --quiet HEAD >/dev/null 2>&1 && echo true || echo false)
GOBUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=$(VCS) -ldflags='-s -w'

# Tools are built from tools/go.mod, once per version of that file and of Go.
TOOLS_KEY := $(shell { cat tools/go.mod tools/go.sum; go env GOVERSION; } | cksum | cut -d' ' -f1)
TOOLS := $(CURDIR)/.cache/tools-$(TOOLS_KEY)

IMAGE ?= weir:dev
SEEDS ?= 200
SEED ?=
PACKAGES ?= ./...
export IMAGE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the static binaries bin/{jobmaster,taskexecutor,weir}
	@mkdir -p bin
	$(GOBUILD) -o bin/ $(addprefix ./cmd/,$(PROGRAMS))

# Tests against S3 start this server; Go's cache keeps it, so that it is compiled once.
s3-server:
	@cd tools && go tool -n versitygw >/dev/null

test: s3-server ## run all tests (PACKAGES=./internal/task/... for some)
	go test $(PACKAGES)

race: s3-server ## run all tests with the race detector
	go test -race $(PACKAGES)

lint: $(TOOLS)/golangci-lint ## check the style: gofmt, golangci-lint, the house rules
	@unformatted=$$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l); \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change these files; run gofmt -w on them:"; echo "$$unformatted"; exit 1; fi
	$(TOOLS)/golangci-lint run ./...
	$(TOOLS)/golangci-lint run --build-tags e2e ./deploy/...
	go test ./internal/lint

gen: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc ## check proto/ and generate internal/rpc/pb from it
	cd proto && PATH="$(TOOLS):$$PATH" buf lint && PATH="$(TOOLS):$$PATH" buf generate

wire: $(TOOLS)/buf ## fail when proto/ cannot read what earlier versions of it, the images in proto/golden, have written
	@cd proto && for image in golden/*.binpb; do echo "buf breaking --against $$image" && "$(TOOLS)/buf" breaking --against $$image || exit 1; done

gen-check: gen wire ## fail when the committed generated code is not what proto/ gives, or proto/ has lost something
	@status=$$(git status --porcelain -- internal/rpc/pb); \
	  if [ -n "$$status" ]; then echo "internal/rpc/pb differs from what proto/ gives; run make gen and commit:"; echo "$$status"; git --no-pager diff --stat -- internal/rpc/pb; exit 1; fi

sim: ## run the seeded simulation: SEEDS=200 of them, or SEED=7 alone (LINES=99999 for all of its log)
	go test ./internal/sim -count=1 -run TestSim_Seeds $(if $(SEED),-sim.seed=$(SEED) -sim.seeds=1 -v,-sim.seeds=$(SEEDS) -timeout 24h) $(if $(LINES),-sim.lines=$(LINES))

bench: ## measure records per CPU-second, recovery and checkpoint time
	go run ./internal/bench
	go test ./internal/coordinator -run - -bench TriggerToComplete

demo: build ## a cluster on this machine that loses an executor and still counts right
	@go run ./deploy/demo -bin bin

image: build ## put the binaries into the container image IMAGE=weir:dev, without a network
	docker build --network none --tag $(IMAGE) --file deploy/Dockerfile .

e2e: image ## run the compose cluster, kill a container, compare the answer
	go test -tags e2e -count=1 -v ./deploy/e2e

check: gen-check lint race sim ## everything that a change must pass

clean: ## remove what the other targets have built
	rm -rf bin .cache

$(TOOLS)/%: ; @mkdir -p $(TOOLS) && cd tools && echo "building $*" && GOBIN=$(TOOLS) go install $$(go list tool | grep '/$*$$')

.PHONY: help build s3-server test race lint gen wire gen-check sim bench demo image e2e check clean
.SECONDARY:
