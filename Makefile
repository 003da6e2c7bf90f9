# Headwise. The targets a person types:
#   make          bin/headwise and the links named after its commands
#   make toy      train configs/toy_translate.yaml, show translations, figures and heads
#   make check    every test, in single and in double precision
#   make install  the program, manual pages, completion, headers, library and pkg-config file under PREFIX (/usr/local);
#                 make uninstall
# and those for developers:
#   make sanitize every test under the address and undefined-behaviour sanitizers
#   make valgrind every test under valgrind (slow; SUITE=test_NAME runs one suite, here and in the two below)
#   make coverage the share of lines of src/ that the tests run
#   make check-one one precision only: REAL=float SUITE=test_nn
#   make hostile-lines N=100000: so many odd lines through translate, in a file and each alone
#   make fuzz     readers of safetensors, YAML and text under libFuzzer (clang), FUZZ_SECONDS=600 each
#   make tsan     training and translating under the thread sanitizer
#   make kill-test N=200: kill training at so many random moments; each run must go on to the same bytes
#
# REAL=float|double chooses the number type (double is for checking gradients); objects go to build/REAL[-VARIANT].

REAL    ?= float
VARIANT ?=
CC      ?= cc
CXX     ?= c++
AR      ?= ar
PREFIX  ?= /usr/local

PACKAGES := openblas yaml-0.1 jansson zlib libutf8proc sentencepiece
OUT      := build/$(REAL)$(VARIANT)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Werror=implicit-function-declaration
OPT      ?= -O3 -g
CPPFLAGS += -Iinclude -Isrc -D_GNU_SOURCE $(if $(filter double,$(REAL)),-DHW_REAL_DOUBLE) $(shell pkg-config --cflags $(PACKAGES))
CFLAGS   += -std=c11 $(OPT) $(WARN) -ffp-contract=off -fno-math-errno -fno-trapping-math -pthread -MMD -MP $(EXTRA)
CXXFLAGS += -std=c++17 $(OPT) -Wall -Wextra -Wshadow -pthread -MMD -MP $(EXTRA)
LDLIBS   += $(shell pkg-config --libs $(PACKAGES)) -lstdc++ -lm -pthread
LDFLAGS  += $(EXTRA)

# A line a file; V=1 shows the commands.
SAY = $(if $(V),,@echo '  $(1) $@';)

# Check kills a test after so many seconds.
export CK_DEFAULT_TIMEOUT ?= 60

