// SPDX-License-Identifier: Apache-2.0
// Jumps through tables. Where the index has no bound, neither has the table: assemblers index by the trailing zeros of
// a width, and lay the tables of many functions out one behind the other. Such a table is read as far as its elements
// lead into the function; one of them that contradicts what is behind it (as a call may that does not come back) is
// none.
#include "qutc/code/inside.h"

// Of a width that is at least 4 the first two elements are before the table.
enum { ELEMENTS_MAX = 4096, BEFORE_FIRST_MAX = 4 };

static struct code_table_jump *jump_at(const struct code_walk *w, uint32_t pc)
{
    uint64_t hash = base_hash_word(0, pc);
    for (uint32_t step = 0, i; (i = base_hash_next(&w->jump_index, hash, &step)) != BASE_HASH_NONE;)
        if (w->jumps.items[i].pc == pc && !w->jumps.items[i].is_stale)
            return &w->jumps.items[i];
    return NULL;
}

static bool add_jump(struct code_walk *w, const struct code_table_jump *new)
{
    struct code_table_jump *jump = BASE_ADD(&w->jumps);
    if (!jump || !base_hash_add(&w->jump_index, base_hash_word(0, new->pc), (uint32_t)w->jumps.count - 1)) {
        w->no_memory = true;
        return false;
    }
    *jump = *new;
    return true;
}

static bool has_target(const struct code_walk *w, size_t first, uint32_t target)
{
    for (size_t i = first; i < w->targets.count; i++)
        if (w->targets.items[i] == target)
            return true;
    return false;
}

void code_scan_tables(struct code_walk *w)
{
    for (bool found = true; found && !w->no_memory;) {
        found = false;
        for (size_t i = 0; i < w->jumps.count; i++) {
            const struct code_table_jump *jump = &w->jumps.items[i];
            bool is_read = !jump->is_stale && w->f->marks[jump->pc] & CODE_MARK_INSTRUCTION;
            for (size_t k = jump->first; k < jump->end && is_read; k++) {
                if (w->f->marks[w->targets.items[k]] & CODE_MARK_LEADER)
                    continue;
                code_scan(w, w->targets.items[k]);
                found = true;
            }
        }
    }
}

static int64_t element(struct base_cursor *c, const struct code_table *table)
{
    uint64_t bits = base_read_uint(c, table->size_bytes);
    unsigned shift = 64 - 8u * table->size_bytes;
    return table->is_signed ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
}

