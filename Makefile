# geonn: the extension module geonn.so and the program build/geonn-engine.
#
#   make             builds both; says whether the engine has the CUDA device
#   make install     puts them into the PostgreSQL that PG_CONFIG names
#   make check       installs, runs the tests, ends with "N passed, N failed"
#   make check-long  the same in their long forms, which take hours
#   make check-versions  builds and tests with PostgreSQL 16, 17 and 18
#   make check-package   builds, installs, uses and purges Debian's packages
#   make check-gpu   on a host with a GPU: every test of the GPUs' code, and
#                    compute-sanitizer on it; needs no PostgreSQL server
#   make check-sanitizers  the engine's tests under the compiler's sanitizers,
#                    or those that SANITIZED names
#   make cppcheck, make analyser  what these find in the sources
#   make demo        cities and airports on a throw-away server
#   make demo-moving aircraft that fly, and maps of where each is the nearest
#   make fuzz        fuzzes the protocol, each side for FUZZ_SECONDS; needs clang
#   make bench       builds build/bench/geonn-bench
#   make bench-sql   installs, measures the joins in SQL on a throw-away server
#   make bench-caches  the same for tables of neighbours that are kept up to date
#   make dist        archives of the last commit, in build/dist
#   make clean       stops the demo's server, removes all that was built
#
# Variables:
#   PG_CONFIG=/path  the pg_config of the PostgreSQL to build for
#   NVCC=/path       the CUDA compiler; NVCC= builds for the CPU alone
#   CUDA_ARCH="80 90"  GPU architectures (90 stands for compute capability 9.0)
#   CC=clang         another C compiler
#   FUZZ_SECONDS=60  how long make fuzz fuzzes each side; an hour unless said
#   WERROR=          let a compiler newer than this code have its warnings

ifneq ($(shell uname -s),Linux)
$(error geonn runs on Linux only: it needs memfd, epoll and Unix sockets that carry credentials)
endif
ifeq ($(filter x86_64 aarch64,$(shell uname -m)),)
$(error geonn runs on x86-64 and arm64 only, and this machine says $(shell uname -m))
endif

PG_CONFIG ?= pg_config
export PG_CONFIG
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(filter check check-long check-versions check-package demo demo-moving bench-sql bench-caches dist,$(MAKECMDGOALS)),)

# ---- what begins where PostgreSQL may not be installed ----
# (and without PGXS, which has a check target of its own that only refuses)

.PHONY: $(MAKECMDGOALS)
BUILD = $(MAKE) --no-print-directory -s

check check-long:
	@test/install-dependencies postgis cron fuzz cppcheck $(if $(filter check-long,$@),valgrind)
	@echo "building"
	@$(BUILD) all test-programs bench fuzzers
	+@test/install
	@test/check $(if $(filter check-long,$@),--long)

check-versions:
	@test/versions

check-package:
	@test/package

# a release as it is published: the last commit
RELEASE = geonn-$(shell sed -n 's/^\t"version": "\(.*\)",/\1/p' META.json)
dist:
	@mkdir -p build/dist
	git archive --prefix=$(RELEASE)/ -o build/dist/$(RELEASE).tar.gz HEAD
	git archive --prefix=$(RELEASE)/ -o build/dist/$(RELEASE).zip HEAD

demo:
	@test/install-dependencies
	@echo "building"
	@$(BUILD) all
	+@test/install
	@test/demo/run

demo-moving:
	@test/install-dependencies moving
	@echo "building"
	@$(BUILD) all
	+@test/install
	@test/demo/moving/run

bench-sql:
	@test/install-dependencies postgis
	@echo "building"
	@$(BUILD) all
	+@test/install
	@test/bench/sql

bench-caches:
	@test/install-dependencies
	@echo "building"
	@$(BUILD) all
	+@test/install
	@test/bench/caches

$(filter-out check check-long check-versions check-package demo demo-moving bench-sql bench-caches dist,$(MAKECMDGOALS)):
	@$(BUILD) $@

else ifeq ($(PGXS),)

