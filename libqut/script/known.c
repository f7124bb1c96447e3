// SPDX-License-Identifier: Apache-2.0
// Which functions a stack's frames are in. A thread waits for that, so what was read of a function is kept, with what
// it rests on: the objects that lead to its name. These are read again each time, of all frames at once, and the name
// counts if all of them are what they were.
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"

static unsigned slot_of(uint64_t value, unsigned bits)
{
    return (unsigned)((value >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

struct script_known *script_known(struct script_machine *v8)
{
    if (!v8->known)
        v8->known = calloc(1, sizeof *v8->known);
    return v8->known;
}

// One read of the bytes that each proof's step names, of all that have one.
static void read_all(const struct elf_art_memory *memory, struct v8_proof *proofs, size_t count, unsigned step)
{
    struct elf_art_piece pieces[SCRIPT_ASKED_MAX];
    size_t piece_count = 0;
    for (size_t i = 0; i < count; i++)
        if (proofs[i].address[step])
            pieces[piece_count++] = (struct elf_art_piece){.address = proofs[i].address[step],
                                                           .bytes = v8_proof_bytes(&proofs[i], step),
                                                           .size = v8_proof_size(step)};
    if (piece_count)
        elf_art_read_pieces(memory, pieces, piece_count);
    for (size_t i = 0, piece = 0; i < count; i++)
        if (proofs[i].address[step])
            proofs[i].got[step] = (uint8_t)pieces[piece++].got;
}

static uint32_t number_of(struct script_machine *v8, const struct elf_art_memory *memory, const struct v8_proof *proof)
{
    struct script_known_function *known = &v8->known->functions[slot_of(proof->address[0], SCRIPT_KNOWN_BITS)];
    struct v8_function function;
    if (memcmp(&known->proof, proof, sizeof *proof) == 0)
        return known->number;
    memcpy(&known->proof, proof, sizeof *proof); // compared with what lies between its fields
    known->number =
        v8_read_function(&v8->layout, memory, proof->address[0], &function) ? script_intern(v8, &function) : 0;
    return known->number;
}

// Of the places from `first` on, as many as fit. Returns where that ends.
static size_t know_functions(struct script_machine *v8, const struct elf_art_memory *memory, struct script_stack *stack,
                             size_t first)
{
    struct script_known *known = v8->known;
    size_t asked = 0, end = first;
    uint32_t numbers[SCRIPT_ASKED_MAX];
    memset(known->slots, 0, sizeof known->slots);
    for (; end < stack->count; end++) {
        uint64_t address = known->frames[end].function;
        if (!address)
            continue;
        unsigned slot = slot_of(address, SCRIPT_SLOT_BITS);
        while (known->slots[slot] && known->proofs[known->slots[slot] - 1].address[0] != address)
            slot = (slot + 1) % SCRIPT_SLOTS;
        if (!known->slots[slot]) {
            if (asked == SCRIPT_ASKED_MAX)
                break;
            memset(&known->proofs[asked], 0, sizeof known->proofs[asked]);
            known->proofs[asked].address[0] = address;
            known->slots[slot] = (uint16_t)++asked;
        }
        known->asked[end] = (uint16_t)(known->slots[slot] - 1);
    }
    for (unsigned step = 0; step < V8_PROOF_STEPS; step++) {
        read_all(memory, known->proofs, asked, step);
        for (size_t i = 0; i < asked; i++)
            v8_proof_lead(&v8->layout, &known->proofs[i], step);
    }
    for (size_t i = 0; i < asked; i++)
        numbers[i] = number_of(v8, memory, &known->proofs[i]);
    for (size_t i = first; i < end; i++)
        stack->places[i].function = known->frames[i].function ? numbers[known->asked[i]] : 0;
    return end;
}

// Bytecode of one function at one address is the same. That where it stands was kept later on is seen by the reference
// to the table.
static void know_positions(struct script_machine *v8, const struct elf_art_memory *memory, struct script_stack *stack)
{
    struct script_known *known = v8->known;
    struct elf_art_piece pieces[SCRIPT_ASKED_MAX];
    uint64_t heads[SCRIPT_ASKED_MAX];
    size_t places[SCRIPT_ASKED_MAX], asked = 0;
    for (size_t i = 0; i <= stack->count; i++) {
        if (i == stack->count || asked == SCRIPT_ASKED_MAX) {
            if (asked)
                elf_art_read_pieces(memory, pieces, asked);
            for (size_t j = 0; j < asked; j++) {
                struct script_place *place = &stack->places[places[j]];
                const struct v8_frame *frame = &known->frames[places[j]];
                struct script_known_position *position =
                    &known->positions[slot_of(frame->bytecodes ^ (uint64_t)frame->offset << 20, SCRIPT_KNOWN_BITS)];
                uint64_t table = pieces[j].got == sizeof heads[j] ? heads[j] : 0;
                if (position->bytecodes != frame->bytecodes || position->offset != frame->offset ||
                    position->function != place->function || position->table != table)
                    *position = (struct script_known_position){
                        frame->bytecodes, table, frame->offset, place->function,
                        v8_position_at(&v8->layout, memory, frame->bytecodes, frame->offset)};
                place->position = position->position;
            }
            asked = 0;
        }
        if (i < stack->count && stack->places[i].function && known->frames[i].bytecodes) {
            pieces[asked] =
                (struct elf_art_piece){.address = known->frames[i].bytecodes + (uint64_t)v8->layout.bytecodes_positions,
                                       .bytes = &heads[asked],
                                       .size = sizeof heads[asked]};
            places[asked++] = i;
        }
    }
}

void script_know(struct script_machine *v8, const struct elf_art_memory *memory, struct script_stack *stack)
{
    for (size_t first = 0; first < stack->count;)
        first = know_functions(v8, memory, stack, first);
    know_positions(v8, memory, stack);
    // What only looked like a frame.
    size_t count = 0;
    for (size_t i = 0; i < stack->count; i++)
        if (stack->places[i].function || !v8->known->frames[i].function)
            stack->places[count++] = stack->places[i];
    stack->count = count;
}
