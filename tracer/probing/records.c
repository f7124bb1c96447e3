// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/clock_inline.h"
#include "tracer/probe/show.h"
#include "tracer/probing/inside.h"

static const uint64_t patience_ns = 1000000000; // with a thread that has taken a slot: it may have been killed

static void show_text(struct probing *probing, const char *text, size_t size)
{
    if (probing->options.every_ns)
        probing_track_line(&probing->track, text, size);
    if (probing->options.form != PROBING_JSON) {
        fwrite(text, 1, size, probing->running);
        return;
    }
    struct base_json json = {.stream = probing->options.out};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "printf", text);
    base_json_close(&json, '}');
    fputc('\n', probing->options.out);
}

void probing_show_record(struct probing *probing, uint32_t record, const uint64_t *words)
{
    struct probe_stacks *stacks = &probing->noted.stacks;
    if (probing->options.form != PROBING_JSON && !probing->options.every_ns) {
        probe_show_record(probing->running, probing->options.script, record, words, stacks);
        return;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory) {
        probe_show_record(memory, probing->options.script, record, words, stacks);
        probing->has_failed |= fclose(memory) != 0;
        show_text(probing, text ? text : "", text ? size : 0);
    }
    probing->has_failed |= !memory;
    free(text);
}

enum taken { TAKEN, TAKEN_NOT_YET, TAKEN_STRANGE };

static enum taken take(struct probing *probing)
{
    uint64_t words[QUT_PROBE_LIVE_SLOT_WORDS_MAX];
    const struct qut_probe_live *laid_out = &probing->laid_out;
    const uint64_t *slot = probing->slots + (probing->tail & (laid_out->slot_count - 1)) * laid_out->slot_words;
    const uint64_t mark = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    const uint32_t record = (uint32_t)(mark & ((1 << QUT_PROBE_LIVE_RECORD_BITS) - 1));
    if (mark != qut_probe_live_mark(probing->tail, record))
        return TAKEN_NOT_YET;
    if (record >= probing->image.header->record_count)
        return TAKEN_STRANGE;
    for (uint32_t i = 1; i < laid_out->slot_words; i++)
        words[i] = __atomic_load_n(slot + i, __ATOMIC_RELAXED);
    probing_show_record(probing, record, words + 1);
    return TAKEN;
}

// Whether the one at the tail is given up.
static bool is_stuck(struct probing *probing)
{
    const uint64_t now_ns = base_clock_now_ns();
    if (!probing->stuck_ns)
        probing->stuck_ns = now_ns;
    return now_ns - probing->stuck_ns >= patience_ns;
}

void probing_drain(struct probing *probing)
{
    const uint64_t head = __atomic_load_n(&probing->live->head, __ATOMIC_ACQUIRE);
    uint64_t left = head - probing->tail;
    if (left > probing->laid_out.slot_count) // somebody has written there
        left = 0;
    for (; left > 0; left--) {
        const enum taken taken = take(probing);
        if (taken == TAKEN_NOT_YET && !is_stuck(probing))
            return;
        probing->skipped += taken != TAKEN;
        probing->stuck_ns = 0;
        probing->tail++;
        __atomic_store_n(&probing->live->tail, probing->tail, __ATOMIC_RELEASE);
    }
}