# The kernels are one source compiled once for each processor path.
KERNEL_SOURCES := $(wildcard src/tensor/kernels/*.c)
PATHS := generic
ifeq ($(shell $(CC) -dumpmachine | cut -d- -f1),x86_64)
PATHS += avx2 avx512
endif
FLAGS_generic := -DHW_PATH=generic
FLAGS_avx2    := -DHW_PATH=avx2 -DHW_PATH_AVX2 -mavx2 -mfma
FLAGS_avx512  := -DHW_PATH=avx512 -DHW_PATH_AVX512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512

SOURCES := $(filter-out src/cli/main.c,$(wildcard src/*/*.c))
OBJECTS := $(SOURCES:src/%.c=$(OUT)/%.o) $(patsubst src/%.cc,$(OUT)/%.o,$(wildcard src/*/*.cc)) \
           $(foreach p,$(PATHS),$(KERNEL_SOURCES:src/tensor/kernels/%.c=$(OUT)/kernels_$(p)/%.o))
# The page of `heads report` is built in: each file of src/heads/page is an array of its bytes.
PAGE    := $(sort $(wildcard src/heads/page/*))
OBJECTS += $(OUT)/heads/page.o
TESTS   := $(sort $(wildcard tests/test_*.c))
TEST_OBJECTS := $(TESTS:tests/%.c=$(OUT)/tests/%.o) $(OUT)/tests/main.o $(patsubst tests/%.c,$(OUT)/tests/%.o,$(wildcard tests/support*.c))

COMMANDS := $(shell sed -n 's/^ *COMMAND.\([a-z]*\),.*/\1/p' src/cli/commands.h)

.PHONY: all
all: bin/headwise

$(OUT)/headwise: $(OUT)/cli/main.o $(OUT)/libheadwise.a
	$(call SAY,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

bin/headwise: $(OUT)/headwise
	@mkdir -p bin
	@cp -f $< $@.new && mv -f $@.new $@
	@for c in $(COMMANDS); do ln -sf headwise bin/$$c; done

$(OUT)/libheadwise.a: $(OBJECTS)
	@rm -f $@
	$(call SAY,AR)$(AR) rcs $@ $^

$(OUT)/%.o: src/%.c
	@mkdir -p $(@D)
	$(call SAY,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(OUT)/heads/page.c: $(PAGE) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "heads/report.h"'; for f in $(PAGE); do \
	    echo "const unsigned char hw_page_$$(basename $$f | tr . _)[] = {"; \
	    od -An -v -tx1 $$f | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '0};'; done; } > $@

$(OUT)/heads/page.o: $(OUT)/heads/page.c
	$(call SAY,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# SentencePiece is C++; one file makes it C.
$(OUT)/%.o: src/%.cc
	@mkdir -p $(@D)
	$(call SAY,CXX)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

# Undefined-behaviour checks in every line of these inlined vectors take a compiler minutes; addresses are checked here too.
define kernel_rule
$(OUT)/kernels_$(1)/%.o: src/tensor/kernels/%.c
	@mkdir -p $$(@D)
	$$(call SAY,CC)$(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(1)) -fno-sanitize=undefined -c -o $$@ $$<
endef
$(foreach p,$(PATHS),$(eval $(call kernel_rule,$(p))))

# The list of suites is made from the files' names: tests/test_NAME.c defines Suite *test_NAME(void).
$(OUT)/tests/suites.h: $(TESTS) Makefile
	@mkdir -p $(@D)
	@for t in $(basename $(notdir $(TESTS))); do echo "SUITE($$t)"; done > $@

# Tests take longer to compile than to run, so they are optimised less.
$(OUT)/tests/%.o: tests/%.c | $(OUT)/tests/suites.h
	@mkdir -p $(@D)
	$(call SAY,CC)$(CC) $(CPPFLAGS) -Itests -I$(OUT)/tests $(shell pkg-config --cflags check) $(CFLAGS) -O1 -c -o $@ $<

$(OUT)/tests/run: $(TEST_OBJECTS) $(OUT)/libheadwise.a
	$(call SAY,LD)$(CC) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs check) $(LDLIBS)

# Builds everything of one precision and runs nothing, to see whether a compiler has anything to say.
.PHONY: build-one build-program
build-program: $(OUT)/headwise
build-one: $(OUT)/headwise $(OUT)/tests/run

.PHONY: toy
toy: all
	bin/train configs/toy_translate.yaml
	bin/evaluate models/toy_translate
	bin/inspect models/toy_translate --source "the cat sat on the mat"
	bin/heads report models/toy_translate -o models/toy_translate/heads.html
	@echo "What every head does: open models/toy_translate/heads.html in a browser"

.PHONY: check check-one kill-test sanitize valgrind valgrind-one coverage
check: all
	@$(MAKE) --no-print-directory check-one REAL=double
	@$(MAKE) --no-print-directory check-one REAL=float

SUITES = $(or $(SUITE),$(basename $(notdir $(TESTS))))
check-one: $(OUT)/tests/run $(OUT)/headwise
	@sh scripts/run_suites.sh $(OUT)/tests/run $(SUITES)

N ?= 200
kill-test: $(OUT)/tests/run
	HEADWISE_KILLS=$(N) $(OUT)/tests/run test_train_kill

hostile-lines: N = 100000
hostile-lines: $(OUT)/tests/run
	HEADWISE_LINES=$(N) HEADWISE_MODEL=models/toy $(OUT)/tests/run test_hostile_lines

# fuzz/NAME.c is a fuzzer; what it found stays in build/fuzz/NAME, and becomes a test.
FUZZERS := $(basename $(notdir $(wildcard fuzz/*.c)))
FUZZ_SECONDS ?= 600
$(OUT)/fuzz/%: fuzz/%.c $(OUT)/libheadwise.a
	@mkdir -p $(@D)
	$(call SAY,LD)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: fuzz-build fuzz-run fuzz tsan hostile-lines
fuzz-build: $(FUZZERS:%=$(OUT)/fuzz/%)
fuzz-run: fuzz-build
	@for f in $(FUZZERS); do \
	    mkdir -p build/fuzz/$$f && nice -n 19 $(OUT)/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
	        -max_len=4096 -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/$$f- build/fuzz/$$f || exit 1; \
	done
fuzz:
	@$(MAKE) --no-print-directory fuzz-run CC=clang CXX=clang++ VARIANT=-fuzz OPT="-O1 -g" \
	    EXTRA="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

# BLAS is not built for it, but runs on one thread a shard. The program ends with 66 where two threads met.
tsan:
	@$(MAKE) --no-print-directory build-program VARIANT=-tsan OPT="-O1 -g" EXTRA="-fsanitize=thread"
	@rm -rf build/tsan
	TSAN_OPTIONS=halt_on_error=1 $(OUT)-tsan/headwise train configs/toy_translate.yaml --threads 4 --quiet --overwrite \
	    --set training.model_dir=build/tsan --set training.max_steps=20 --set training.warmup_steps=5 \
	    --set training.validate_every=10 --set training.validate_sentences=100
	head -200 data/toy/test.en | TSAN_OPTIONS=halt_on_error=1 $(OUT)-tsan/headwise translate build/tsan --threads 4 --beam 4 \
	    > build/tsan/translations
	test $$(wc -l < build/tsan/translations) -eq 200

sanitize: export EXTRA = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
sanitize:
	@CK_TIMEOUT_MULTIPLIER=10 $(MAKE) --no-print-directory check-one VARIANT=-sanitize OPT="-O1 -g" EXTRA="$(EXTRA)"

# valgrind computes fused multiply-adds lane by lane in software. With two roundings the tests take a tenth of the time;
# those that compare last bits run as they are.
LAST_BITS := test_kernels test_kernels_dropout test_screen
valgrind: ROUNDED = $(filter-out $(LAST_BITS),$(SUITES))
valgrind: FUSED = $(filter $(LAST_BITS),$(SUITES))
valgrind:
	@failed=0; \
	[ -z "$(ROUNDED)" ] || $(MAKE) --no-print-directory valgrind-one VARIANT=-valgrind OPT="-O2 -g" \
	    EXTRA=-DHW_FMA_ROUNDS_TWICE SUITE="$(ROUNDED)" || failed=1; \
	[ -z "$(FUSED)" ] || $(MAKE) --no-print-directory valgrind-one VARIANT=-valgrind-fused OPT="-O2 -g" \
	    SUITE="$(FUSED)" || failed=1; \
	exit $$failed

valgrind-one: build-one
	@sh scripts/valgrind.sh $(OUT) $(SUITES)

# The files of counters are made before the tests, for all users, since some tests give up their rights; others limit
# the size of files, which gcov would say among what they compare.
COVERAGE := VARIANT=-coverage OPT="-O1 -g" EXTRA="--coverage -fprofile-update=atomic"
coverage:
	@for real in double float; do \
	    rm -rf build/$$real-coverage && $(MAKE) --no-print-directory build-one REAL=$$real $(COVERAGE) || exit 1; \
	    (umask 0; build/$$real-coverage/tests/run none; build/$$real-coverage/headwise --version) > build/none 2>&1; \
	    GCOV_ERROR_FILE=/dev/null CK_TIMEOUT_MULTIPLIER=10 \
	        $(MAKE) --no-print-directory check-one REAL=$$real $(COVERAGE) || exit 1; \
	done
	@sh scripts/coverage.sh build/double-coverage build/float-coverage

# The library is static, so whoever links it needs what it needs.
define PKGCONFIG
prefix=$(PREFIX)
includedir=$${prefix}/include
libdir=$${prefix}/lib

Name: headwise
Description: small encoder-decoder Transformers: training, translation, study of attention heads
Version: $(shell sed -n 's/.*HW_VERSION "\(.*\)"/\1/p' include/headwise/base.h)
Requires: $(PACKAGES)
Cflags: -I$${includedir}$(if $(filter double,$(REAL)), -DHW_REAL_DOUBLE)
Libs: -L$${libdir} -lheadwise -lstdc++ -lm -pthread
endef

MAN         := share/man/man1
COMPLETIONS := share/bash-completion/completions

.PHONY: install uninstall clean
install: $(OUT)/headwise
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin include/headwise lib/pkgconfig $(MAN) $(COMPLETIONS))
	install -m 755 $(OUT)/headwise $(DESTDIR)$(PREFIX)/bin/headwise
	install -m 644 include/headwise.h $(DESTDIR)$(PREFIX)/include
	install -m 644 include/headwise/*.h $(DESTDIR)$(PREFIX)/include/headwise
	install -m 644 $(OUT)/libheadwise.a $(DESTDIR)$(PREFIX)/lib
	@$(file >$(OUT)/headwise.pc,$(PKGCONFIG))
	install -m 644 $(OUT)/headwise.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	@rm -rf $(OUT)/pages && $(OUT)/headwise --write-pages $(OUT)/pages
	install -m 644 $(OUT)/pages/*.1 $(DESTDIR)$(PREFIX)/$(MAN)
	install -m 644 $(OUT)/pages/headwise.bash $(DESTDIR)$(PREFIX)/$(COMPLETIONS)/headwise

uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/headwise include/headwise.h lib/libheadwise.a lib/pkgconfig/headwise.pc)
	rm -rf $(DESTDIR)$(PREFIX)/include/headwise
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,$(MAN)/headwise.1 $(MAN)/headwise-*.1 $(COMPLETIONS)/headwise)

clean:
	rm -rf build bin

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(OUT)/cli/main.d
.SECONDARY:
