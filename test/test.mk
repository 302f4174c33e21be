# test.mk: the programs that the tests run, the fuzzers, the benchmarks, and what reads
# the sources; the Makefile includes it.
#
#   test/lib         what several of them use: a client of the engine, verdicts, random
#                    numbers, oracles
#   test/engine      tests of the engine and of src/common, and the engine whose calls fail
#   test/helpers     programs and modules that TAP tests put in the place of something
#   test/tap         TAP tests: servers in trouble, and all else that takes a server
#   test/clients     what runs the snippets of doc/clients.md
#   test/isolation   what several sessions do at a time, by pg_isolation_regress
#   test/fuzz        random questions in SQL; in protocol, fuzzers of both its sides
#   test/load        many sessions at once
#   test/bench       benchmarks: of the engine, in SQL, of caches, of other programs; what runs
#                    them all, and makes the tables of the documentation
#   test/demo        the demos and their data
#   test/tools       rules of the sources; what prepares, installs and packages
#
# test/check and test/check-gpu run the tests; sql and expected are pg_regress's.

UNIT_TESTS := $(patsubst test/engine/%.c,build/test/%,$(sort $(wildcard test/engine/*_test.c)))
OTHER_RELEASES = $(foreach release,older newer,build/test/geonn-$(release).so build/test/geonn-engine-$(release))
TEST_PROGRAMS = $(UNIT_TESTS) build/test/nearest_oracle $(OTHER_RELEASES) build/test/lying_engine build/test/in_flight build/test/other_heap.so build/test/neighbour.so build/test/plane_finder.so build/test/geonn-engine-faults
TEST_CFLAGS = -std=gnu11 -O2 -g -pthread $(WARNINGS) $(PRECISION) $(ASSERTING) -Isrc

# __float128: clang has no header for it, and on arm64 long double is as wide
FLOAT128_TESTS = build/test/arc_pairs_test build/test/arcs_probe_test build/test/arcs_refusals_test build/test/arcs_test build/test/geodesy_test build/test/hostile_test build/test/outline_test build/test/shape_test build/test/spheroid_test build/test/nearest_oracle
FLOAT128_CC := $(if $(IS_CLANG),gcc,$(CC))
$(FLOAT128_TESTS): override CC = $(FLOAT128_CC)
ifeq ($(PROCESSOR),x86_64)
$(FLOAT128_TESTS): TEST_LIBS = -lquadmath
else
$(FLOAT128_TESTS): TEST_CFLAGS += -D_GNU_SOURCE -Itest/lib/arm64
endif

build/test/host_test: TEST_SOURCES = src/engine/base/host.c test/lib/verdict.c
build/test/host_test: src/engine/base/host.c src/engine/base/host.h test/lib/verdict.c test/lib/verdict.h

build/test/given_time_test: TEST_SOURCES = src/common/given_time.c test/lib/verdict.c
build/test/given_time_test: src/common/given_time.c src/common/given_time.h test/lib/verdict.c test/lib/verdict.h

build/test/plane_test: TEST_SOURCES = test/lib/verdict.c
build/test/plane_test: test/lib/verdict.c test/lib/verdict.h src/common/plane_side.h

build/test/siphash_test: TEST_SOURCES = test/lib/verdict.c
build/test/siphash_test: test/lib/verdict.c test/lib/verdict.h

# has a clock of its own
build/test/line_test: TEST_SOURCES = src/engine/search/line.c test/lib/verdict.c -Wl,--wrap=clock_gettime
build/test/line_test: src/engine/search/line.c src/engine/search/line.h test/lib/verdict.c test/lib/verdict.h

# has the engine inside, but for its main()
ALGORITHM_OBJECTS = $(filter-out build/engine/engine/main.o,$(ENGINE_OBJECTS)) $(CUDA_OBJECTS)
build/test/%_test.o: test/engine/%_test.c build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -c -o $@ $<
INSIDE_TESTS = build/test/algorithm_test build/test/arcs_index_test build/test/arcs_refusals_test build/test/arcs_test build/test/arcs_turns_test \
	build/test/assign_test \
	build/test/built_test build/test/clusters_test build/test/cpu_cells_test build/test/cpu_cells_turns_test build/test/cpu_columns_test build/test/radix_sort_test \
	build/test/sort_test
$(INSIDE_TESTS): INSIDE_SOURCES = test/lib/verdict.c
build/test/arcs_test: INSIDE_SOURCES += build/test/shape_oracle.o $(TEST_LIBS)
build/test/arcs_test: build/test/shape_oracle.o test/lib/shape_oracle.h
# an object, as what links the engine may be nvcc
build/test/shape_oracle.o: test/lib/shape_oracle.c build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -c -o $@ $<
build/test/cpu_cells_test: INSIDE_SOURCES += test/lib/parallel.c
build/test/cpu_cells_test: test/lib/parallel.c test/lib/parallel.h
# refuses memory
build/test/cpu_cells_turns_test: INSIDE_SOURCES += -Xlinker --wrap=memory_block_allocate -Xlinker --wrap=malloc
$(INSIDE_TESTS): %: %.o test/lib/verdict.c test/lib/verdict.h $(ALGORITHM_OBJECTS)
	$(begin)
	$(Q)$(ENGINE_LINK) -o $@ $< $(INSIDE_SOURCES) $(ALGORITHM_OBJECTS) -lproj -lm -ldl

POOL_SOURCES = src/engine/base/thread_pool.c src/engine/base/host.c test/lib/verdict.c
build/test/thread_pool_test: TEST_SOURCES = $(POOL_SOURCES)
build/test/thread_pool_test: $(POOL_SOURCES) $(POOL_SOURCES:.c=.h)

# finds its NVML where it lies itself
build/test/gauges_test: TEST_SOURCES = src/engine/server/gauges.c test/lib/verdict.c -Wl,--disable-new-dtags,-rpath,'$$ORIGIN' -ldl
build/test/gauges_test: src/engine/server/gauges.c src/engine/server/gauges.h test/lib/verdict.c test/lib/verdict.h build/test/libnvidia-ml.so.1
build/test/libnvidia-ml.so.1: test/helpers/fake_nvml.c build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) -fPIC -shared -o $@ $<

DISTANCE_HEADERS = $(wildcard test/engine/*.h test/lib/*.h src/common/*.h)
build/test/geodesy_test build/test/geodesy_margin_test: TEST_SOURCES = test/lib/verdict.c
build/test/geodesy_test build/test/geodesy_margin_test: test/lib/verdict.c $(DISTANCE_HEADERS)
build/test/arc_pairs_test build/test/shape_test: TEST_SOURCES = test/lib/verdict.c test/lib/shape_oracle.c $(SHAPE_SOURCES)
build/test/arc_pairs_test build/test/shape_test: test/lib/verdict.c test/lib/shape_oracle.c $(SHAPE_SOURCES) $(DISTANCE_HEADERS)
build/test/outline_test: TEST_SOURCES = test/lib/verdict.c test/lib/shape_oracle.c $(SHAPE_SOURCES) src/common/outline.c
build/test/outline_test: test/lib/verdict.c test/lib/shape_oracle.c $(SHAPE_SOURCES) src/common/outline.c $(DISTANCE_HEADERS)
HOSTILE_SOURCES = test/lib/verdict.c test/lib/shape_oracle.c $(SHAPE_SOURCES) src/common/spheroid_distance.c
build/test/hostile_test: TEST_SOURCES = $(HOSTILE_SOURCES) -lproj
build/test/hostile_test: $(HOSTILE_SOURCES) $(DISTANCE_HEADERS)
build/test/spheroid_test: TEST_SOURCES = test/lib/verdict.c test/lib/spheroid_oracle.c src/common/spheroid_distance.c -lproj
build/test/spheroid_test: test/lib/verdict.c test/lib/spheroid_oracle.c src/common/spheroid_distance.c $(DISTANCE_HEADERS)
build/test/spheroid_margin_test: TEST_SOURCES = test/lib/verdict.c src/common/spheroid_distance.c -lproj
build/test/spheroid_margin_test: test/lib/verdict.c src/common/spheroid_distance.c $(DISTANCE_HEADERS)

# the engine's tests and benchmarks are clients of it
CLIENT_SOURCES = test/lib/engine_client.c test/lib/engine_process.c test/lib/verdict.c src/common/channel.c
NEAREST_SOURCES = test/engine/nearest.c $(CLIENT_SOURCES)
build/test/stranger_test: TEST_SOURCES = $(CLIENT_SOURCES)
build/test/stranger_test: $(CLIENT_SOURCES) $(wildcard test/lib/*.h src/common/*.h)
NEAREST_TESTS = build/test/engine_test build/test/protocol_test build/test/lifetime_test build/test/keeping_test build/test/idle_test build/test/watch_test build/test/shares_test build/test/faults_test
$(NEAREST_TESTS): TEST_SOURCES = $(NEAREST_SOURCES)
$(NEAREST_TESTS): $(NEAREST_SOURCES) $(wildcard test/engine/*.h test/lib/*.h src/common/*.h)
PROBE_SOURCES = test/lib/shape_oracle.c $(SHAPE_SOURCES) $(CLIENT_SOURCES)
build/test/arcs_probe_test: TEST_SOURCES = $(PROBE_SOURCES)
build/test/arcs_probe_test: $(PROBE_SOURCES) $(wildcard test/engine/*.h test/lib/*.h src/common/*.h)
SEARCH_SOURCES = test/engine/compare.c test/engine/setups.c test/engine/conditions.c test/engine/counts.c test/engine/side_by_side.c test/engine/busy.c test/lib/definition.c test/lib/points.c $(CLIENT_SOURCES) src/common/spheroid_distance.c
SEARCH_TESTS = build/test/search_test build/test/sharing_test build/test/threads_test
$(SEARCH_TESTS): TEST_SOURCES = $(SEARCH_SOURCES) -lproj
$(SEARCH_TESTS): $(SEARCH_SOURCES) $(wildcard test/engine/*.h test/lib/*.h src/common/*.h)

build/test/%_test: test/engine/%_test.c build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $< $(TEST_SOURCES) $(TEST_LIBS) -lm

build/test/nearest_oracle: test/helpers/nearest_oracle.c $(addprefix test/lib/,oracle.c oracle.h parallel.c parallel.h verdict.c verdict.h) build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $(filter %.c,$^) $(TEST_LIBS) -lm

# in the engine's place, to see that the module checks what it is told
build/test/lying_engine: test/helpers/lying_engine.c $(addprefix test/fuzz/protocol/,hostile_engine.c steps.c scribble.c) src/common/channel.c \
		$(wildcard test/fuzz/protocol/*.h src/common/*.h) build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $(filter %.c,$^) -lm

# has descriptors on their way
build/test/in_flight: test/helpers/in_flight.c build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -o $@ $<

# modules: a table access method, to see that the module knows it from the heap; an extension that looks at plans
build/test/other_heap.so build/test/neighbour.so: build/test/%.so: test/helpers/%.c build/flags
	$(begin)
	$(Q)$(CC) $(CFLAGS) $(CFLAGS_SL) $(CPPFLAGS) -shared $(DEPENDENCIES) -o $@ $<

# the module, with functions that ask its index of polygons of a plane
build/test/plane_finder.so: test/helpers/plane_finder.c $(OBJS)
	$(begin)
	$(Q)$(CC) $(CFLAGS) $(CFLAGS_SL) $(CPPFLAGS) -shared $(DEPENDENCIES) -o $@ $< $(OBJS) $(LDFLAGS) $(LDFLAGS_SL) $(SHLIB_LINK)

# Other releases, for upgrades that stop half-way: of one the version alone is another,
# of one the protocol, too.  Of their sources only these say which they are of.
OTHER_older = -DGEONN_VERSION='"0.0-older"'
OTHER_newer = -DGEONN_VERSION='"0.9-newer"' -DGEONN_PROTOCOL_VERSION=99
VERSION_SOURCES := $(shell grep -lE 'GEONN_(PROTOCOL_)?VERSION\>' $(MODULE_SOURCES) $(ENGINE_SOURCES))
define OTHER_RELEASE_RULE
build/test/$(1)/module/%.o: src/%.c build/flags
	$$(begin)
	$$(Q)$$(COMPILE.c) $$(OTHER_$(1)) $$(DEPENDENCIES) -o $$@ $$<
build/test/$(1)/engine/%.o: src/%.c build/flags
	$$(begin)
	$$(Q)$$(CC) $$(ENGINE_CFLAGS) $$(OTHER_$(1)) $$(DEPENDENCIES) -c -o $$@ $$<
build/test/geonn-$(1).so: $$(foreach object,$$(OBJS),$$(if $$(filter $$(object:build/module/%.o=src/%.c),$$(VERSION_SOURCES)),$$(object:build/%=build/test/$(1)/%),$$(object)))
	$$(begin)
	$$(Q)$$(CC) $$(CFLAGS) -shared -o $$@ $$^ $$(LDFLAGS) $$(LDFLAGS_SL) $$(SHLIB_LINK)
build/test/geonn-engine-$(1): $$(foreach object,$$(ENGINE_OBJECTS),$$(if $$(filter $$(object:build/engine/%.o=src/%.c),$$(VERSION_SOURCES)),$$(object:build/%=build/test/$(1)/%),$$(object))) $$(CUDA_OBJECTS)
	$$(begin)
	$$(Q)$$(ENGINE_LINK) -o $$@ $$^ -lproj -lm -ldl
endef
$(foreach release,older newer,$(eval $(call OTHER_RELEASE_RULE,$(release))))

# the engine, from the same object files, but with the calls that test/engine/faults
# has something in place of going there; those of libraries do not
FAULT_OBJECTS := $(patsubst test/engine/faults/%.c,build/test/faults/%.o,$(sort $(wildcard test/engine/faults/*.c)))
ifneq ($(NVCC),)
FAULT_OBJECTS += $(patsubst test/engine/faults/%.cu,build/test/faults/%.o,$(sort $(wildcard test/engine/faults/*.cu)))
endif
build/test/faults/%.o: test/engine/faults/%.c build/flags
	$(begin)
	$(Q)$(CC) $(TEST_CFLAGS) $(DEPENDENCIES) -c -o $@ $<
build/test/faults/%.o: test/engine/faults/%.cu build/nvcc
	$(begin)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(DEPENDENCIES) -c -o $@ $<
build/test/faults/engine.o: $(FAULT_OBJECTS) $(ENGINE_OBJECTS) $(CUDA_OBJECTS)
	$(begin)
	$(Q)$(LD) -r $(shell nm $(FAULT_OBJECTS) | sed -n 's/.* T __wrap_/--wrap=/p') -o $@ $^
build/test/geonn-engine-faults: build/test/faults/engine.o
	$(begin)
	$(Q)$(ENGINE_LINK) -o $@ $^ -lproj -lm -ldl

# run by hand, and by make check, on a host with a GPU
ifneq ($(NVCC),)
TEST_PROGRAMS += $(patsubst test/engine/%.cu,build/test/%,$(sort $(wildcard test/engine/*.cu)))
build/test/%: test/engine/%.cu build/nvcc
	$(begin)
	$(Q)$(NVCC) $(NVCC_FLAGS) -cudart static $(DEPENDENCIES) -o $@ $< $(filter %.a,$^) -lproj -lm

build/test/gpu_arcs build/test/gpu_datasets: build/bench/engine.a
endif

.PHONY: test-programs
test-programs: $(TEST_PROGRAMS)

.PHONY: check-gpu
check-gpu: all test-programs
	@test/check-gpu

# ---- fuzzers of the protocol, of bases and of shapes, by clang's libFuzzer ----

# where there is a clang that has it; the package of compiler-rt brings it
FUZZ_CLANG := $(shell command -v clang 2>/dev/null)
FUZZ_SECONDS = 3600
FUZZ_SANITIZE = address,undefined,float-cast-overflow
FUZZ_CFLAGS = -std=gnu11 -O1 -g -pthread -fno-omit-frame-pointer -fno-sanitize-recover=all $(WARNINGS) $(PRECISION) $(ASSERTING)
FUZZ_CC = $(FUZZ_CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZE)
FUZZ_LINK = $(FUZZ_CLANG) -pthread -fsanitize=fuzzer,$(FUZZ_SANITIZE)
FUZZERS = build/fuzz/engine_fuzzer build/fuzz/client_fuzzer build/fuzz/base_fuzzer build/fuzz/shape_fuzzer

ENGINE_FUZZER_SOURCES = $(filter-out src/engine/main.c,$(ENGINE_SOURCES)) test/lib/engine_client.c test/lib/engine_process.c \
	$(addprefix test/fuzz/protocol/,steps.c mutator.c scribble.c hostile_client.c engine_fuzzer.c)

build/fuzz/%.o: %.c build/flags
	$(begin)
	$(Q)$(FUZZ_CC) -Isrc $(DEPENDENCIES) -c -o $@ $<
build/fuzz/engine_fuzzer: $(ENGINE_FUZZER_SOURCES:%.c=build/fuzz/%.o)
	$(begin)
	$(Q)$(FUZZ_LINK) -o $@ $^ -lproj -lm -ldl

# of the module what talks to the engine; and of the server what that calls there
CLIENT_FUZZER_SOURCES = $(addprefix src/,client/client.c client/client_observations.c client/client_slots.c client/admission.c client/connection.c client/idle_session.c client/memory_file.c join/references.c join/groups.c common/channel.c) \
	$(addprefix test/fuzz/protocol/,steps.c mutator.c scribble.c backend_shim.c hostile_engine.c client_fuzzer.c)

build/fuzz/module/%.o: %.c build/flags
	$(begin)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) $(DEPENDENCIES) -c -o $@ $<
build/fuzz/client_fuzzer: $(CLIENT_FUZZER_SOURCES:%.c=build/fuzz/module/%.o)
	$(begin)
	$(Q)$(FUZZ_LINK) -no-pie -Wl,--unresolved-symbols=ignore-all -o $@ $^

# of the module what makes, opens, compares and searches bases
BASE_FUZZER_SOURCES = $(addprefix src/,live/live_base.c live/live_id.c live/live_search.c pages/snapshot_order.c live/live_table.c client/memory_file.c common/channel.c) \
	$(addprefix test/fuzz/protocol/,steps.c backend_shim.c base_fuzzer.c)

build/fuzz/base_fuzzer: $(BASE_FUZZER_SOURCES:%.c=build/fuzz/module/%.o)
	$(begin)
	$(Q)$(FUZZ_LINK) -no-pie -Wl,--unresolved-symbols=ignore-all -o $@ $^

# of the module what reads shapes
SHAPE_FUZZER_SOURCES = $(addprefix src/,points/shape.c points/geometry.c common/arc.c common/ring.c) \
	$(addprefix test/fuzz/protocol/,steps.c backend_shim.c shape_recipe.c shape_fuzzer.c)

build/fuzz/shape_fuzzer: $(SHAPE_FUZZER_SOURCES:%.c=build/fuzz/module/%.o)
	$(begin)
	$(Q)$(FUZZ_LINK) -no-pie -Wl,--unresolved-symbols=ignore-all -o $@ $^

.PHONY: fuzz fuzzers
ifneq ($(and $(FUZZ_CLANG),$(shell echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | $(FUZZ_LINK) -o /dev/null -x c - 2>/dev/null && echo yes)),)
fuzzers: $(FUZZERS)
else
fuzzers:
	@echo "the fuzzers of the protocol are not built: there is no clang with libFuzzer"
endif
fuzz: fuzzers
	test/fuzz/protocol/run build/fuzz $(FUZZ_SECONDS)

# The engine and those clients that SANITIZED asks for, built once more for each of gcc's sanitizers
# in a tree of links of its own.
SANITIZE_asan = address,undefined,float-cast-overflow -fno-sanitize-recover=all
SANITIZE_tsan = thread
SANITIZED_TESTS = arcs_probe engine protocol lifetime keeping watch shares sharing threads search cpu_cells cpu_cells_turns cpu_columns
SANITIZED_WANTED = $(foreach test,$(SANITIZED_TESTS),$(if $(SANITIZED),$(if $(strip $(foreach word,$(SANITIZED),$(findstring $(word),$1_$(test)))),$(test)),$(test)))
.PHONY: check-sanitizers $(addprefix sanitized-,asan tsan)
$(addprefix sanitized-,asan tsan): sanitized-%:
	@mkdir -p build/$*
	@ln -sfn $(addprefix ../../,Makefile geonn.control sql src test cuda) build/$*
	@$(MAKE) -s -C build/$* NVCC= CC='gcc -fsanitize=$(SANITIZE_$*)' build/geonn-engine $(patsubst %,build/test/%_test,$(call SANITIZED_WANTED,$*))
check-sanitizers: sanitized-asan sanitized-tsan
	@test/tools/sanitizers $(SANITIZED)

# What the other compiler warns of; gcc warns while it builds.
.PHONY: syntax clang-syntax
syntax:
	$(CC) $(CFLAGS) $(CPPFLAGS) -fsyntax-only $(MODULE_SOURCES) $(SPHEROID_SOURCES)
	$(CC) $(ENGINE_CFLAGS) -fsyntax-only $(ENGINE_SOURCES)
	$(foreach path,$(CPU_PATHS),$(CC) $(ENGINE_CFLAGS) $(CPU_PATH_$(path)) -fsyntax-only $(CPU_PATH_SOURCES) &&) true
	$(CC) $(TEST_CFLAGS) -fsyntax-only $(filter-out $(FLOAT128_TESTS:build/test/%=test/engine/%.c),$(wildcard test/engine/*.c)) $(filter-out test/lib/shape_oracle.c test/lib/spheroid_oracle.c test/lib/oracle.c,$(wildcard test/lib/*.c)) \
		$(filter-out test/helpers/other_heap.c test/helpers/neighbour.c test/helpers/plane_finder.c,$(wildcard test/helpers/*.c)) $(wildcard test/engine/faults/*.c) $(BENCH_SOURCES)
clang-syntax:
	$(if $(CLANG),$(MAKE) syntax CC='$(CLANG)')
	@echo "ok - no warnings from $(or $(CLANG),clang$(comma) as that of this PostgreSQL is not there)"

# What is found without running anything: two at a time, as each takes minutes.
# The server's assertions tell the analyser what cannot be.
# cppcheck guesses which functions set what they are given, and the others know.
.PHONY: cppcheck analyser
cppcheck:
	@cppcheck --quiet --std=c11 --enable=warning,performance --suppress=uninitvar --inline-suppr --error-exitcode=1 \
		--include=test/tools/cppcheck.h -I src src test/lib test/engine test/helpers
	@echo "ok - cppcheck has nothing to say"
ANALYSE = $(or $(CLANG),clang) --analyze -Xclang -analyzer-output=text -Xclang -analyzer-werror -o /dev/null
analyser:
	@printf '%s\n' $(MODULE_SOURCES) $(SPHEROID_SOURCES) | xargs -P 2 -n 1 $(ANALYSE) $(CPPFLAGS) -DUSE_ASSERT_CHECKING
	@printf '%s\n' $(ENGINE_SOURCES) | xargs -P 2 -n 1 $(ANALYSE) -std=gnu11 -Isrc
	@echo "ok - the analyser has nothing to say"

.PHONY: stop-demo end-demo
stop-demo:
	@[ -f build/demo.location ] || echo "no demo's server is there"
	@test/demo/stop
end-demo:
	@test/demo/stop
clean: end-demo

BENCH_SOURCES := $(sort $(wildcard test/bench/*.c))
BENCH_LIBRARY = engine_client engine_process oracle parallel
BENCH_OBJECTS := $(BENCH_SOURCES:test/bench/%.c=build/bench/%.o) $(BENCH_LIBRARY:%=build/bench/lib/%.o)

.PHONY: bench
bench: build/geonn-engine build/bench/geonn-bench

build/bench/%.o: test/bench/%.c build/flags
	$(begin)
	$(Q)$(CC) $(ENGINE_CFLAGS) $(DEPENDENCIES) -c -o $@ $<
build/bench/lib/%.o: test/lib/%.c build/flags
	$(begin)
	$(Q)$(CC) $(ENGINE_CFLAGS) $(FLOAT128_CFLAGS) $(DEPENDENCIES) -c -o $@ $<

# as for the tests: __float128
build/bench/lib/oracle.o: override CC = $(FLOAT128_CC)
ifeq ($(PROCESSOR),x86_64)
BENCH_LIBS = -lquadmath
else
build/bench/lib/oracle.o: FLOAT128_CFLAGS = -D_GNU_SOURCE -Itest/lib/arm64
endif

build/bench/no_gpu.o: build/nvcc
ifneq ($(NVCC),)
BENCH_OBJECTS := $(filter-out build/bench/no_gpu.o,$(BENCH_OBJECTS)) \
	$(patsubst test/bench/%.cu,build/bench/%.o,$(sort $(wildcard test/bench/gpu_*.cu)))

build/bench/geonn-bench: $(BENCH_OBJECTS) build/bench/engine.a
	$(begin)
	$(Q)$(NVCC) -cudart static -Xcompiler -pthread -o $@ $^ $(BENCH_LIBS) -lproj -lm

build/bench/%.o: test/bench/%.cu build/nvcc
	$(begin)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(DEPENDENCIES) -c -o $@ $<

# an archive, so that a program takes the parts that it calls
build/bench/engine.a: $(ENGINE_OBJECTS) $(CUDA_OBJECTS)
	$(begin)
	@rm -f $@
	$(Q)$(AR) qcs $@ $^
else
build/bench/geonn-bench: $(BENCH_OBJECTS) $(addprefix build/engine/common/,arc.o channel.o ring.o)
	$(begin)
	$(Q)$(CC) -pthread -o $@ $^ $(BENCH_LIBS) -lm
endif
