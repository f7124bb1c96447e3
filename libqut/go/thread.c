// SPDX-License-Identifier: Apache-2.0
// From a thread's pointer to its records.
#include "libqut/go/go.h"

#include <string.h>

enum {
    RECORD_BYTES = 256,        // of a g or an m: all fields that are read lie in them
    TLS_WORDS = 32,            // below the thread's pointer, where programs with C code may have other variables
    STACK_BYTES_MAX = 1 << 30, // Go's own limit of a goroutine's
    // What is looked at of a sleeper's stack: netpoll's room for what epoll_wait tells is 1,536 bytes of it.
    SOUGHT_BYTES = 6144,
    SOUGHT_WORDS = 512 / 8, // ... at a time
    LOWEST = 1 << 16,       // no record lies below
    TRIED_MAX = 128,
};

static uint64_t word_at(const uint8_t *record, unsigned offset)
{
    uint64_t word;
    memcpy(&word, record + offset, sizeof word);
    return word;
}

static bool read_record(const struct elf_art_memory *memory, uint64_t address, uint8_t record[RECORD_BYTES])
{
    return address && address % 8 == 0 && elf_art_read(memory, address, record, RECORD_BYTES);
}

// The stack of a g that belongs to m. False: it is not one.
static bool take_g(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t g, uint64_t m,
                   struct go_stack *stack, uint64_t *sched_sp, uint64_t *sched_pc)
{
    uint8_t record[RECORD_BYTES];
    if (!read_record(memory, g, record) || word_at(record, layout->g_m) != m)
        return false;
    *stack = (struct go_stack){word_at(record, 0), word_at(record, 8)};
    *sched_sp = word_at(record, layout->g_sched);
    *sched_pc = word_at(record, layout->g_sched + 8u);
    return stack->low < stack->high && stack->high - stack->low <= STACK_BYTES_MAX;
}

static bool take_thread(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t g,
                        struct go_thread *thread)
{
    uint8_t record[RECORD_BYTES], m_record[RECORD_BYTES];
    uint64_t unused_sp, unused_pc;
    *thread = (struct go_thread){0};
    if (!read_record(memory, g, record))
        return false;
    uint64_t m = word_at(record, layout->g_m);
    if (!read_record(memory, m, m_record))
        return false;
    uint64_t g0 = word_at(m_record, 0), gsignal = word_at(m_record, layout->m_gsignal);
    uint64_t curg = word_at(m_record, layout->m_curg);
    if ((g != g0 && g != gsignal && g != curg) ||
        !take_g(memory, layout, g0, m, &thread->system, &thread->system_sp, &unused_pc))
        return false;
    if (gsignal && !take_g(memory, layout, gsignal, m, &thread->signal, &unused_sp, &unused_pc))
        thread->signal = (struct go_stack){0};
    // One that is being given up, or taken, belongs to no thread for a moment: this one runs none.
    uint64_t owner;
    if (curg && elf_art_read(memory, curg + layout->g_m, &owner, sizeof owner) && owner == 0)
        curg = 0;
    if (curg && !take_g(memory, layout, curg, m, &thread->user, &thread->user_sp, &thread->user_pc))
        return false;
    thread->curg = curg;
    thread->is_known = true;
    return true;
}

bool go_thread_read(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t thread_pointer,
                    struct go_thread *thread)
{
    uint64_t words[TLS_WORDS];
    *thread = (struct go_thread){0};
    if (!layout->is_known || thread_pointer % 8 || thread_pointer < sizeof words)
        return false;
    // The nearest, in programs without variables of C code.
    uint64_t g;
    if (elf_art_read(memory, thread_pointer - 8, &g, sizeof g) && take_thread(memory, layout, g, thread))
        return true;
    if (!elf_art_read(memory, thread_pointer - sizeof words, words, sizeof words))
        return false;
    for (unsigned i = TLS_WORDS - 1; i-- > 0;)
        if (words[i] && take_thread(memory, layout, words[i], thread))
            return true;
    *thread = (struct go_thread){.has_none = words[TLS_WORDS - 1] == 0};
    return false;
}

// Whether g belongs to the thread with that number, and sp is on one of its stacks.
static bool take_of_tid(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t g, uint32_t tid,
                        uint64_t sp, struct go_thread *thread)
{
    uint64_t m, number;
    return elf_art_read(memory, g + layout->g_m, &m, sizeof m) && m &&
           elf_art_read(memory, m + layout->m_procid, &number, sizeof number) && number == tid &&
           take_thread(memory, layout, g, thread) &&
           (go_is_on(&thread->system, sp) || go_is_on(&thread->user, sp) || go_is_on(&thread->signal, sp));
}

// The g that a word leads to: it names one, or an m.
static bool find_by_word(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t word,
                         uint32_t tid, uint64_t sp, uint64_t *g, struct go_thread *thread)
{
    uint8_t record[RECORD_BYTES];
    if (!read_record(memory, word, record))
        return false;
    *g = word_at(record, layout->m_procid) == tid ? word_at(record, 0) : word;
    return take_of_tid(memory, layout, *g, tid, sp, thread);
}

bool go_thread_find(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t sp, uint32_t tid,
                    uint64_t *g, struct go_thread *thread)
{
    *thread = (struct go_thread){0};
    if (!layout->is_known || sp % 8 || tid == 0)
        return false;
    if (*g && take_of_tid(memory, layout, *g, tid, sp, thread))
        return true;
    unsigned tried = 0;
    for (uint64_t at = sp; at < sp + SOUGHT_BYTES && tried < TRIED_MAX; at += SOUGHT_WORDS * 8) {
        uint64_t words[SOUGHT_WORDS], last = 0;
        if (!elf_art_read(memory, at, words, sizeof words))
            break;
        for (unsigned i = 0; i < SOUGHT_WORDS && tried < TRIED_MAX; last = words[i++]) {
            bool is_own = words[i] - sp < SOUGHT_BYTES || words[i] == last;
            if (words[i] % 8 || words[i] < LOWEST || words[i] >> 47 || is_own)
                continue;
            tried++;
            if (find_by_word(memory, layout, words[i], tid, sp, g, thread))
                return true;
        }
    }
    *g = 0;
    *thread = (struct go_thread){0};
    return false;
}
