# Headwise. The targets a person types:
#   make          bin/headwise and the links named after its commands
#   make toy      train configs/toy_translate.yaml, show translations, figures and heads
#   make check    every test, in single and in double precision
#   make sanitize every test under the address and undefined-behaviour sanitizers
#
# REAL=float|double chooses the number type (double is for checking gradients); objects go to build/REAL[-VARIANT].

REAL    ?= float
VARIANT ?=
CC      ?= cc
CXX     ?= c++
AR      ?= ar
PREFIX  ?= /usr/local

PACKAGES := openblas yaml-0.1 jansson zlib libutf8proc
OUT      := build/$(REAL)$(VARIANT)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Werror=implicit-function-declaration
OPT      ?= -O3 -g
CPPFLAGS += -Iinclude -Isrc -D_GNU_SOURCE $(if $(filter double,$(REAL)),-DHW_REAL_DOUBLE) $(shell pkg-config --cflags $(PACKAGES))
CFLAGS   += -std=c11 $(OPT) $(WARN) -ffp-contract=off -fno-math-errno -fno-trapping-math -pthread -MMD -MP $(EXTRA)
LDLIBS   += $(shell pkg-config --libs $(PACKAGES)) -lm -pthread
LDFLAGS  += $(EXTRA)

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
OBJECTS := $(SOURCES:src/%.c=$(OUT)/%.o) \
           $(foreach p,$(PATHS),$(KERNEL_SOURCES:src/tensor/kernels/%.c=$(OUT)/kernels_$(p)/%.o))
TESTS   := $(sort $(wildcard tests/test_*.c))
TEST_OBJECTS := $(TESTS:tests/%.c=$(OUT)/tests/%.o) $(OUT)/tests/main.o $(patsubst tests/%.c,$(OUT)/tests/%.o,$(wildcard tests/support*.c))

COMMANDS := $(shell sed -n 's/^ *COMMAND.\([a-z]*\),.*/\1/p' src/cli/commands.h)

.PHONY: all
all: bin/headwise

$(OUT)/headwise: $(OUT)/cli/main.o $(OUT)/libheadwise.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

bin/headwise: $(OUT)/headwise
	@mkdir -p bin
	cp -f $< $@.new && mv -f $@.new $@
	@for c in $(COMMANDS); do ln -sf headwise bin/$$c; done

$(OUT)/libheadwise.a: $(OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(OUT)/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

define kernel_rule
$(OUT)/kernels_$(1)/%.o: src/tensor/kernels/%.c
	@mkdir -p $$(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(1)) -c -o $$@ $$<
endef
$(foreach p,$(PATHS),$(eval $(call kernel_rule,$(p))))

# The list of suites is made from the files' names: tests/test_NAME.c defines Suite *test_NAME(void).
$(OUT)/tests/suites.h: $(TESTS) Makefile
	@mkdir -p $(@D)
	@for t in $(basename $(notdir $(TESTS))); do echo "SUITE($$t)"; done > $@

$(OUT)/tests/%.o: tests/%.c $(OUT)/tests/suites.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests -I$(OUT)/tests $(shell pkg-config --cflags check) $(CFLAGS) -c -o $@ $<

$(OUT)/tests/run: $(TEST_OBJECTS) $(OUT)/libheadwise.a
	$(CC) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs check) $(LDLIBS)

.PHONY: check check-one sanitize clean
check: all
	@$(MAKE) --no-print-directory check-one REAL=double
	@$(MAKE) --no-print-directory check-one REAL=float

check-one: $(OUT)/tests/run
	$(OUT)/tests/run $(SUITE)

sanitize:
	@$(MAKE) --no-print-directory check-one REAL=float VARIANT=-sanitize OPT="-O1 -g" \
	    EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

clean:
	rm -rf build bin

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(OUT)/cli/main.d
.SECONDARY:
