# SPDX-License-Identifier: Apache-2.0
# Harnesses of tests/fuzz, included by the Makefile. A harness NAME is fuzz_NAME.c; what it links beside the library is
# said here. FUZZ=1 (what `make fuzz` sets, with CC=clang SANITIZE=1) links libFuzzer, else replay.c.
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN   := $(addprefix $(BUILD)/fuzz/,$(FUZZ_NAMES))
FUZZ_MAIN  := $(if $(FUZZ),,$(call obj,tests/fuzz/replay.c))

.PHONY: fuzz fuzz-programs
fuzz: deps-fuzz
	@tests/fuzz/run
fuzz-programs: $(FUZZ_BIN)

$(BUILD)/fuzz/options: $(call obj,$(filter-out cli/main.c,$(CLI_SRC)))
$(BUILD)/fuzz/pack $(BUILD)/fuzz/plan $(BUILD)/fuzz/unpack: $(call obj,$(filter-out archive/main.c,$(ARC_SRC)))
$(BUILD)/fuzz/pack $(BUILD)/fuzz/plan $(BUILD)/fuzz/unpack: FUZZ_LIBS := $(ARCHIVE_LIBS)
$(BUILD)/fuzz/oci_parts: $(call obj,$(filter-out %_rows.c,$(wildcard container/group*.c)) container/systemd_bus.c container/mount_options.c)
$(BUILD)/fuzz/oci_parts: FUZZ_LIBS := -lm
# notifications come from the harness
$(BUILD)/fuzz/channel: FUZZ_LIBS := -Wl,--wrap=ioctl
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/fuzz_%.c.o $(call obj,tests/fuzz/fuzz.c) $(FUZZ_MAIN) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(filter-out -static,$(LINK)) $(if $(FUZZ),-fsanitize=fuzzer) -o $@ \
		$(filter %.o,$^) $(LIB) -lseccomp -lcap -ljson-c -lnettle $(FUZZ_LIBS)
