// SPDX-License-Identifier: Apache-2.0
// Makes the seeds of every target: small inputs that are sound, or spoiled in one way that no change finds. What takes
// them is the caller's: make_seeds writes them, a test reads each at once.
#ifndef TESTS_PROOF_FUZZ_SEEDS_SEEDS_H
#define TESTS_PROOF_FUZZ_SEEDS_SEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include "libqut/arch/arch.h"

// The caller's. A first byte that is not negative goes before the others.
void write_seed(const char *target, const char *name, int first_byte, const void *bytes, size_t size);

void all_seeds(void);

void frame_seeds(const struct arch *arch);
void jit_seeds(const struct arch *arch);
void trace_seeds(void);
void call_seeds(void);
void agent_seeds(void);
void probe_seeds(void);
void target_seeds(const struct arch *arch);
void name_seeds(const struct arch *arch);

// build_elf writes no links between sections: `section` is linked to `link`. Sections count from 1.
struct build_buffer;
void seeds_link_section(struct build_buffer *file, bool is_64, unsigned section, unsigned link);

// FOLDER/TARGET.dict, in libFuzzer's form: the words that the formats' headers have. Ends the program on failure.
void write_dictionaries(const char *folder);

#endif
