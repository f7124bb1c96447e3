// SPDX-License-Identifier: Apache-2.0
#include "libqut/functions/functions.h"

bool functions_put(struct functions_putting *putting, uint64_t pc, uint32_t flags)
{
    struct walk_noted_walk *notes = putting->notes;
    putting->is_cut = putting->is_cut || putting->count == notes->max;
    if (putting->is_cut)
        return false;
    notes->pcs[putting->count] = (uintptr_t)pc;
    notes->flags[putting->count++] = (uint8_t)flags;
    return true;
}

size_t functions_put_all(struct functions_putting *putting)
{
    struct walk_noted_walk *notes = putting->notes;
    notes->noted_count = putting->count;
    if (putting->is_cut) {
        notes->end.reason = QUT_END_LIMIT;
        notes->end.pc = notes->pcs[putting->count - 1];
    }
    return putting->count;
}
