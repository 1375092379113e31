# SPDX-License-Identifier: Apache-2.0
# make            the programs, in build/
# make demo       the fixture repository's tests, in a sandbox     make check   every test
# make image      the default image                                make arch    are the layers kept?
# make bench      beside other runtimes, into docs/performance.md   make check-vm   those that cgroup v2 concerns, under it
# make check-oci  what the OCI runtime-spec demands; RUNTIME=PATH asks another runtime
# make lint       clang-tidy, cppcheck, -fanalyzer, clang-format   make [un]install DESTDIR= PREFIX=
# SANITIZE=1 builds with ASan and UBSan in build-asan/; CC=clang builds with clang in build-clang/. V=1 shows commands.
# make fuzz       looks for inputs that break a parser, FUZZ_SECONDS=60 each; those found before are part of check
# UNSAFE=1 builds in build-unsafe/ what can leave walls out, so that tests can show what each of them stops.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(patsubst $(BUILD)/%,%,$@))
.PHONY: all demo check check-vm bench unit-tests check-unit check-cli escape-tests check-escape check-oci image arch lint install uninstall clean deps-build deps-demo deps-test deps-bench deps-fuzz deps-qemu deps-engines

ifeq ($(origin CC),default)
CC := gcc
endif
BUILD   ?= build$(if $(SANITIZE),-asan)$(if $(UNSAFE),-unsafe)$(if $(findstring clang,$(CC)),-clang)
PREFIX  ?= /usr/local
VERSION := 0.1.0

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef \
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wimplicit-fallthrough
STD  := -std=gnu17 -I. -I$(BUILD)/gen -D_GNU_SOURCE -DAGENTDOCK_VERSION='"$(VERSION)"'
OPT  ?= -O2 -g
ifdef SANITIZE
HARDEN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LINK   := $(HARDEN)
else
# Static: a dynamic loader would cost each launch more than a millisecond.
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffunction-sections -fdata-sections
LINK   := -static -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,-z,noexecstack
endif
# only the tar reader and four filters are asked for by name, so nothing else of libarchive is linked
ARCHIVE_LIBS := -larchive -lz -lbz2 -llzma -lzstd
# no path of this machine in the programs
CFLAGS := $(STD) $(WARN) $(OPT) $(HARDEN) $(if $(UNSAFE),-DAGENTDOCK_UNSAFE) -ffile-prefix-map=$(CURDIR)=. $(EXTRA_CFLAGS)

