# Everything here but conform, which needs Python, runs on a machine with Go and nothing else; tests that need more say what they skip.

.PHONY: run build quick test test-all test-postgres test-long contract conform race bench bench-console screenshots console-lint console-format bench-big bench-postgres lint words vuln fuzz rename rename-test generate release release-test cross docs-test ansible-test terraform-test

run: ## start everything with sample data on loopback
	go run ./cmd/portolan demo

build: ## bin/portolan
	go build -trimpath -o bin/portolan ./cmd/portolan

# The linters are requirements of a module of their own, which the program does not share.
GOTOOL = go tool -modfile=tools/go.mod

# The packages with the longest tests begin first. Their tests run in parallel and occupy two processors. Vet is a part of lint. Test programs are
# linked without debug data, which saves a fifth of the link time.
APPLICATIONS = ./internal/servicepoint/application
SLOWEST = $(APPLICATIONS)/dhcp $(APPLICATIONS)/resolver $(APPLICATIONS)/nameserver ./internal/engine/store ./internal/servicepoint
LONGEST = ./internal/manager/server ./test ./console $(SLOWEST)
TESTFLAGS = -vet=off -ldflags=-w

# The tests that compare what is served with what is published.
CONTRACT = '^(TestPublished|TestLater|TestEvery|TestErrors|TestOpenAPI)'

quick: export GOGC = 400 # less collection in the compiler and the tests
quick: ## for every edit: vet, tests beside the code and the published contract; without PostgreSQL, stories and the console
	go vet ./... # compiles everything, without the links of go build
	go test -short -p 4 $(TESTFLAGS) -timeout 5m $(SLOWEST) $$(go list ./... | grep -v -e /test$$ -e /console$$ -e /bench -e /manager/server$$)
	go test -short $(TESTFLAGS) -timeout 5m ./internal/manager/server -run $(CONTRACT)

test: ## all tests; those with one client on SQLite alone
	@go build -o bin/slowest ./test/slowest && go test -p 2 $(TESTFLAGS) -timeout 40m -json $(LONGEST) ./... | bin/slowest
	go test -C packaging/release -timeout 5m ./...

test-postgres: ## the tests with one client on PostgreSQL, too
	PORTOLAN_TEST_ALL=postgres go test $(TESTFLAGS) -timeout 40m ./internal/manager/... -run TestOnPostgreSQL

test-all: ## what CI runs: all tests on both databases, and the rest
	CI=true PORTOLAN_TEST_ALL=yes $(MAKE) test race lint rename-test terraform-test ansible-test release-test test-postgres conform cross test-long

test-long: ## tests that need size or time: large imports and deletes, long random tests, the attacks
	PORTOLAN_TEST_LONG=yes go test -timeout 40m ./internal/manager/server -run 'TestLong|TestOnPostgreSQL|TestExplanation'
	PORTOLAN_TEST_LONG=yes go test -timeout 40m ./internal/manager/model ./internal/manager/authz -run 'Model|TestRandomChanges'
	PORTOLAN_TEST_LONG=yes go test -timeout 20m ./internal/servicepoint/application/nameserver -run 'AnswersMatch|AnswersEqual|OddMessages'
	PORTOLAN_TEST_LONG=yes go test -v -timeout 30m ./internal/servicepoint/application/dhcp -run 'Differential|Killed|Crashes|Flood|Million|SwapUnderLoad' # prints figures
	PORTOLAN_TEST_LONG=yes go test -v -timeout 40m ./internal/servicepoint/application/dhcp -run 'KeaRatio' # prints figures
	PORTOLAN_TEST_LONG=yes go test -timeout 10m ./internal/wire/dhcppair
	PORTOLAN_TEST_LONG=yes go test -v -timeout 20m ./internal/manager/dhcp ./internal/manager/dhcppublish ./internal/manager/discovery -run 'TestLong|TestOnPostgreSQL' # prints figures
	PORTOLAN_TEST_LONG=yes go test -timeout 10m ./internal/base/naming ./internal/manager/dns -run 'ZoneFile'
	PORTOLAN_TEST_LONG=yes go test -timeout 20m ./test -run 'TestAttacks|TestKillsAtRandom|TestStandbyPromoted|TestKilledWhileUpdating|TestUpdatesMatchBIND'

# schemathesis, in a venv of its own; it needs Python alone.
CONFORM ?=
bin/conform/made: test/conform/requirements.txt
	python3 -m venv bin/conform
	bin/conform/bin/pip install -q -r test/conform/requirements.txt
	touch $@

contract: ## compare what is served with what is published: operations, types, fields, enums, what is required; part of make test, too
	@go test ./internal/manager/server -count=1 -v -run $(CONTRACT) | grep -v '^=== '

conform: bin/conform/made ## hold a running manager to its OpenAPI document
	go run ./test/conform -schemathesis $(CURDIR)/bin/conform/bin/schemathesis $(CONFORM)
	go run ./test/conform -schemathesis $(CURDIR)/bin/conform/bin/schemathesis -postgres -phases examples,fuzzing -examples 2

race: ## all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -vet=off -timeout 30m $$(go list ./... | grep -v -e /test$$ -e /console$$) # these drive a binary and a browser, which are not under the detector

bench: ## the table of ratios; bench-big prepares ten million addresses first
	go run ./bench

bench-postgres: ## those on PostgreSQL alone, from the binaries on the machine
	go run ./bench -only opqrstuvwy

bench-console: ## the console in a real browser (Chromium), over a million addresses
	go run ./bench -only E

screenshots: ## a picture of every screen of the console, into bin/screenshots
	go run ./console/screenshots bin/screenshots

bench-big:
	go run ./bench -big

# The development tools of the console, with their versions in console/tools; a folder with a dot is no place for packages of Go.
bin/.console/made: console/tools/package.json console/tools/package-lock.json
	mkdir -p bin/.console && cp console/tools/*.json bin/.console/ && cd bin/.console && npm ci --no-audit --no-fund --loglevel=error && touch made

console-lint: bin/.console/made ## check the console's sources: types, rules, formatting
	@cp console/tools/prettier.json bin/.console/
	bin/.console/node_modules/.bin/tsc -p console
	cd console && ../bin/.console/node_modules/.bin/eslint src
	bin/.console/node_modules/.bin/prettier --config bin/.console/prettier.json --log-level warn --check 'console/src/**/*.{ts,tsx}' '!console/src/types.ts'

console-format: bin/.console/made ## format the console's sources
	@cp console/tools/prettier.json bin/.console/
	bin/.console/node_modules/.bin/prettier --config bin/.console/prettier.json --log-level warn --write 'console/src/**/*.{ts,tsx}' '!console/src/types.ts'

# VERSION is that of the tag where it is left out; KEY is a minisign key that signs the checksums.
VERSION ?=
KEY ?=
release: ## what is released, into dist/: programs, packages, an image, what is in them, checksums
	go build -C packaging/release -o $(CURDIR)/bin/release .
	bin/release -version "$(VERSION)" $(if $(KEY),-key $(KEY))

release-test: ## build a release twice for this platform, compare, install the package in a namespace, upgrade, remove
	PORTOLAN_TEST_RELEASE=yes go test -C packaging/release -timeout 20m -count=1 -v .

# Ansible, in a venv of its own; it needs Python alone.
bin/ansible/made:
	python3 -m venv bin/ansible
	bin/ansible/bin/pip install -q 'ansible-core>=2.15,<2.20'
	touch $@

ansible-test: bin/ansible/made ## play what the collection for Ansible has, and install it from a release
	PORTOLAN_TEST_ANSIBLE=$(CURDIR)/bin/ansible/bin go test -count=1 ./test -run '^TestAnsible$$'

terraform-test: ## the provider's acceptance tests, by OpenTofu or Terraform, whichever is on the PATH
	@cd clients/terraform && go vet ./... && tf="$$(command -v tofu || command -v terraform || true)" && \
		{ [ -n "$$tf" ] || echo "neither tofu nor terraform is on the PATH: the acceptance tests are skipped"; } && \
		TF_ACC="$${tf:+1}" TF_ACC_TERRAFORM_PATH="$$tf" TF_ACC_PROVIDER_NAMESPACE=portolan TF_ACC_PROVIDER_HOST="$$(case "$$tf" in *tofu) echo registry.opentofu.org;; *) echo registry.terraform.io;; esac)" go test -count=1 ./...

