# WebCodex. `make demo` shows it, `make test` proves it, `make lint` keeps it clean.
#
#   run          server and Runner for this repository, in the foreground
#   demo         the whole story on a scratch repository
#   test         every test with the race detector; what they leave behind fails it
#   lint         gofmt, vet, staticcheck, sum types, house rules, other platforms
#   conformance  suites and clients of others against the real program
#   bench        ratios against bare parts, with intervals
#   soak         the slow tests too
#   generate     what is generated: docs/tools.md, docs/events.md, goldens of new event types

SHELL := /bin/sh
GO    ?= go

# Tools are built once for each version and Go release, outside the checkout.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/webcodex/tools
# What tests measured, a file for each bar. go test shows nothing of a test that passed, and a
# figure of a cached result is still the one that was measured.
FIGURES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/webcodex/figures$(CURDIR)
GOVER := $(shell $(GO) env GOVERSION)

STATICCHECK_VERSION := v0.8.2
# v0.5.0 needs a newer Go than go.mod names.
SUMTYPE_VERSION     := v0.3.1
# The language server that tests ask; v0.24.0 needs a newer Go.
GOPLS_VERSION       := v0.23.0

STATICCHECK := $(CACHE)/staticcheck-$(STATICCHECK_VERSION)-$(GOVER)
SUMTYPE     := $(CACHE)/go-check-sumtype-$(SUMTYPE_VERSION)-$(GOVER)

GOPLS       := $(CACHE)/gopls-$(GOPLS_VERSION)-$(GOVER)

# Packages tested at a time. Tests start real servers and processes; two cores carry two.
P ?= 2

# A process with the race detector sleeps a second before it ends unless it is told not to.
export GORACE ?= atexit_sleep_ms=0

.DEFAULT_GOAL := test
.PHONY: run demo test lint fmt-check vet staticcheck sumtype house platforms bench soak generate conformance gopls

run:
	$(GO) run ./cmd/webcodex up

demo:
	$(GO) run ./cmd/webcodex demo

test: gopls
	@mkdir -p $(FIGURES)/test
	@echo "$(GO) test -race -p $(P) -timeout 20m ./..."
	@$(call figured,test) $(GO) run ./internal/leak/testrun $(GO) test -race -p $(P) -timeout 20m ./...; $(call figures,test)

# $(1) a target: tests write their figures there, and they are shown whatever became of the tests.
figured = WEBCODEX_GOPLS=$(GOPLS) WEBCODEX_FIGURES=$(FIGURES)/$(1)
figures = rc=$$?; echo "figures:"; cat $(FIGURES)/$(1)/*.json; exit $$rc

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
	@rm -rf $(FIGURES)/bench && mkdir -p $(FIGURES)/bench
	@$(call figured,bench) WEBCODEX_BENCH=1 $(GO) test -p 1 -count=1 -run '^TestRatio' -timeout 30m -v \
		$$(git grep -l 'func TestRatio' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|'); $(call figures,bench)

soak: gopls
	@rm -rf $(FIGURES)/soak && mkdir -p $(FIGURES)/soak
	@echo "WEBCODEX_SOAK=1 $(GO) test -race -count=1 -p 1 -timeout 2h ./..."
	@$(call figured,soak) WEBCODEX_SOAK=1 $(GO) test -race -count=1 -p 1 -timeout 2h ./... && \
	$(call figured,soak) WEBCODEX_SOAK=1 $(GO) test -count=1 -run '^TestBytesStayWithinTheirBound$$' -timeout 1h ./commands/history; $(call figures,soak)

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

# Without it the tests that ask a language server are skipped.
gopls:
	@[ -x $(GOPLS) ] || $(MAKE) -s $(GOPLS) || echo "gopls could not be built"

$(GOPLS):
	$(call install,golang.org/x/tools/gopls,$(GOPLS_VERSION))

$(SUMTYPE):
	$(call install,github.com/alecthomas/go-check-sumtype/cmd/go-check-sumtype,$(SUMTYPE_VERSION))
