// SPDX-License-Identifier: Apache-2.0
// elfutils: a row is asked for by its pc, and evaluated from the start of its function.
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "bench/compile/contestants.h"
#include "bench/measure.h"
#include "qutc/check/cfi_walk.h"

// What a rule of ours says: the CFA, the return address, the tracked registers.
static bool take_facts(const struct arch *arch, Dwarf_Frame *frame)
{
    Dwarf_Op *ops, place[3];
    size_t count;
    bool known = dwarf_frame_cfa(frame, &ops, &count) == 0 &&
                 dwarf_frame_register(frame, arch->ra_reg, place, &ops, &count) == 0;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        known = dwarf_frame_register(frame, arch->tracked[slot], place, &ops, &count) == 0 && known;
    return known;
}

static int run(const struct bench_subject *subject, bool with_facts, uint64_t *rows, uint64_t *end_ns)
{
    Dwarf_CFI *cfi = dwarf_getcfi_elf(subject->elf);
    if (!cfi)
        return -1;
    *rows = 0;
    for (size_t i = 0; i < subject->row_count; i++) {
        Dwarf_Frame *frame;
        if (dwarf_cfi_addrframe(cfi, subject->row_starts[i], &frame) != 0)
            continue;
        *rows += !with_facts || take_facts(subject->image->arch, frame);
        free(frame);
    }
    *end_ns = bench_now_ns();
    dwarf_cfi_end(cfi);
    return 0;
}

int bench_run_libdw(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    return run(subject, false, rows, end_ns);
}

int bench_run_libdw_facts(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    return run(subject, true, rows, end_ns);
}

static int collect(Dwarf_CFI *cfi, const struct check_walk_index *functions, struct bench_subject *subject)
{
    size_t capacity = 0;
    for (size_t i = 0; i < functions->fdes.count; i++) {
        for (Dwarf_Addr pc = functions->fdes.items[i].start; pc < functions->fdes.items[i].end;) {
            Dwarf_Frame *frame;
            Dwarf_Addr start, end;
            if (dwarf_cfi_addrframe(cfi, pc, &frame) != 0)
                break;
            dwarf_frame_info(frame, &start, &end, NULL);
            free(frame);
            if (subject->row_count == capacity) {
                capacity = capacity ? 2 * capacity : 4096;
                uint64_t *grown = realloc(subject->row_starts, capacity * sizeof *grown);
                if (!grown)
                    return -1;
                subject->row_starts = grown;
            }
            subject->row_starts[subject->row_count++] = pc;
            if (end <= pc)
                break;
            pc = end;
        }
    }
    return 0;
}

int bench_libdw_rows(struct bench_subject *subject, struct base_error *error)
{
    struct check_walk_index functions = {0};
    if (check_walk_section(subject->image, subject->eh_frame, &functions, error) != 0)
        return -1;
    Dwarf_CFI *cfi = dwarf_getcfi_elf(subject->elf);
    int result = -1;
    if (!cfi)
        base_fail(error, BASE_ERR_MALFORMED, ".eh_frame", 0, "libdw: cannot open it");
    else if ((result = collect(cfi, &functions, subject)) != 0)
        base_fail(error, BASE_ERR_NO_MEMORY, ".eh_frame", 0, "starts of rows");
    if (cfi)
        dwarf_cfi_end(cfi);
    check_walk_free(&functions);
    return result;
}