// Where the function ends at most that has pc, as far as anything names functions.
static struct code_extent extent_of(const struct code_follower *f, uint32_t pc)
{
    struct code_extent extent = {.start = 0, .end = code_next_start(f, pc)};
    size_t low = 0, high = f->relocated.count;
    while (low < high) { // the first one behind pc
        size_t middle = low + (high - low) / 2;
        if (f->relocated.items[middle] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < f->relocated.count && f->relocated.items[low] < extent.end)
        extent.end = f->relocated.items[low];
    extent.start = low ? f->relocated.items[low - 1] : pc;
    uint32_t named = code_start_at_most(f, pc);
    if (named > extent.start || !low)
        extent.start = named;
    return extent;
}

static bool is_in(const struct code_extent *extent, uint32_t pc)
{
    return pc >= extent->start && pc < extent->end;
}

static bool is_left_out(const struct code_walk *w, uint32_t jump, uint32_t target)
{
    for (size_t i = 0; i < w->no_elements.count; i++)
        if (w->no_elements.items[i].jump == jump && w->no_elements.items[i].target == target)
            return true;
    return false;
}

static void read_again(const struct code_walk *w, uint32_t pc)
{
    struct code_table_jump *jump = jump_at(w, pc);
    if (jump)
        jump->is_stale = true;
}

static void leave_out(struct code_walk *w, const struct code_guess *guess, bool is_weak)
{
    struct code_guess *place = BASE_ADD(&w->no_elements);
    if (place)
        *place = (struct code_guess){guess->jump, guess->target, is_weak};
    read_again(w, guess->jump);
    w->no_memory |= !place;
    w->again = w->is_anew = true;
}

void code_leave_out_element(struct code_walk *w, const struct code_guess *guess)
{
    // What stood against another that is none may be one.
    size_t count = 0;
    for (size_t i = 0; i < w->no_elements.count; i++) {
        const struct code_guess *other = &w->no_elements.items[i];
        if (other->is_weak && other->target == guess->target)
            read_again(w, other->jump);
        else
            w->no_elements.items[count++] = *other;
    }
    w->no_elements.count = count;
    leave_out(w, guess, false);
}

bool code_leave_out_guess(struct code_walk *w, const struct code_value *a, const struct code_value *b,
                          const struct code_guess *new, const struct code_guess *old)
{
    if (a->kind != CODE_VALUE_ENTRY || b->kind != CODE_VALUE_ENTRY || code_value_same(a, b))
        return false;
    if (new->jump != UINT32_MAX)
        leave_out(w, new, old->jump != UINT32_MAX);
    else if (old->jump != UINT32_MAX)
        leave_out(w, old, false);
    return w->is_anew;
}

static bool read_table(struct code_walk *w, uint32_t jump, const struct code_value *through, unsigned mode)
{
    struct code_follower *f = w->f;
    const struct code_table *table = &w->machine.tables.items[through->of];
    uint64_t step = (uint64_t)1 << table->shift;
    if (step != table->size_bytes)
        return false;
    // A byte's or a half word's range is no bound of its own.
    bool has_bound = table->bound && table->bound < 256;
    uint64_t count = table->bound ? table->bound : ELEMENTS_MAX;
    struct code_extent own = {w->start, w->extent_end}, around = {0};
    if (!has_bound) {
        struct code_extent first = w->has_end ? own : extent_of(f, w->start);
        own.end = first.end < own.end ? first.end : own.end;
        if (!is_in(&own, jump)) // in code that several functions share
            around = extent_of(f, jump);
    }
    struct base_cursor c = base_cursor(input_image_some(f->image, table->vaddr, count * step));
    size_t first = w->targets.count;
    for (uint64_t i = 0; i < count && i < ELEMENTS_MAX; i++) {
        uint64_t vaddr = ((uint64_t)element(&c, table) << through->shift) +
                         (through->kind == CODE_VALUE_TARGET ? (uint64_t)through->number : 0);
        uint32_t target;
        code_address(w, vaddr | through->is_odd, mode, &target);
        bool is_good = !c.failed && target < f->text_size && !code_is_other(w, target);
        if (is_good && !has_bound)
            is_good = (is_in(&own, target) || is_in(&around, target)) && !is_left_out(w, jump, target);
        if (!is_good && has_bound) { // one that is not known is enough
            w->targets.count = first;
            return false;
        }
        if (!is_good && (i >= BEFORE_FIRST_MAX || c.failed))
            break;
        if (!is_good || has_target(w, first, target))
            continue;
        uint32_t *place = BASE_ADD(&w->targets);
        if (!place) {
            w->no_memory = true;
            return false;
        }
        *place = target;
    }
    const struct code_table_jump new = {.pc = jump,
                                        .first = first,
                                        .end = w->targets.count,
                                        .table_vaddr = table->vaddr,
                                        .table_bytes = count * step,
                                        .is_guessed = !has_bound};
    return w->targets.count > first && add_jump(w, &new);
}

bool code_go_through_table(struct code_walk *w, const struct code_run *run, const struct code_value *to, uint32_t pc,
                           unsigned mode)
{
    const struct code_table_jump *jump = jump_at(w, pc);
    if (!jump && read_table(w, pc, to, mode)) {
        jump = jump_at(w, pc);
        for (size_t i = jump->end; i-- > jump->first;)
            w->again |= code_scan(w, w->targets.items[i]);
    }
    w->guessed_by = jump && jump->is_guessed ? pc : UINT32_MAX;
    for (size_t i = jump ? jump->first : 0; jump && i < jump->end && !w->again; i++)
        code_deliver(w, run, w->targets.items[i]);
    w->guessed_by = UINT32_MAX;
    return jump;
}
