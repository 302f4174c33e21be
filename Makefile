# geonn: the extension module geonn.so, its library build/geonn_spheroid.so and the program
# build/geonn-engine.
#
#   make             builds all; says whether the engine has the CUDA device
#   make install     puts them into the PostgreSQL that PG_CONFIG names; make uninstall
#                    takes them away
#   make check       installs, runs every kind of test in minutes, ends with "N passed, N failed"
#   make check-all   all tests, which CI runs
#   make check-long  the same in their long forms, which take hours
#   make mutants     breaks a line of some sources each, and says which test notices; MUTANTS names
#                    sources, or says how many
#   make check-versions  builds and tests with PostgreSQL 16 to 19
#   make check-package   builds, installs, uses and purges Debian's packages
#   make check-arm64     on x86-64, the engine's tests and random SQL on an emulated arm64
#   make check-image     makes the images of the Containerfile, and tries them
#   make image       a container's image of PostgreSQL with geonn, geonn:0.2.0; with
#                    IMAGE_BUILD=, the program and its flags
#   make image-cuda  the same with the CUDA device, from the CUDA toolkit of NVCC
#   make image-extension  geonn alone, for servers that CloudNativePG runs
#   make check-clients  doc/clients.md with the drivers that it names, which it fetches
#   make check-gpu   on a host with a GPU: every test of the GPUs' code, and
#                    compute-sanitizer on it; needs no PostgreSQL server
#   make check-sanitizers  the engine's tests under the compiler's sanitizers,
#                    or those that SANITIZED names
#   make cppcheck, make analyser  what these find in the sources
#   make demo        cities and airports on a throw-away server
#   make demo-moving aircraft that fly, and maps of where each is the nearest
#   make demo-history a day of 2,000 aircraft: which was nearest to a city, and when
#   make pictures    draws those of doc/pictures again
#   make demo-coast  how far each city is from the nearest coast, with a map; needs PostGIS
#   make demo-clusters  where cities are dense, with a map
#   make stop-demo   stops the demo's server and removes it
#   make fuzz        fuzzes the protocol, each side, bases and shapes for FUZZ_SECONDS; needs clang
#   make bench       builds build/bench/geonn-bench
#   make bench-sql   installs, measures the joins in SQL on a throw-away server
#   make bench-caches  the same for tables of neighbours that are kept up to date
#   make bench-live  the same for single questions in a table that changes
#   make compile_commands.json  how each source is compiled, for clangd
#   make typedefs.list  the types of the sources, for pgindent
#   make dist        archives of the last commit, in build/dist
#   make deb         Debian's packages of this checkout, in build/deb
#   make rpm         Red Hat's package of the last commit, in build/rpm
#   make repo        a repository for apt of those packages, in build/repo, signed
#                    with the key that KEY names
#   make clean       stops the demo's server, removes all that was built
#   make help        these lines
#
# Variables:
#   PG_CONFIG=/path  the pg_config of the PostgreSQL to build for
#   NVCC=/path       the CUDA compiler; NVCC= builds for the CPU alone
#   CUDA_ARCH="80 90"  GPU architectures (90 stands for compute capability 9.0)
#   CC=clang         another C compiler
#   FUZZ_SECONDS=60  how long make fuzz fuzzes each of them; an hour unless said
#   ASSERTIONS=1     check at run time what the sources assert; the check targets do, but for
#                    check-package and check-image
#   WERROR=          let a compiler newer than this code have its warnings
#   V=1              show whole commands while building
#   FORCE=1          let install, check, demo and bench-... replace a geonn that a package
#                    or another checkout has installed, and a demo another one's tables

ifneq ($(shell uname -s),Linux)
$(error geonn runs on Linux only: it needs memfd, epoll and Unix sockets that carry credentials)
endif
ifeq ($(filter x86_64 aarch64,$(shell uname -m)),)
$(error geonn runs on x86-64 and arm64 only, and this machine says $(shell uname -m))
endif

PG_CONFIG ?= pg_config
export PG_CONFIG
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

# what is tested checks what the sources assert, but for what is tested as it is published;
# a sub-make and the scripts in test have it from here
ifneq ($(filter-out check-package check-image,$(filter check%,$(MAKECMDGOALS))),)
ASSERTIONS ?= 1
endif
export ASSERTIONS

ANYWHERE = help check check-all check-long mutants check-versions check-package check-arm64 check-image check-clients \
	image image-cuda image-extension demo demo-moving demo-history demo-coast demo-clusters pictures bench-sql bench-caches bench-live typedefs.list dist \
	deb repo rpm