$(error geonn needs the server headers of PostgreSQL: install postgresql-server-dev-NN (Debian) or postgresqlNN-devel (Red Hat), or set PG_CONFIG; make check and make demo do it by themselves where they run as root on Debian)

else

# ---- the module, built by PGXS ----

MODULE_big = geonn
EXTENSION = geonn
DATA = $(sort $(wildcard sql/geonn--*.sql))
PGFILEDESC = "geonn - exact nearest-neighbour joins"

COMMON_SOURCES = src/common/channel.c src/common/spheroid_distance.c
MODULE_SOURCES := $(sort $(wildcard src/*.c)) $(COMMON_SOURCES)
OBJS = $(MODULE_SOURCES:src/%.c=build/module/%.o)

REGRESS = $(sort $(patsubst sql/%.sql,%,$(filter-out sql/geonn--%,$(wildcard sql/*.sql))))
ISOLATION = $(sort $(patsubst test/isolation/specs/%.spec,%,$(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=geonn
EXTRA_CLEAN = build

WERROR = -Werror
WARNINGS = -Wall -Wextra $(WERROR)
# the compilers differ in which of a server's flags they know
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
WARNINGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument
endif

# geodesy.h promises the same bits everywhere: nobody may fuse a*b+c unasked
PRECISION = -ffp-contract=off

PG_CFLAGS = $(WARNINGS) $(PRECISION)
SHLIB_LINK = -lproj -lm

include $(PGXS)

ifneq ($(filter 8.% 9.% 10 11 12 13 14,$(MAJORVERSION)),)
$(error geonn needs PostgreSQL 15 or newer, and $(PG_CONFIG) belongs to $(VERSION))
endif

PLATFORM_ERROR := $(shell $(CC) $(CFLAGS) $(CPPFLAGS) -fsyntax-only -x c src/common/platform.h 2>&1 | sed -n 's/.*error: .*"\(.*\)"/\1/p')
ifneq ($(PLATFORM_ERROR),)
$(error $(PLATFORM_ERROR), and $(CC) compiles for something else)
endif

ifneq ($(shell $(CC) $(CPPFLAGS) -fsyntax-only -include geodesic.h -x c /dev/null 2>&1),)
$(error geonn needs the headers of PROJ: install libproj-dev (Debian) or proj-devel (Red Hat) or, where geodesic.h is elsewhere, set C_INCLUDE_PATH and LIBRARY_PATH; make check and make demo install it by themselves where they run as root on Debian)
endif

# headers that are not ours are not ours to warn about
override CPPFLAGS := $(foreach flag,$(filter-out -I. -I./,$(CPPFLAGS)),$(patsubst -I%,-isystem %,$(flag)))
override BITCODE_CFLAGS += $(PRECISION)

DEPENDENCIES = -MMD -MP -MF $@.d

build/module/%.o: src/%.c build/flags
	@mkdir -p $(@D)
	$(COMPILE.c) $(DEPENDENCIES) -o $@ $<

build/module/%.bc: src/%.c build/flags
	@mkdir -p $(@D)
	$(COMPILE.c.bc) $(DEPENDENCIES) -o $@ $<

# ---- the CUDA compiler ----

ifeq ($(origin NVCC),undefined)
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
endif

ifneq ($(NVCC),)
CUDA_KNOWN := $(patsubst sm_%,%,$(filter sm_%,$(shell $(NVCC) --list-gpu-code)))
ifeq ($(CUDA_KNOWN),)
$(error $(NVCC) does not run, or knows no GPU; NVCC= builds for the CPU alone)
endif
CUDA_ARCH ?= $(filter $(CUDA_KNOWN),75 80 86 89 90 100 120)
ifneq ($(filter-out $(CUDA_KNOWN),$(CUDA_ARCH)),)
$(error CUDA_ARCH: $(NVCC) cannot build for $(filter-out $(CUDA_KNOWN),$(CUDA_ARCH)); it knows $(CUDA_KNOWN))
endif
CUDA_CODE = $(foreach arch,$(CUDA_ARCH),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))
CUDA_SOURCES := $(sort $(wildcard cuda/*.cu))
ENGINE_DEVICE = with the CUDA device ($(NVCC), architectures $(strip $(CUDA_ARCH)))
else
ENGINE_DEVICE = for the CPU alone (no nvcc: not on PATH, not in /usr/local/cuda/bin, or NVCC= was asked for)
endif

comma = ,
empty =
space = $(empty) $(empty)
NVCC_FLAGS = -std=c++17 -O3 -fmad=false $(CUDA_CODE) \
	-Xcompiler $(subst $(space),$(comma),$(strip -Wall -Wextra $(WERROR) $(PRECISION)))

# ---- the engine ----

ENGINE_SOURCES := $(sort $(wildcard src/engine/*.c)) $(COMMON_SOURCES)
ENGINE_OBJECTS := $(ENGINE_SOURCES:src/%.c=build/engine/%.o)
ENGINE_CFLAGS = -std=gnu11 -O3 -g -pthread -fno-math-errno -fno-trapping-math $(WARNINGS) $(PRECISION)
NO_CUDA = build/engine/engine/no_cuda.o

build/engine/%.o: src/%.c build/flags
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(DEPENDENCIES) -c -o $@ $<

# The CPU device's hot loops, once more for each level of x86-64's vectors; the
# engine takes the best that the processor has (src/engine/cpu_path.h).
CPU_PATH_SOURCES = $(addprefix src/engine/cpu_,brute.c nearest.c neighbours.c path_version.c vectors.c)
CPU_PATHS := $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),avx2 avx512)
CPU_PATH_avx2 = -DCPU_PATH=avx2 -mavx2 -mfma -mbmi -mbmi2
CPU_PATH_avx512 = -DCPU_PATH=avx512 -mavx2 -mfma -mbmi -mbmi2 -mavx512f -mavx512bw -mavx512cd \
	-mavx512dq -mavx512vl -mprefer-vector-width=512

define CPU_PATH_RULE
build/engine/%.$(1).o: src/%.c build/flags
	@mkdir -p $$(@D)
	$$(CC) $$(ENGINE_CFLAGS) $$(CPU_PATH_$(1)) $$(DEPENDENCIES) -c -o $$@ $$<
ENGINE_OBJECTS += $$(CPU_PATH_SOURCES:src/%.c=build/engine/%.$(1).o)
build/engine/engine/cpu_path.o: ENGINE_CFLAGS += -DCPU_PATH_VECTORS
endef
$(foreach path,$(CPU_PATHS),$(eval $(call CPU_PATH_RULE,$(path))))

ifneq ($(NVCC),)
ENGINE_OBJECTS := $(filter-out $(NO_CUDA),$(ENGINE_OBJECTS))
CUDA_OBJECTS := $(CUDA_SOURCES:cuda/%.cu=build/cuda/%.o)

build/cuda/%.o: cuda/%.cu build/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(DEPENDENCIES) -c -o $@ $<

# the driver is looked up at run time, so this starts on hosts without a GPU
ENGINE_LINK = $(NVCC) -cudart static -Xcompiler -pthread
else
ENGINE_LINK = $(CC) -pthread
endif
build/geonn-engine: $(ENGINE_OBJECTS) $(CUDA_OBJECTS)
	$(ENGINE_LINK) -o $@ $^ -lproj -lm -ldl

all: build/geonn-engine engine-device

.PHONY: engine-device
engine-device: build/geonn-engine
	@echo "geonn-engine is built $(ENGINE_DEVICE)"

# All is built anew when a compiler or a flag changes.
build/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(COMPILE.c) $(COMPILE.c.bc) $(CC) $(ENGINE_CFLAGS) $(CPU_PATH_avx512) $(NVCC) $(NVCC_FLAGS))' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.PHONY: FORCE

install: install-engine
.PHONY: install-engine uninstall-engine
install-engine: build/geonn-engine installdirs
	$(INSTALL) -m 755 build/geonn-engine '$(DESTDIR)$(pkglibdir)/geonn-engine'
uninstall: uninstall-engine
uninstall-engine:
	rm -f '$(DESTDIR)$(pkglibdir)/geonn-engine'

# ---- tests, demo, benchmarks ----

UNIT_TESTS := $(patsubst test/unit/%.c,build/test/%,$(sort $(wildcard test/unit/*_test.c)))
OTHER_RELEASES = $(foreach release,older newer,build/test/geonn-$(release).so build/test/geonn-engine-$(release))
TEST_PROGRAMS = $(UNIT_TESTS) build/test/nearest_oracle $(OTHER_RELEASES) build/test/lying_engine build/test/other_heap.so build/test/geonn-engine-faults
TEST_CFLAGS = -std=gnu11 -O2 -g -pthread $(WARNINGS) $(PRECISION) -Isrc/common

# __float128: clang has no header for it, and on arm64 long double is as wide
FLOAT128_TESTS = build/test/geodesy_test build/test/spheroid_test
$(FLOAT128_TESTS): override CC = gcc
ifeq ($(shell uname -m),x86_64)
$(FLOAT128_TESTS): TEST_LIBS = -lquadmath
else
$(FLOAT128_TESTS): TEST_CFLAGS += -D_GNU_SOURCE -Itest/unit/arm64
endif

build/test/host_test: TEST_SOURCES = src/engine/host.c test/client/verdict.c
build/test/host_test: src/engine/host.c src/engine/host.h test/client/verdict.c test/client/verdict.h

build/test/siphash_test: TEST_SOURCES = test/client/verdict.c
build/test/siphash_test: test/client/verdict.c test/client/verdict.h

# finds its NVML where it lies itself
build/test/gauges_test: TEST_SOURCES = src/engine/gauges.c test/client/verdict.c -Wl,-rpath,'$$ORIGIN' -ldl
build/test/gauges_test: src/engine/gauges.c src/engine/gauges.h test/client/verdict.c test/client/verdict.h build/test/libnvidia-ml.so.1
build/test/libnvidia-ml.so.1: test/unit/fake_nvml.c build/flags
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -fPIC -shared -o $@ $<

DISTANCE_HEADERS = $(wildcard test/geodesy/*.h test/oracle/*.h test/client/random.h src/common/*.h)
build/test/geodesy_test build/test/geodesy_margin_test: $(DISTANCE_HEADERS)
build/test/spheroid_test: TEST_SOURCES = test/oracle/spheroid_oracle.c src/common/spheroid_distance.c -lproj
build/test/spheroid_test: test/oracle/spheroid_oracle.c src/common/spheroid_distance.c $(DISTANCE_HEADERS)
build/test/spheroid_margin_test: TEST_SOURCES = src/common/spheroid_distance.c -lproj
build/test/spheroid_margin_test: src/common/spheroid_distance.c $(DISTANCE_HEADERS)

# the engine's tests and benchmarks are clients of it
CLIENT_SOURCES := $(sort $(wildcard test/client/*.c)) src/common/channel.c
NEAREST_SOURCES := $(sort $(wildcard test/engine/*.c)) $(CLIENT_SOURCES)
build/test/stranger_test: TEST_SOURCES = $(CLIENT_SOURCES)
build/test/stranger_test: $(CLIENT_SOURCES) $(wildcard test/client/*.h src/common/*.h)
NEAREST_TESTS = build/test/engine_test build/test/protocol_test build/test/lifetime_test build/test/recognition_test build/test/keeping_test build/test/watch_test build/test/shares_test build/test/faults_test
$(NEAREST_TESTS): TEST_SOURCES = $(NEAREST_SOURCES)
$(NEAREST_TESTS): $(NEAREST_SOURCES) $(wildcard test/engine/*.h test/client/*.h src/common/*.h)
SEARCH_SOURCES := $(sort $(wildcard test/search/*.c)) $(CLIENT_SOURCES) src/common/spheroid_distance.c
SEARCH_TESTS = build/test/search_test build/test/sharing_test
$(SEARCH_TESTS): TEST_SOURCES = $(SEARCH_SOURCES) -lproj
$(SEARCH_TESTS): $(SEARCH_SOURCES) $(wildcard test/search/*.h test/client/*.h src/common/*.h)

build/test/%_test: test/unit/%_test.c build/flags
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $< $(TEST_SOURCES) $(TEST_LIBS) -lm

build/test/nearest_oracle: test/oracle/nearest_oracle.c build/flags
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $< -lm

# in the engine's place, to see that the module checks what it is told
build/test/lying_engine: test/unit/lying_engine.c src/common/channel.c build/flags
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $(filter %.c,$^)

# a table access method, to see that the module knows it from the heap
build/test/other_heap.so: test/unit/other_heap.c build/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CFLAGS_SL) $(CPPFLAGS) -shared $(DEPENDENCIES) -o $@ $<

# Other releases, for upgrades that stop half-way: of one the version alone is another,
# of one the protocol, too.  Of their sources only these say which they are of.
OTHER_older = -DGEONN_VERSION='"0.0-older"'
OTHER_newer = -DGEONN_VERSION='"0.9-newer"' -DGEONN_PROTOCOL_VERSION=99
VERSION_SOURCES := $(shell grep -lE 'GEONN_(PROTOCOL_)?VERSION\>' src/*.c src/engine/*.c src/common/*.c)
define OTHER_RELEASE_RULE
build/test/$(1)/module/%.o: src/%.c build/flags
	@mkdir -p $$(@D)
	$$(COMPILE.c) $$(OTHER_$(1)) $$(DEPENDENCIES) -o $$@ $$<
build/test/$(1)/engine/%.o: src/%.c build/flags
	@mkdir -p $$(@D)
	$$(CC) $$(ENGINE_CFLAGS) $$(OTHER_$(1)) $$(DEPENDENCIES) -c -o $$@ $$<
build/test/geonn-$(1).so: $$(foreach object,$$(OBJS),$$(if $$(filter $$(object:build/module/%.o=src/%.c),$$(VERSION_SOURCES)),$$(object:build/%=build/test/$(1)/%),$$(object)))
	$$(CC) $$(CFLAGS) -shared -o $$@ $$^ $$(LDFLAGS) $$(LDFLAGS_SL) $$(SHLIB_LINK)
build/test/geonn-engine-$(1): $$(foreach object,$$(ENGINE_OBJECTS),$$(if $$(filter $$(object:build/engine/%.o=src/%.c),$$(VERSION_SOURCES)),$$(object:build/%=build/test/$(1)/%),$$(object))) $$(CUDA_OBJECTS)
	$$(ENGINE_LINK) -o $$@ $$^ -lproj -lm -ldl
endef
$(foreach release,older newer,$(eval $(call OTHER_RELEASE_RULE,$(release))))

# the engine, from the same object files, but with the calls that test/faults
# has something in place of going there; those of libraries do not
FAULT_OBJECTS := $(patsubst test/faults/%.c,build/test/faults/%.o,$(sort $(wildcard test/faults/*.c)))
ifneq ($(NVCC),)
FAULT_OBJECTS += $(patsubst test/faults/%.cu,build/test/faults/%.o,$(sort $(wildcard test/faults/*.cu)))
endif
build/test/faults/%.o: test/faults/%.c build/flags
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -c -o $@ $<
build/test/faults/%.o: test/faults/%.cu build/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(DEPENDENCIES) -c -o $@ $<
build/test/faults/engine.o: $(FAULT_OBJECTS) $(ENGINE_OBJECTS) $(CUDA_OBJECTS)
	$(LD) -r $(shell nm $(FAULT_OBJECTS) | sed -n 's/.* T __wrap_/--wrap=/p') -o $@ $^
build/test/geonn-engine-faults: build/test/faults/engine.o
	$(ENGINE_LINK) -o $@ $^ -lproj -lm -ldl

# run by hand, and by make check, on a host with a GPU
ifneq ($(NVCC),)
TEST_PROGRAMS += $(patsubst test/unit/%.cu,build/test/%,$(sort $(wildcard test/unit/*.cu)))
build/test/%: test/unit/%.cu build/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -Isrc/common -cudart static $(DEPENDENCIES) -o $@ $< $(filter %.a,$^) -lproj -lm

build/test/gpu_datasets: build/bench/engine.a
endif

.PHONY: test-programs
test-programs: $(TEST_PROGRAMS)

.PHONY: check-gpu
check-gpu: all test-programs
	@test/check-gpu

# ---- fuzzers of the protocol, by clang's libFuzzer ----

# where there is a clang that has it; the package of compiler-rt brings it
FUZZ_CLANG := $(shell command -v clang 2>/dev/null)
FUZZ_SECONDS = 3600
FUZZ_SANITIZE = address,undefined,float-cast-overflow
FUZZ_CFLAGS = -std=gnu11 -O1 -g -pthread -fno-omit-frame-pointer -fno-sanitize-recover=all $(WARNINGS) $(PRECISION)
FUZZ_CC = $(FUZZ_CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZE)
FUZZ_LINK = $(FUZZ_CLANG) -pthread -fsanitize=fuzzer,$(FUZZ_SANITIZE)
FUZZERS = build/fuzz/engine_fuzzer build/fuzz/client_fuzzer

ENGINE_FUZZER_SOURCES = $(filter-out src/engine/main.c,$(ENGINE_SOURCES)) test/client/engine_client.c \
	$(addprefix test/fuzz/protocol/,steps.c scribble.c hostile_client.c engine_fuzzer.c)

build/fuzz/%.o: %.c build/flags
	@mkdir -p $(@D)
	$(FUZZ_CC) $(DEPENDENCIES) -c -o $@ $<
build/fuzz/engine_fuzzer: $(ENGINE_FUZZER_SOURCES:%.c=build/fuzz/%.o)
	$(FUZZ_LINK) -o $@ $^ -lproj -lm -ldl

# of the module what talks to the engine; and of the server what that calls there
CLIENT_FUZZER_SOURCES = $(addprefix src/,client.c client_slots.c admission.c connection.c memory_file.c references.c groups.c common/channel.c) \
	$(addprefix test/fuzz/protocol/,steps.c scribble.c backend_shim.c hostile_engine.c client_fuzzer.c)

build/fuzz/module/%.o: %.c build/flags
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS) -Isrc $(DEPENDENCIES) -c -o $@ $<
build/fuzz/client_fuzzer: $(CLIENT_FUZZER_SOURCES:%.c=build/fuzz/module/%.o)
	$(FUZZ_LINK) -no-pie -Wl,--unresolved-symbols=ignore-all -o $@ $^

.PHONY: fuzz fuzzers
ifneq ($(and $(FUZZ_CLANG),$(shell echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | $(FUZZ_LINK) -o /dev/null -x c - 2>/dev/null && echo yes)),)
fuzzers: $(FUZZERS)
else
fuzzers:
	@echo "the fuzzers of the protocol are not built: there is no clang with libFuzzer"
endif
fuzz: fuzzers
	test/fuzz/protocol/run build/fuzz $(FUZZ_SECONDS)

# The engine and its clients, built once more for each of gcc's sanitizers in a
# tree of links of its own.
SANITIZE_asan = address,undefined -fno-sanitize-recover=all
SANITIZE_tsan = thread
SANITIZED_TESTS = engine protocol lifetime recognition keeping watch shares sharing search
.PHONY: check-sanitizers $(addprefix sanitized-,asan tsan)
$(addprefix sanitized-,asan tsan): sanitized-%:
	@mkdir -p build/$*
	@ln -sfn $(addprefix ../../,Makefile geonn.control sql src test) build/$*
	@$(MAKE) -s -C build/$* NVCC= CC='gcc -fsanitize=$(SANITIZE_$*)' build/geonn-engine $(SANITIZED_TESTS:%=build/test/%_test)
check-sanitizers: sanitized-asan sanitized-tsan
	@test/sanitizers $(SANITIZED)

# What the other compiler warns of; gcc warns while it builds.
.PHONY: syntax clang-syntax
syntax:
	$(CC) $(CFLAGS) $(CPPFLAGS) -fsyntax-only $(MODULE_SOURCES)
	$(CC) $(ENGINE_CFLAGS) -fsyntax-only $(ENGINE_SOURCES)
	$(foreach path,$(CPU_PATHS),$(CC) $(ENGINE_CFLAGS) $(CPU_PATH_$(path)) -fsyntax-only $(CPU_PATH_SOURCES) &&) true
	$(CC) $(TEST_CFLAGS) -fsyntax-only $(SEARCH_SOURCES) $(wildcard test/engine/*.c) $(addprefix test/unit/,engine_test.c protocol_test.c lifetime_test.c recognition_test.c keeping_test.c watch_test.c shares_test.c stranger_test.c faults_test.c gauges_test.c siphash_test.c fake_nvml.c search_test.c sharing_test.c geodesy_margin_test.c spheroid_margin_test.c lying_engine.c) $(wildcard test/faults/*.c) $(filter-out test/bench/oracle.c,$(BENCH_SOURCES)) test/oracle/nearest_oracle.c
clang-syntax:
	$(if $(CLANG),$(MAKE) syntax CC='$(CLANG)')
	@echo "ok - no warnings from $(or $(CLANG),clang$(comma) which this PostgreSQL was built without)"

# What is found without running anything: two at a time, as each takes minutes.
# The server's assertions tell the analyser what cannot be.
# cppcheck guesses which functions set what they are given, and the others know.
.PHONY: cppcheck analyser
cppcheck:
	@cppcheck --quiet --std=c11 --enable=warning,performance --suppress=uninitvar --inline-suppr --error-exitcode=1 \
		--include=test/unit/cppcheck.h -I src -I src/common src src/engine src/common $(wildcard test/client test/engine test/search test/unit)
	@echo "ok - cppcheck has nothing to say"
ANALYSE = $(or $(CLANG),clang) --analyze -Xclang -analyzer-output=text -Xclang -analyzer-werror -o /dev/null
analyser:
	@printf '%s\n' $(MODULE_SOURCES) | xargs -P 2 -n 1 $(ANALYSE) $(CPPFLAGS) -DUSE_ASSERT_CHECKING
	@printf '%s\n' $(ENGINE_SOURCES) | xargs -P 2 -n 1 $(ANALYSE) -std=gnu11
	@echo "ok - the analyser has nothing to say"

.PHONY: stop-demo
stop-demo:
	@test/demo/stop
clean: stop-demo

BENCH_SOURCES := $(sort $(wildcard test/bench/*.c))
BENCH_OBJECTS := $(BENCH_SOURCES:test/bench/%.c=build/bench/%.o) build/bench/engine_client.o

.PHONY: bench
bench: build/geonn-engine build/bench/geonn-bench

build/bench/%.o: test/bench/%.c build/flags
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(FLOAT128_CFLAGS) $(DEPENDENCIES) -c -o $@ $<
build/bench/%.o: test/client/%.c build/flags
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(DEPENDENCIES) -c -o $@ $<

# as for the tests: __float128
build/bench/oracle.o: override CC = gcc
ifeq ($(shell uname -m),x86_64)
BENCH_LIBS = -lquadmath
else
build/bench/oracle.o: FLOAT128_CFLAGS = -D_GNU_SOURCE -Itest/unit/arm64
endif

ifneq ($(NVCC),)
BENCH_OBJECTS := $(filter-out build/bench/no_gpu.o,$(BENCH_OBJECTS)) \
	$(patsubst test/bench/%.cu,build/bench/%.o,$(sort $(wildcard test/bench/gpu_*.cu)))

build/bench/geonn-bench: $(BENCH_OBJECTS) build/bench/engine.a
	$(NVCC) -cudart static -Xcompiler -pthread -o $@ $^ $(BENCH_LIBS) -lproj -lm

build/bench/%.o: test/bench/%.cu build/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(DEPENDENCIES) -c -o $@ $<

# an archive, so that a program takes the parts that it calls
build/bench/engine.a: $(ENGINE_OBJECTS) $(CUDA_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^
else
build/bench/geonn-bench: $(BENCH_OBJECTS) build/engine/common/channel.o
	$(CC) -pthread -o $@ $^ $(BENCH_LIBS) -lm
endif

-include $(shell find build -path build/valgrind -prune -o -name "*.d" -print 2>/dev/null)

endif