cross: ## build the program for the other platforms of a release
	@for p in darwin/arm64 windows/amd64 linux/arm64; do echo "$$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./cmd/portolan || exit 1; done

docs-test: ## run the commands of the pages
	go test -count=1 ./test -run '^(TestDocs|TestHelp)$$'

# Packages and functions that only tests use: testkit, the browser of the console, the examples of the client, and two references.
TEST_ONLY = ^internal/testkit/|^console/browser/|^client/|func: (ReverseAddr|OperationsOf)$$

lint: ## formatting, vet, linters, and that what is generated is current
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	go mod verify
	$(GOTOOL) golangci-lint run ./...
	@dead="$$($(GOTOOL) deadcode -test ./...)" && [ -z "$$dead" ] || { echo "$$dead"; exit 1; }
	@dead="$$($(GOTOOL) deadcode ./... | grep -Ev '$(TEST_ONLY)')"; [ -z "$$dead" ] || { echo "only tests use:"; echo "$$dead"; exit 1; }
	$(MAKE) words
	cd packaging/release && go vet ./... && go mod verify && go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run ./...
	@if command -v npm >/dev/null; then $(MAKE) console-lint; else echo "npm is not on the PATH: the console's sources are not checked"; [ -z "$$CI" ]; fi
	$(MAKE) generate
	@git diff --exit-code -- api console/bundle console/src/types.ts clients ':(glob)internal/**/*_gen.go' || { echo "generated files are not current: run make generate"; exit 1; }

words: ## count phrases that slow a reader in each folder and package; more than 30 in 1,000 sentences is an error (docs/style.md)
	@if command -v python3 >/dev/null; then python3 tools/words/words.py --limit 30; else echo "python3 is not on the PATH: the words are not counted"; [ -z "$$CI" ]; fi

vuln: ## known vulnerabilities; asks a database on the Internet
	$(GOTOOL) govulncheck ./...

# The fuzz targets, a while each.
FUZZTIME ?= 20s
fuzz: ## every fuzz target of the tree
	@for p in $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
		for f in $$(go test ./$$p -list '^Fuzz' | grep '^Fuzz'); do \
			echo "$$p $$f"; go test ./$$p -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# The folders whose packages are imported, and the modules of their own.
rename: ## give the module another path: make rename MODULE=host/owner/portolan
	@[ -n "$(MODULE)" ] || { echo "MODULE is missing: make rename MODULE=host/owner/portolan"; exit 1; }
	@old=$$(go list -m) && new='$(MODULE)' && tops=$$(go list ./... | sed "s|^$$old/||; s|/.*||" | sort -u | paste -sd'|') && \
	git ls-files '*.go' '*.mod' '*.yml' '*.md' Makefile .ci/run | grep -v -e /testdata/ -e ^CHANGELOG | xargs perl -pi -e \
		"s#(?<![\w./@-])\Q$$old\E(?=/(?:$$tops|docs|packaging|clients|tools)(?![\w-]*:))#$$new#g; s#^(module |\treplace |replace |\trequire |require |\t)\Q$$old\E(?=[ \n])#\$$1$$new#; s#^(replace )\Q$$old\E (?==>)#\$$1$$new #; s#\"\Q$$old\E\"#\"$$new\"# if /^\t\"|^import/" && \
	for m in . clients/terraform packaging/release tools; do (cd $$m && go mod edit -fmt) || exit 1; done && gofmt -w $$(git ls-files '*.go') && echo "the module is $$new"

rename-test: ## rename a copy of the tree, and build it
	@rm -rf bin/.renamed && git clone -q . bin/.renamed && cd bin/.renamed && $(MAKE) -s rename MODULE=example.org/net/portolan && \
	go build ./... && go vet ./... && go vet -C packaging/release ./... && go vet -C clients/terraform ./... && \
	go test -count=1 ./test -run '^(TestEveryPackageHasARule|TestDependenciesAreListed|TestMigrationsAreKept)$$' && \
	cd ../.. && rm -rf bin/.renamed

generate: ## descriptions from the doc comments, then the OpenAPI document from the declarations
	go generate ./internal/...
	go generate ./api
	go generate ./clients/python
	go generate ./console