# what a packager puts below DESTDIR replaces nothing
ANYWHERE += $(if $(DESTDIR),,$(if $(PGXS),install uninstall))
ifneq ($(filter $(ANYWHERE),$(MAKECMDGOALS)),)

# ---- what begins where PostgreSQL may not be installed ----
# (and without PGXS, which has a check target of its own that only refuses)

.PHONY: $(MAKECMDGOALS)
# all at once, as they share what they build
OTHERS = $(filter-out $(ANYWHERE),$(MAKECMDGOALS))
# on all cores, unless make is told how many
BUILD = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

help:
	@sed -n '4,/^$$/s/^#\( \{1,3\}\|$$\)//p' Makefile

check check-all check-long:
	@test/tools/install-dependencies tests postgis cron partman beside clients prometheus fuzz cppcheck $(if $(filter check-long,$@),valgrind)
	@echo "building"
	@$(BUILD) all test-programs bench fuzzers
	+@test/tools/install
	@test/check $(patsubst check-%,--%,$(filter-out check,$@))

mutants:
	@test/tools/mutants $(MUTANTS)

check-clients:
	@test/tools/install-dependencies tests postgis clients
	@echo "building"
	@$(BUILD) all test-programs bench
	+@test/tools/install
	@test/check --long clients

check-versions:
	@test/tools/versions

check-package:
	@test/tools/package

check-arm64:
	@test/tools/arm64

check-image:
	@test/tools/image

typedefs.list:
	@test/tools/typedefs >$@

# a release as it is published: the last commit
RELEASE = geonn-$(shell sed -n 's/^\t"version": "\(.*\)",/\1/p' META.json)
dist:
	@mkdir -p build/dist
	git archive --prefix=$(RELEASE)/ -o build/dist/$(RELEASE).tar.gz HEAD
	git archive --prefix=$(RELEASE)/ -o build/dist/$(RELEASE).zip HEAD

# ---- images; the archive's version is theirs ----

# the first of these programs that is here
IMAGE_BUILD ?= $(firstword $(foreach program,docker podman buildah,$(if $(shell command -v $(program)),$(program) build)))
IMAGE_MAKE = $(or $(IMAGE_BUILD),$(error an image takes docker, podman or buildah)) --file Containerfile
IMAGE_TAG = $(RELEASE:geonn-%=%)
CUDA_COMPILER = $(realpath $(or $(NVCC),$(shell command -v nvcc),/usr/local/cuda/bin/nvcc))

image:
	$(IMAGE_MAKE) --target server --tag geonn:$(IMAGE_TAG) .
image-cuda:
	$(if $(filter docker,$(firstword $(IMAGE_BUILD))),$(error docker cannot show a build the CUDA toolkit: set IMAGE_BUILD to "podman build" or "buildah build"))
	$(if $(CUDA_COMPILER),,$(error the engine for GPUs takes nvcc: set NVCC))
	$(IMAGE_MAKE) --target server --tag geonn:$(IMAGE_TAG)-cuda --build-arg ENGINE=cuda --build-arg NVCC=$(CUDA_COMPILER) \
		--volume $(CUDA_COMPILER:%/bin/nvcc=%):$(CUDA_COMPILER:%/bin/nvcc=%):ro .
image-extension:
	$(IMAGE_MAKE) --target extension --tag geonn-extension:$(IMAGE_TAG) .

deb:
	@test/tools/make-packages

repo:
	@test/tools/make-repository '$(KEY)'

rpm:
	@test/tools/make-rpm

demo:
	@test/demo/stop ask
	@test/tools/install-dependencies
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/demo/run

demo-moving:
	@test/demo/stop ask
	@test/tools/install-dependencies moving
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/demo/moving/run

pictures:
	@test/demo/stop ask
	@test/tools/install-dependencies moving postgis
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/demo/pictures

demo-history:
	@test/demo/stop ask
	@test/tools/install-dependencies drawing
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/demo/history/run

demo-coast:
	@test/demo/stop ask
	@test/tools/install-dependencies drawing postgis
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/demo/coast/run

demo-clusters:
	@test/demo/stop ask
	@test/tools/install-dependencies drawing
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/demo/clusters/run

bench-sql:
	@test/tools/install-dependencies tests postgis
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/bench/sql

bench-caches:
	@test/tools/install-dependencies tests
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/bench/caches

bench-live:
	@test/tools/install-dependencies tests postgis
	@test/tools/build-here $(BUILD)
	+@test/tools/install
	@test/bench/live

install: $(OTHERS)
	@$(BUILD) all
	+@test/tools/install anew

