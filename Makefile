# WebCodex. `make demo` shows it, `make test` proves it, `make lint` keeps it clean.
#
#   run          server and Runner for this repository, in the foreground
#   demo         the whole story on a scratch repository
#   test         every test with the race detector
#   lint         gofmt, vet, staticcheck, sum types, house rules, other platforms
#   conformance  suites and clients of others against the real program
#   bench        ratios against bare parts, with intervals
#   soak         the slow tests too
#   generate     what is generated: docs/tools.md, docs/events.md, goldens of new event types

SHELL := /bin/sh
GO    ?= go

# Tools are built once for each version and Go release, outside the checkout.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/webcodex/tools
GOVER := $(shell $(GO) env GOVERSION)

STATICCHECK_VERSION := v0.8.2
# v0.5.0 needs a newer Go than go.mod names.
SUMTYPE_VERSION     := v0.3.1

STATICCHECK := $(CACHE)/staticcheck-$(STATICCHECK_VERSION)-$(GOVER)
SUMTYPE     := $(CACHE)/go-check-sumtype-$(SUMTYPE_VERSION)-$(GOVER)

# Packages tested at a time. Tests start real servers and processes; two cores carry two.
P ?= 2

.DEFAULT_GOAL := test
.PHONY: run demo test lint fmt-check vet staticcheck sumtype house platforms bench soak generate conformance

run:
	$(GO) run ./cmd/webcodex up

demo:
	$(GO) run ./cmd/webcodex demo

test:
	$(GO) test -race -p $(P) -timeout 9m ./...
	@echo "what became of calls when the server was killed:"
	@out="$$($(GO) test -race -count=1 -v -run '^TestKilledServerLosesNothing$$' ./cmd/webcodex 2>&1)"; rc=$$?; \
	if [ $$rc -eq 0 ]; then echo "$$out" | grep 'rounds of kill'; else echo "$$out"; fi; exit $$rc

lint: fmt-check vet staticcheck sumtype house platforms

fmt-check:
	@files="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))"; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

staticcheck: $(STATICCHECK)
	$(STATICCHECK) ./...

sumtype: $(SUMTYPE)
	$(SUMTYPE) ./...

house:
	$(GO) test -count=1 ./internal/archtest

# The other platforms that WebCodex is for. Vet checks their tests too.
platforms:
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=darwin GOARCH=amd64 CGO_ENABLED=0 $(GO) build ./...

# Comparisons are tests named TestRatio…, one package at a time so that they have the machine.
bench:
	WEBCODEX_BENCH=1 $(GO) test -p 1 -count=1 -run '^TestRatio' -timeout 30m -v \
		$$(git grep -l 'func TestRatio' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

soak:
	WEBCODEX_SOAK=1 $(GO) test -race -count=1 -p 1 -timeout 2h ./...

generate:
	$(GO) generate ./...

conformance:
	WEBCODEX_CONFORMANCE=1 $(GO) test -count=1 -v -timeout 15m ./internal/conformance

# $(1) target, $(2) package, $(3) version
define install
	@mkdir -p $(CACHE)
	@dir="$$(mktemp -d $(CACHE)/build.XXXXXX)" && \
	echo "go install $(1)@$(2)" && GOBIN="$$dir" GOFLAGS= $(GO) install $(1)@$(2) && \
	mv "$$dir"/* $@ && rmdir "$$dir"
endef

$(STATICCHECK):
	$(call install,honnef.co/go/tools/cmd/staticcheck,$(STATICCHECK_VERSION))

$(SUMTYPE):
	$(call install,github.com/alecthomas/go-check-sumtype/cmd/go-check-sumtype,$(SUMTYPE_VERSION))
