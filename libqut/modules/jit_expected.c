// SPDX-License-Identifier: Apache-2.0
// GDB's layout, confirmed by one system call a walk: entries and symbol files of the code that the thread's last walk
// met, and of the first that this one meets, are read side by side. Code that is met beside these takes one more each.
//
// Only the outermost walk of a registered thread has memory for that.
#include <stddef.h>

#include "libqut/modules/jit_confirm.h"

#define ON_ITS_OWN __attribute__((noinline))

enum { CODES_MAX = 8 };

struct expected {
    uint32_t source_number; // of all of them
    uint32_t round;         // of asking; 0: never
    uint32_t count;
    struct expected_code {
        const struct modules_jit_code *code;
        uint64_t previous; // of its entry, when that was read last: what is registered before it changes that
        bool is_known;     // in this round, whether
        bool holds;
        bool is_met; // by the walk of this round
    } codes[CODES_MAX];
    // What is read, and where the parts of a code end.
    struct os_part parts[CODES_MAX * MODULES_JIT_CODE_PARTS_MAX];
    unsigned ends[CODES_MAX];
    uint8_t bytes[RUNTIME_JIT_BYTES];
};
static_assert(sizeof(struct expected) <= sizeof((struct runtime_thread *)0)->jit, "it has its place there");

static size_t bytes_of(const struct os_part *parts, unsigned count)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        bytes += parts[i].size;
    return bytes;
}

// Reads what is not known yet, from `at` on and as much as fits.
ON_ITS_OWN static void ask(struct expected *e, const struct modules_jit_source *source, unsigned at)
{
    unsigned part_count = 0, last = at;
    size_t wanted = 0;
    for (; last < e->count; last++) {
        struct os_part *parts = e->parts + part_count;
        unsigned count = modules_jit_code_parts(source, e->codes[last].code, e->codes[last].previous, parts);
        size_t bytes = bytes_of(parts, count);
        if (count == 0 || bytes > sizeof e->bytes - wanted)
            break;
        part_count += count;
        wanted += bytes;
        e->ends[last] = part_count;
    }
    if (part_count == 0)
        return;
    size_t got = os_read_parts(e->parts, part_count, e->bytes), done = 0;
    for (unsigned i = at, part = 0; i < last; part = e->ends[i], i++) {
        size_t bytes = bytes_of(e->parts + part, e->ends[i] - part);
        if (bytes > got - done)
            break; // this one cannot be read; whether those behind it can is not known
        struct expected_code *code = &e->codes[i];
        code->is_known = true;
        code->holds = modules_jit_parts_hold(source, code->code, &code->previous, e->parts + part, e->ends[i] - part,
                                             e->bytes + done);
        done += bytes;
    }
}

// What the walk of the last round met, behind the first of this one.
static void begin_round(struct expected *e, const struct modules_jit_source *source,
                        const struct modules_jit_code *first)
{
    uint32_t last_count = e->source_number == source->number ? e->count : 0, count = 0;
    uint64_t previous = first->entry.previous;
    for (uint32_t i = 0; i < last_count; i++) {
        if (e->codes[i].code == first)
            previous = e->codes[i].previous;
        else if (e->codes[i].is_met)
            e->codes[count++] = (struct expected_code){.code = e->codes[i].code, .previous = e->codes[i].previous};
    }
    count = count < CODES_MAX ? count : CODES_MAX - 1;
    // The first is read first: it is there.
    if (count)
        e->codes[count] = e->codes[0];
    e->codes[0] = (struct expected_code){.code = first, .previous = previous};
    count++;
    e->count = count;
    e->source_number = source->number;
    e->round += e->round + 1 ? 1 : 2;
}

static struct expected_code *find(struct expected *e, const struct modules_jit_code *code)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (e->codes[i].code == code)
            return &e->codes[i];
    return NULL;
}

bool modules_jit_expected_holds(struct runtime_thread *thread, const struct modules_jit_source *source,
                                const struct modules_jit_code *code, struct modules_jit_asked *asked)
{
    struct expected *e = (struct expected *)(void *)thread->jit;
    if (asked->source_number != source->number || asked->round != e->round || e->source_number != source->number) {
        begin_round(e, source, code);
        asked->source_number = source->number;
        asked->round = e->round;
    }
    struct expected_code *found = find(e, code);
    if (!found) { // where there is no room for it, in place of the last
        found = &e->codes[e->count < CODES_MAX ? e->count++ : CODES_MAX - 1];
        *found = (struct expected_code){.code = code, .previous = code->entry.previous};
    }
    found->is_met = true;
    if (!found->is_known)
        ask(e, source, (unsigned)(found - e->codes));
    // It takes more memory than there is, or the list has changed around it.
    return (found->is_known && found->holds) || modules_jit_code_holds(source, code);
}