uninstall: $(OTHERS)
	+@test/tools/install uninstall

$(firstword $(OTHERS)):
	@$(MAKE) --no-print-directory $(OTHERS)
$(filter-out $(firstword $(OTHERS)),$(OTHERS)): $(firstword $(OTHERS)) ;

else ifeq ($(PGXS),)

$(error geonn needs the server headers of PostgreSQL: install postgresql-server-dev-NN (Debian) or postgresqlNN-devel (Red Hat), or set PG_CONFIG; make check and make demo do it by themselves where they run as root on Debian)

else

# ---- the module, built by PGXS ----

MODULE_big = geonn
EXTENSION = geonn
DATA = $(sort $(wildcard sql/geonn--*.sql))
DOCS = $(sort $(wildcard doc/*.md))
PGFILEDESC = "geonn - exact nearest-neighbour joins"

COMMON_SOURCES = src/common/channel.c src/common/given_time.c
# the rooms of the module; test/tools/include-rules has their doors
MODULE_ROOMS = base points client supervisor join pages live plan zones sql watch cache shard
SHAPE_SOURCES = src/common/arc.c src/common/ring.c
MODULE_SOURCES := $(sort $(wildcard src/module.c $(MODULE_ROOMS:%=src/%/*.c))) $(COMMON_SOURCES) $(SHAPE_SOURCES) src/common/outline.c
OBJS = $(MODULE_SOURCES:src/%.c=build/module/%.o)

REGRESS = $(sort $(patsubst sql/%.sql,%,$(filter-out sql/geonn--%,$(wildcard sql/*.sql))))
ISOLATION = $(sort $(patsubst test/isolation/specs/%.spec,%,$(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=geonn
EXTRA_CLEAN = build compile_commands.json

# A line for each file that is made; V=1: the whole command; make -s: neither.
Q = $(if $(filter 1,$(V)),,@)
QUIET = $(filter 1,$(V))$(findstring s,$(firstword -$(MAKEFLAGS)))
begin = @mkdir -p $(@D)$(if $(QUIET),,; echo '  $@')

# that of what is built, which may be another than this machine's
PROCESSOR := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

WERROR = -Werror
WARNINGS = -Wall -Wextra $(WERROR)
# the compilers differ in which of a server's flags they know
IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
ifneq ($(IS_CLANG),)
WARNINGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument
endif

# test/tools/install installs what is built
ifneq ($(and $(filter install-files,$(MAKECMDGOALS)),$(shell grep -ls USE_ASSERT_CHECKING build/flags)),)
ASSERTIONS = 1
endif
ASSERTING = $(if $(filter 1,$(ASSERTIONS)),-DUSE_ASSERT_CHECKING)

# geodesy.h promises the same bits everywhere: nobody may fuse a*b+c unasked
PRECISION = -ffp-contract=off

PG_CFLAGS = $(WARNINGS) $(PRECISION)
# the module calls its own functions directly, whatever other modules have
SHLIB_LINK = -lm -Wl,-Bsymbolic-functions

# Where the clang is missing with which the server was built, the extension goes without
# bitcode, which PostgreSQL's compiled plans would inline functions from.
SERVER_CLANG := $(shell sed -n 's/^CLANG *= *//p' $(dir $(PGXS))../Makefile.global)
ifeq ($(shell command -v $(firstword $(CLANG) $(SERVER_CLANG) none) 2>/dev/null),)
override with_llvm = no
override CLANG =
endif

include $(PGXS)
# pages have names that those of other extensions may have, too
docmoduledir := $(docmoduledir)/geonn

ifeq ($(shell command -v $(firstword $(CC)) 2>/dev/null),)
$(error geonn needs a C compiler, and there is no $(firstword $(CC)): install gcc and libc6-dev (Debian) or gcc (Red Hat), or set CC)
endif

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
override CPPFLAGS := -Isrc $(ASSERTING) $(foreach flag,$(filter-out -I. -I./,$(CPPFLAGS)),$(patsubst -I%,-isystem %,$(flag)))
override BITCODE_CFLAGS += $(PRECISION)

# the rule that links geonn.so is PGXS's
define newline


endef
PGXS_LINK := $(LINK.shared)
LINK.shared = $(begin)$(newline)$(Q)$(PGXS_LINK)

DEPENDENCIES = -MMD -MP -MF $@.d

# vectors of many points are computed several at a time
build/module/live/live_base.o: CFLAGS += -O3 -fno-math-errno -fno-trapping-math

build/module/%.o: src/%.c build/flags
	$(begin)
	$(Q)$(COMPILE.c) $(DEPENDENCIES) -o $@ $<

build/module/%.bc: src/%.c build/flags
	$(begin)
	$(Q)$(COMPILE.c.bc) $(DEPENDENCIES) -o $@ $<

# ---- the library of the spheroid, which the module loads when it needs it ----

SPHEROID_LIBRARY = build/geonn_spheroid$(DLSUFFIX)
SPHEROID_SOURCES = src/spheroid/library.c src/common/spheroid_distance.c
SPHEROID_OBJECTS = $(SPHEROID_SOURCES:src/%.c=build/spheroid/%.o)

# its functions are found by their names
build/spheroid/%.o: src/%.c build/flags
	$(begin)
	$(Q)$(COMPILE.c) -fvisibility=default $(DEPENDENCIES) -o $@ $<

$(SPHEROID_LIBRARY): $(SPHEROID_OBJECTS)
	$(begin)
	$(Q)$(CC) $(CFLAGS) -shared -o $@ $^ $(LDFLAGS) $(LDFLAGS_SL) -lproj -lm

all: $(SPHEROID_LIBRARY)

# ---- the CUDA compiler ----

# test/tools/install installs what is built
ifeq ($(filter install-files,$(MAKECMDGOALS))$(filter-out undefined,$(origin NVCC) $(origin CUDA_ARCH))$(wildcard build/nvcc),install-filesbuild/nvcc)
NVCC := $(shell sed -n 's/^NVCC = *//p' build/nvcc)
CUDA_ARCH := $(shell sed -n 's/^CUDA_ARCH = *//p' build/nvcc)
endif
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
CUDA_SOURCES := $(sort $(wildcard cuda/*.cu cuda/*/*.cu))
ENGINE_DEVICE = with the CUDA device ($(NVCC), architectures $(strip $(CUDA_ARCH)))
else
ENGINE_DEVICE = for the CPU alone (no nvcc: not on PATH, not in /usr/local/cuda/bin, or NVCC= was asked for)
endif

comma = ,
empty =
space = $(empty) $(empty)
NVCC_FLAGS = -std=c++17 -O3 -fmad=false -Isrc -I. $(CUDA_CODE) \
	-Xcompiler $(subst $(space),$(comma),$(strip -Wall -Wextra $(WERROR) $(PRECISION)))

# ---- the engine ----

ENGINE_SOURCES := $(sort $(wildcard src/engine/*.c src/engine/*/*.c src/engine/cpu/*/*.c)) $(COMMON_SOURCES) $(SHAPE_SOURCES) src/common/spheroid_distance.c
ENGINE_OBJECTS := $(ENGINE_SOURCES:src/%.c=build/engine/%.o)
ENGINE_CFLAGS = -std=gnu11 -O3 -g -pthread -Isrc -fno-math-errno -fno-trapping-math $(WARNINGS) -Wno-psabi $(PRECISION) $(ASSERTING)
NO_CUDA = build/engine/engine/search/no_cuda.o

build/engine/%.o: src/%.c build/flags
	$(begin)
	$(Q)$(CC) $(ENGINE_CFLAGS) $(DEPENDENCIES) -c -o $@ $<

# The CPU device's hot loops, once more for each level of x86-64's vectors; the
# engine takes the best that the processor has (src/engine/cpu/base/path.h).
CPU_PATH_SOURCES = $(addprefix src/engine/cpu/,arcs/arcs_probe_search.c arcs/arcs_search.c arcs/boxes_list.c assign/assign_walk.c base/vectors.c clusters/clusters_walk.c counts/count.c path_version.c squares/cells_fill.c squares/cells_nearest.c walk/brute.c walk/bundle.c walk/collector.c walk/nearest.c walk/nearest_conditions.c walk/neighbours.c walk/settled.c walk/walk_alone.c)
CPU_PATHS := $(if $(filter x86_64,$(PROCESSOR)),avx2 avx512)
CPU_PATH_avx2 = -DCPU_PATH=avx2 -mavx2 -mfma -mbmi -mbmi2
CPU_PATH_avx512 = -DCPU_PATH=avx512 -mavx2 -mfma -mbmi -mbmi2 -mavx512f -mavx512bw -mavx512cd \
	-mavx512dq -mavx512vl -mprefer-vector-width=512

define CPU_PATH_RULE
build/engine/%.$(1).o: src/%.c build/flags
	$$(begin)
	$$(Q)$$(CC) $$(ENGINE_CFLAGS) $$(CPU_PATH_$(1)) $$(DEPENDENCIES) -c -o $$@ $$<
ENGINE_OBJECTS += $$(CPU_PATH_SOURCES:src/%.c=build/engine/%.$(1).o)
build/engine/engine/cpu/base/path.o: ENGINE_CFLAGS += -DCPU_PATH_VECTORS
endef
$(foreach path,$(CPU_PATHS),$(eval $(call CPU_PATH_RULE,$(path))))

ifneq ($(NVCC),)
ENGINE_OBJECTS := $(filter-out $(NO_CUDA),$(ENGINE_OBJECTS))
CUDA_OBJECTS := $(CUDA_SOURCES:cuda/%.cu=build/cuda/%.o)

build/cuda/%.o: cuda/%.cu build/nvcc
	$(begin)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(DEPENDENCIES) -c -o $@ $<

# the driver is looked up at run time, so this starts on hosts without a GPU
ENGINE_LINK = $(NVCC) -cudart static -Xcompiler -pthread
else
ENGINE_LINK = $(CC) -pthread
$(NO_CUDA): build/nvcc
endif
build/geonn-engine: $(ENGINE_OBJECTS) $(CUDA_OBJECTS)
	$(begin)
	$(Q)$(ENGINE_LINK) -o $@ $^ -lproj -lm -ldl

all: build/geonn-engine engine-device

.PHONY: engine-device
engine-device: build/geonn-engine
	@echo "geonn-engine is built $(ENGINE_DEVICE)"

# All is built anew when a compiler or a flag changes; when it is nvcc's, what nvcc compiles, or what stands for that.
FLAGS_flags = $(COMPILE.c) $(COMPILE.c.bc) $(CC) $(ENGINE_CFLAGS) $(CPU_PATH_avx512)
define FLAGS_nvcc
NVCC = $(NVCC)
CUDA_ARCH = $(CUDA_ARCH)
$(NVCC_FLAGS)
endef
build/flags build/nvcc: FORCE
	@mkdir -p $(@D)
	@[ -w $(@D) ] || { echo "user $$(id -un) may not write to $(@D), which another user has made: \"sudo make clean\" removes it" >&2; exit 1; }
	@printf '%s\n' '$(subst $(newline),' ',$(subst ','\'',$(FLAGS_$(@F))))' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.PHONY: FORCE

# for Prometheus and Grafana
MONITORING = $(sort $(wildcard monitoring/*))
MONITORING_DIRECTORY = $(datadir)/contrib/geonn
# beside the pages
PICTURES = $(if $(DOCS),$(sort $(wildcard doc/pictures/*)))
PICTURES_DIRECTORY = $(docdir)/$(docmoduledir)/pictures

# what test/tools/install calls
install-files: install
uninstall-files: uninstall

install: install-beside
.PHONY: install-files uninstall-files install-beside uninstall-beside
install-beside: build/geonn-engine $(SPHEROID_LIBRARY) installdirs
	$(INSTALL) -m 755 build/geonn-engine '$(DESTDIR)$(pkglibdir)/geonn-engine'
	$(INSTALL_SHLIB) $(SPHEROID_LIBRARY) '$(DESTDIR)$(pkglibdir)/'
	$(MKDIR_P) $(MONITORING:monitoring/%='$(DESTDIR)$(MONITORING_DIRECTORY)/%')
	$(foreach folder,$(MONITORING),$(INSTALL_DATA) $(wildcard $(folder)/*) '$(DESTDIR)$(MONITORING_DIRECTORY)/$(notdir $(folder))/' &&) true
	$(if $(PICTURES),$(MKDIR_P) '$(DESTDIR)$(PICTURES_DIRECTORY)')
	$(if $(PICTURES),$(INSTALL_DATA) $(PICTURES) '$(DESTDIR)$(PICTURES_DIRECTORY)/')
uninstall: uninstall-beside
uninstall-beside:
	rm -f $(foreach file,geonn-engine $(notdir $(SPHEROID_LIBRARY)),'$(DESTDIR)$(pkglibdir)/$(file)')
	rm -f $(foreach page,$(notdir $(DOCS)),'$(DESTDIR)$(docdir)/$(docmoduledir)/$(page)')
	rm -rf '$(DESTDIR)$(PICTURES_DIRECTORY)'
	-rmdir '$(DESTDIR)$(docdir)/$(docmoduledir)'
	rm -rf '$(DESTDIR)$(MONITORING_DIRECTORY)'

.PHONY: compile_commands.json
compile_commands.json:
	+@test/tools/compile-commands $@

include test/test.mk

-include $(shell find build \( -path build/valgrind -o -path build/arm64 \) -prune -o -name "*.d" -print 2>/dev/null)

endif