# ---- what belongs to what ----
LAYERS    := base seccomp rootfs runtime/cgroup runtime/identity runtime/network fleet runtime oci
MAINS     := seccomp/compile_main.c seccomp/names_main.c
layer_src  = $(filter-out $(MAINS),$(wildcard $(1)/*.c) $(wildcard $(1)/*.S))
LIB_SRC   := $(foreach l,$(LAYERS),$(call layer_src,$(l)))
CLI_SRC   := $(wildcard cli/*.c)
# verbs/launch.c is the entry of the program, before libc is there; a sanitizer can't do without libc
OCI_SRC   := $(filter-out $(if $(SANITIZE),verbs/launch.c),$(wildcard verbs/*.[cS] container/*.c))
ARC_SRC   := $(wildcard archive/*.c)
UNIT_SRC  := $(wildcard tests/unit/*.c)
obj        = $(patsubst %,$(BUILD)/obj/%.o,$(1))
LIB       := $(BUILD)/libagentdock.a
PROGRAMS  := $(addprefix $(BUILD)/,agentdock agentdock-archive agentdock-init agentdock-probes agentdock-runtime)
UNIT_BIN  := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))

all: $(PROGRAMS)

$(BUILD)/obj/%.c.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/%.S.o: %.S Makefile $(BUILD)/agentdock-init
	@mkdir -p $(@D)
	$(call say,AS)
	$(Q)$(CC) -I. -I$(BUILD) -c -o $@ $<
$(LIB): $(call obj,$(LIB_SRC))
	@rm -f $@
	$(call say,AR)
	$(Q)ar rcs $@ $^

# pid 1 of a sandbox: freestanding, so that an exec of it costs next to nothing; embedded in the others
$(BUILD)/agentdock-init: init/init.c init/protocol.h init/system_call.h Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu17 -I. $(WARN) -Os -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
		-fno-pie -static -nostdlib -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro \
		-Wl,-z,noseparate-code -s -o $@ $<

# the built-in profile, compiled to BPF by the same code that compiles an operator's own
POLICY_OBJ := $(call obj,$(filter-out seccomp/default.c seccomp/names.c seccomp/profile%,$(call layer_src,seccomp)) seccomp/compile_main.c $(call layer_src,base))
$(BUILD)/seccomp-compile: $(POLICY_OBJ)
	$(call say,LINK)
	$(Q)$(CC) $(LINK) -o $@ $^ -lseccomp -ljson-c -lnettle
$(BUILD)/gen/seccomp_default.inc: seccomp/profiles/default.json $(BUILD)/seccomp-compile
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$(BUILD)/seccomp-compile $< >$@
$(BUILD)/obj/seccomp/default.c.o: $(BUILD)/gen/seccomp_default.inc

# system calls' names and numbers, of this machine's architectures
$(BUILD)/seccomp-names: $(call obj,seccomp/calls.c seccomp/names_main.c)
	$(call say,LINK)
	$(Q)$(CC) $(LINK) -o $@ $^ -lseccomp
$(BUILD)/gen/seccomp_names.inc: $(BUILD)/seccomp-names
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$< >$@
$(BUILD)/obj/seccomp/names.c.o: $(BUILD)/gen/seccomp_names.inc

$(BUILD)/agentdock: $(call obj,$(CLI_SRC)) $(LIB)
	$(call say,LINK)
	$(Q)$(CC) $(LINK) -o $@ $^ -lseccomp -lcap -ljson-c -lnettle
$(BUILD)/obj/verbs/spec_text.S.o: verbs/spec.json
$(BUILD)/obj/verbs/launch.c.o: CFLAGS += -ffreestanding -fno-stack-protector -U_FORTIFY_SOURCE
$(BUILD)/agentdock-runtime: $(call obj,$(OCI_SRC)) $(LIB)
	$(call say,LINK)
	$(Q)$(CC) $(LINK) $(if $(SANITIZE),,-Wl,-e,launch_start) -o $@ $^ -lseccomp -lcap -ljson-c -lnettle -lm
$(BUILD)/agentdock-archive: $(call obj,$(ARC_SRC)) $(LIB)
	$(call say,LINK)
	$(Q)$(CC) $(LINK) -o $@ $^ -lseccomp -lcap -ljson-c -lnettle $(ARCHIVE_LIBS)

# the attacks of agentdock audit: executed on roots without a library, so static and without a sanitizer in every build
PROBE_SRC ?= $(wildcard tests/escape/*.c)
PROBE_OBJ := $(patsubst %,$(BUILD)/obj/probes/%.o,$(PROBE_SRC) $(wildcard base/*.c))
$(BUILD)/obj/probes/%.c.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(filter-out $(HARDEN),$(CFLAGS)) -ffunction-sections -fdata-sections -MMD -MP -c -o $@ $<
$(BUILD)/agentdock-probes: $(PROBE_OBJ)
	$(call say,LINK)
	$(Q)$(CC) -static -Wl,--gc-sections -o $@ $^ -lseccomp -lcap -ljson-c -lnettle

# container/ is of the program, not of the library
$(BUILD)/tests/test_group: $(call obj,$(filter-out %_rows.c,$(wildcard container/group*.c) container/systemd_bus.c))
$(BUILD)/tests/test_systemd_bus: $(call obj,container/systemd_bus.c)
$(BUILD)/tests/test_mount_options: $(call obj,container/mount_options.c)
$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.c.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(filter-out -static,$(LINK)) -o $@ $(filter %.o,$^) $(LIB) -lcmocka -lseccomp -lcap -ljson-c -lnettle -lm

-include $(wildcard $(BUILD)/obj/*/*.d $(BUILD)/obj/*/*/*.d $(BUILD)/obj/probes/*/*/*.d)

deps-build deps-demo deps-test deps-bench deps-fuzz deps-qemu deps-engines: deps-%:
	@packaging/debian-packages $*

# ---- use ----
image: deps-demo
	@$(MAKE) -s all
	@packaging/default-image $(BUILD)/agentdock
demo: image
	@$(BUILD)/agentdock run --fixture -- python3 -m pytest -q

INTO := $(DESTDIR)$(PREFIX)
MAN1 := $(wildcard docs/man/*.1)
MAN8 := $(wildcard docs/man/*.8)
install: all
	install -s -D -m 0755 -t $(INTO)/bin $(BUILD)/agentdock $(BUILD)/agentdock-runtime
	install -s -D -m 0755 -t $(INTO)/libexec/agentdock $(BUILD)/agentdock-archive $(BUILD)/agentdock-probes
	install -D -m 0644 -t $(INTO)/share/man/man1 $(MAN1)
	install -D -m 0644 -t $(INTO)/share/man/man8 $(MAN8)
	find fixtures/sample-repo -type f ! -path '*/__pycache__/*' ! -path '*/.pytest_cache/*' -print0 | \
		xargs -0 -I{} install -D -m 0644 {} $(INTO)/libexec/agentdock/{}
uninstall:
	rm -f $(INTO)/bin/agentdock $(INTO)/bin/agentdock-runtime \
		$(patsubst docs/man/%,$(INTO)/share/man/man1/%,$(MAN1)) $(patsubst docs/man/%,$(INTO)/share/man/man8/%,$(MAN8))
	rm -rf $(INTO)/libexec/agentdock

# ---- proof ----
arch:
	@tests/arch
check: deps-test deps-engines
	@tests/check
# VM=qemu: in an emulated PC, which takes some four times as long
check-vm: image deps-test $(if $(filter qemu,$(VM)),deps-qemu) unit-tests
	@$(MAKE) -s BUILD=build-unsafe UNSAFE=1 all
	@VM=$(VM) AGENTDOCK_BUILD=$(BUILD) tests/vm/check
unit-tests: $(UNIT_BIN)
check-unit: unit-tests $(BUILD)/agentdock-archive
	@set -e; for t in $(UNIT_BIN); do $$t; done
check-cli: all
	@$(MAKE) -s BUILD=build-unsafe UNSAFE=1 all
	@bats tests/cli
# two tests for each attack: it is held, and it works where its wall is left out, which is the same in every build
escape-tests: $(BUILD)/tests/escape.bats
$(BUILD)/tests/escape.bats: tests/escape/generate $(BUILD)/agentdock-probes
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$^ $(if $(SANITIZE),held) >$@
check-escape: all escape-tests
	@$(MAKE) -s BUILD=build-unsafe UNSAFE=1 all
	@AGENTDOCK_BUILD=$(BUILD) bats $(BUILD)/tests/escape.bats
# what the runtime-spec demands, sentence by sentence; any runtime's
check-oci: $(if $(RUNTIME),,all)
	@RUNTIME=$(RUNTIME) AGENTDOCK_BUILD=$(BUILD) tests/oci/check
bench: deps-bench
	@$(MAKE) -s all $(addprefix $(BUILD)/bench/,floor spawn verbs library)
	@tests/bench/bench.py
$(BUILD)/bench/library: tests/bench/library.c $(LIB)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $^ -lseccomp -lcap -ljson-c -lnettle
# small and static, as the programs are
$(BUILD)/bench/%: tests/bench/%.c $(BUILD)/gen/seccomp_default.inc Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $<
include tests/fuzz/fuzz.mk
lint:
	@tests/lint
clean:
	rm -rf build build-asan build-clang build-unsafe build-lint build-fuzz
