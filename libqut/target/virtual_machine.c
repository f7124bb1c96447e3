// SPDX-License-Identifier: Apache-2.0
// What virtual machines of a target publish: code made at run time, dex files.
#include "libqut/target/target.h"

const void *qut_target_jit_symbols(struct qut_target *target, uint64_t address, size_t *size)
{
    (void)target;
    (void)address;
    *size = 0;
    return NULL;
}

bool qut_target_dex_at(struct qut_target *target, uint64_t dex_pc, uint64_t *start, uint64_t *size)
{
    (void)target;
    (void)dex_pc;
    *start = *size = 0;
    return false;
}
