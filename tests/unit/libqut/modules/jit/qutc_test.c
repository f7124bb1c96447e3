// SPDX-License-Identifier: Apache-2.0
// libqutc makes the tables of symbol files that are registered in this process, in the forms in which Android's runtime
// has them.
#include <lzma.h>

#include <qutc/provide.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/modules/jit/player.h"

enum { METHODS = 16 };

static struct owner owner;
static struct player player;
static struct code_method methods[METHODS];

static void make(unsigned first_size)
{
    for (unsigned i = 0; i < METHODS; i++)
        methods[i] = code_emit(i, first_size + 3 * i);
}

static void all_are_crossed(const char *when)
{
    qut_refresh();
    for (unsigned slot = 0; slot < METHODS; slot++) {
        enum verdict verdict = player_walk(&player, slot);
        CHECK(verdict == CROSSED, "layout %d, %s, slot %u: %d; %s", owner.layout, when, slot, verdict,
              player_text(&player));
    }
    struct qut_stats stats;
    qut_get_stats(&stats, sizeof stats);
    CHECK(stats.jit_no_table == 0 && stats.jit_pending == 0, "%s: %llu without table", when,
          (unsigned long long)stats.jit_no_table);
}

static void files_are_packed(void)
{
    static uint8_t single[METHODS][CODE_SYMFILE_BYTES_MAX], group[CODE_SYMFILE_BYTES_MAX];
    static uint8_t packed[CODE_SYMFILE_BYTES_MAX], outer[CODE_SYMFILE_BYTES_MAX];
    struct jit_entry *entries[METHODS];
    make(2);
    for (unsigned i = 0; i < METHODS; i++)
        entries[i] = owner_add(&owner, single[i], code_symfile(&methods[i], 1, single[i]));
    all_are_crossed("a file each");

    size_t group_bytes = code_symfile(methods, METHODS, group), packed_bytes = 0;
    struct jit_entry *entry = owner_add(&owner, group, group_bytes);
    for (unsigned i = 0; i < METHODS; i++)
        owner_remove(&owner, entries[i]);
    all_are_crossed("one file");

    lzma_ret result =
        lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, group, group_bytes, packed, &packed_bytes, sizeof packed);
    if (!CHECK(result == LZMA_OK, "lzma: %d", result))
        return;
    owner_add(&owner, outer, code_packed_symfile(methods, METHODS, packed, packed_bytes, outer));
    owner_remove(&owner, entry);
    all_are_crossed("compressed");

    // All of it goes, and other code has its place.
    owner_clear(&owner);
    make(5);
    owner_add(&owner, group, code_symfile(methods, METHODS, group));
    all_are_crossed("other code");
}

int main(void)
{
    struct qut_options options = {.size = sizeof options, .compile = player_compile, .flags = QUT_START_NO_THREAD};
    player_compile_jit = qutc_compile_for_qut;
    if (!code_start() || qut_start(&options) != 0)
        return 1;
    for (unsigned layout = 0; layout < 3; layout++) {
        owner_load(&owner, (enum art_jit_layout)layout);
        if (!owner.descriptor)
            return 1;
        tap_run("files are packed", files_are_packed);
        owner_unload(&owner);
    }
    qut_stop();
    return tap_finish();
}
