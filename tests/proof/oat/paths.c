// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oat/paths.h"

#include <stdlib.h>

struct work {
    uint32_t *at; // instructions to go on from
    size_t count;
    int32_t *cfa_bytes;
    size_t code_bytes;
};

static bool reach(struct work *work, int64_t at, int32_t cfa_bytes)
{
    if (at < 0 || (uint64_t)at >= work->code_bytes)
        return true; // another method's or a thunk's
    if (work->cfa_bytes[at] != PATHS_NOT_REACHED)
        return work->cfa_bytes[at] == cfa_bytes;
    work->cfa_bytes[at] = cfa_bytes;
    work->at[work->count++] = (uint32_t)at;
    return true;
}

bool paths_follow(const struct arch *arch, struct base_bytes code, int32_t *cfa_bytes)
{
    cfi_oat_read_fn read = cfi_oat_arch(arch)->read;
    struct work work = {
        .at = malloc((code.size + 1) * sizeof *work.at), .cfa_bytes = cfa_bytes, .code_bytes = code.size};
    bool good = work.at != NULL;
    for (size_t i = 0; i < code.size; i++)
        cfa_bytes[i] = PATHS_NOT_REACHED;
    good = good && reach(&work, 0, arch->ra_in_register ? 0 : arch->word_bytes);
    while (good && work.count) {
        uint32_t at = work.at[--work.count];
        struct art_instruction in;
        cfi_oat_read(read, (struct base_bytes){code.data + at, code.size - at}, &in);
        int32_t after = cfa_bytes[at] - in.sp_change_bytes;
        if (in.size_bytes == 0 || in.effect == ART_SP_LOST)
            continue; // data, behind a call that does not return
        if (in.branches)
            good = reach(&work, (int64_t)at + in.branch_bytes, after);
        if (good && in.effect != ART_RETURN && in.effect != ART_LEAVES)
            good = reach(&work, (int64_t)at + in.size_bytes, after);
    }
    free(work.at);
    return good;
}
