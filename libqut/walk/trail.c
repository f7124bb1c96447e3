// SPDX-License-Identifier: Apache-2.0
// A walk of a stack that is, from some frame on, what it was: where the words are the same that led from frame to frame
// to the root, they lead there again. That takes the comparison of some words, whose loads wait for nothing, in a few
// lines of code; going from frame to frame takes 100 to 170 cycles for each of an interpreter's or of made code.
#include "libqut/walk/trail.h"

#include "libqut/os/os.h"
#include "libqut/runtime/walk_inline.h"

void walk_trail_begin(struct runtime_trail *trail, uint32_t modules_epoch, uint32_t made_generation)
{
    if (trail->modules_epoch == modules_epoch && trail->made_generation == made_generation)
        return;
    trail->modules_epoch = modules_epoch;
    trail->made_generation = made_generation;
    trail->frame_count = 0;
}

// ---- finding

// The last frame that is not further out.
static unsigned place_of(const struct runtime_trail *trail, uint32_t sp_bytes)
{
    unsigned low = 0, high = trail->frame_count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (trail->sp_bytes[middle] <= sp_bytes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool is_state(const struct runtime_trail_state *state, const struct runtime_walk *walk)
{
    if (state->pc == 0 || state->pc != walk->regs.pc || state->flags != walk->flags)
        return false;
    for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++) {
        bool is_known = walk->regs.valid >> arch_native_arch.tracked[slot] & 1;
        if (state->needed >> slot & 1 &&
            (is_known != (state->known >> slot & 1) || (is_known && state->tracked[slot] != walk->regs.tracked[slot])))
            return false;
    }
    return true;
}

static bool reads_the_same(const struct runtime_trail *trail, unsigned first_word)
{
    for (unsigned i = first_word; i < trail->word_count; i++)
        if (os_load(trail->base + trail->word_bytes[i]) != trail->words[i])
            return false;
    return true;
}

static bool rests_on_the_same(const struct runtime_trail *trail, unsigned first_proof, walk_proof_holds holds,
                              void *context)
{
    for (unsigned i = first_proof; i < trail->proof_count; i++) {
        const struct runtime_trail_proof *proof = &trail->proofs[i];
        if (!holds(context, proof->pc, proof->proof, proof->number))
            return false;
    }
    return true;
}

const struct runtime_trail_state *walk_trail_find(const struct runtime_trail *trail, const struct runtime_walk *walk,
                                                  struct walk_direct direct, size_t room, walk_proof_holds holds,
                                                  void *context)
{
    const uintptr_t sp_bytes = (uintptr_t)walk->regs.sp - trail->base;
    if (trail->frame_count == 0 || walk->pc_kind != ARCH_PC_RETURN || walk->classified ||
        !runtime_knows_sp(&arch_native_arch, walk) || sp_bytes > trail->sp_bytes[trail->frame_count - 1])
        return NULL;
    unsigned place = place_of(trail, (uint32_t)sp_bytes);
    const struct runtime_trail_state *state = &trail->states[place];
    // What was read of the stack at that frame and further out lies further out than its sp.
    bool is_there = walk->regs.sp >= direct.low && walk_is_direct(direct, trail->base + trail->high_bytes);
    if (trail->sp_bytes[place] != sp_bytes || !is_there || trail->frame_count - 1u - place > room ||
        !is_state(state, walk) || !reads_the_same(trail, state->first_word) ||
        !rests_on_the_same(trail, state->first_proof, holds, context))
        return NULL;
    return state;
}

// ---- following

size_t walk_trail_follow(const struct runtime_trail *trail, const struct runtime_trail_state *state,
                         struct runtime_walk *walk, uintptr_t *pcs)
{
    const unsigned place = (unsigned)(state - trail->states);
    const unsigned count = trail->frame_count - 1u - place;
    for (unsigned i = 0; i < count; i++)
        pcs[i] = trail->pcs[place + 1 + i];
    if (walk->end.guessed_frame == QUT_NO_GUESS && state->frames_to_guess != RUNTIME_TRAIL_NO_GUESS)
        walk->end.guessed_frame = walk->index + state->frames_to_guess;
    walk->index += count;
    walk->end.reason = QUT_END_OUTERMOST;
    walk->end.pc = trail->end_pc;
    return count;
}

// ---- when to record

bool walk_trail_judge(struct runtime_trail *trail, size_t slow_count, size_t followed_count)
{
    enum { SLOW_FRAMES_MIN = 6, PATIENCE_MIN = 2, PATIENCE_MAX = 255 };
    if (followed_count * 2 >= slow_count) {
        trail->misses = 0;
        trail->patience = PATIENCE_MIN;
        return false;
    }
    if (slow_count < SLOW_FRAMES_MIN || ++trail->misses < trail->patience)
        return false;
    trail->misses = 0;
    trail->patience = (uint16_t)(trail->patience ? trail->patience * 2 : PATIENCE_MIN);
    if (trail->patience > PATIENCE_MAX)
        trail->patience = PATIENCE_MAX;
    return true;
}
