// SPDX-License-Identifier: Apache-2.0
#include "libqut/v8/known.h"

#include <string.h>

static unsigned slot_of(uint64_t value, unsigned bits)
{
    return (unsigned)((value >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

// One read of the bytes that each proof's step names, of all that have one.
static void read_all(struct v8_known *known, const struct elf_art_memory *memory, size_t count, unsigned step)
{
    size_t size = v8_proof_size(step), piece_count = 0;
    for (size_t i = 0; i < count; i++)
        if (known->proofs[i].address[step]) {
            known->pieces[piece_count] = (struct elf_art_piece){
                .address = known->proofs[i].address[step], .bytes = known->staged + piece_count * size, .size = size};
            piece_count++;
        }
    if (piece_count)
        elf_art_read_pieces(memory, known->pieces, piece_count);
    for (size_t i = 0, piece = 0; i < count; i++)
        if (known->proofs[i].address[step]) {
            size_t got = known->pieces[piece].got;
            memcpy(v8_proof_bytes(&known->proofs[i], step), known->staged + piece * size, got);
            known->proofs[i].got[step] = (uint8_t)got;
            piece++;
        }
}

// What is done for one stack.
struct knowing {
    struct v8_known *known;
    const struct v8_layout *layout;
    const struct elf_art_memory *memory;
    const struct v8_numbers *numbers;
    struct v8_place *places;
    size_t count;
};

static uint32_t number_of(const struct knowing *knowing, const struct v8_proof *proof)
{
    struct v8_known *known = knowing->known;
    struct v8_known_function *kept = &known->functions[slot_of(proof->address[0], V8_KNOWN_BITS)];
    if (memcmp(&kept->proof, proof, sizeof *proof) == 0)
        return kept->number;
    memcpy(&kept->proof, proof, sizeof *proof); // compared with what lies between its fields
    kept->number = v8_read_function(knowing->layout, knowing->memory, proof->address[0], &known->function)
                       ? knowing->numbers->number(knowing->numbers->context, &known->function)
                       : 0;
    return kept->number;
}

// Of the places from `first` on, as many as fit. Returns where that ends.
static size_t know_functions(const struct knowing *knowing, size_t first)
{
    struct v8_known *known = knowing->known;
    size_t asked = 0, end = first;
    memset(known->slots, 0, sizeof known->slots);
    for (; end < knowing->count; end++) {
        uint64_t address = known->frames[end].function;
        if (!address)
            continue;
        unsigned slot = slot_of(address, V8_SLOT_BITS);
        while (known->slots[slot] && known->proofs[known->slots[slot] - 1].address[0] != address)
            slot = (slot + 1) % (1u << V8_SLOT_BITS);
        if (!known->slots[slot]) {
            if (asked == V8_ASKED_MAX)
                break;
            memset(&known->proofs[asked], 0, sizeof known->proofs[asked]);
            known->proofs[asked].address[0] = address;
            known->slots[slot] = (uint16_t)++asked;
        }
        known->asked[end] = (uint16_t)(known->slots[slot] - 1);
    }
    for (unsigned step = 0; step < V8_PROOF_STEPS; step++) {
        read_all(known, knowing->memory, asked, step);
        for (size_t i = 0; i < asked; i++)
            v8_proof_lead(knowing->layout, &known->proofs[i], step);
    }
    for (size_t i = 0; i < asked; i++)
        known->numbers[i] = number_of(knowing, &known->proofs[i]);
    for (size_t i = first; i < end; i++)
        knowing->places[i].function = known->frames[i].function ? known->numbers[known->asked[i]] : 0;
    return end;
}

// Bytecode of one function at one address is the same. That where it stands was kept later on is seen by the reference
// to the table.
static void know_position(const struct knowing *knowing, size_t at, const struct elf_art_piece *head)
{
    struct v8_known *known = knowing->known;
    struct v8_place *place = &knowing->places[at];
    const struct v8_frame *frame = &known->frames[at];
    struct v8_known_position *position =
        &known->positions[slot_of(frame->bytecodes ^ (uint64_t)frame->offset << 20, V8_KNOWN_BITS)];
    uint64_t table = 0;
    if (head->got == sizeof table)
        memcpy(&table, head->bytes, sizeof table);
    if (position->bytecodes != frame->bytecodes || position->offset != frame->offset ||
        position->function != place->function || position->table != table)
        *position = (struct v8_known_position){
            frame->bytecodes, table, frame->offset, place->function,
            v8_position_at(knowing->layout, knowing->memory, frame->bytecodes, frame->offset)};
    place->position = position->position;
}

static void know_positions(const struct knowing *knowing)
{
    struct v8_known *known = knowing->known;
    size_t asked = 0;
    for (size_t i = 0; i <= knowing->count; i++) {
        if (asked && (i == knowing->count || asked == V8_ASKED_MAX)) {
            elf_art_read_pieces(knowing->memory, known->pieces, asked);
            for (size_t j = 0; j < asked; j++)
                know_position(knowing, known->at[j], &known->pieces[j]);
            asked = 0;
        }
        if (i < knowing->count && knowing->places[i].function && known->frames[i].bytecodes) {
            known->pieces[asked] = (struct elf_art_piece){.address = known->frames[i].bytecodes +
                                                                     (uint64_t)knowing->layout->bytecodes_positions,
                                                          .bytes = known->staged + asked * sizeof(uint64_t),
                                                          .size = sizeof(uint64_t)};
            known->at[asked++] = (uint16_t)i;
        }
    }
}

size_t v8_know(struct v8_known *known, const struct v8_layout *layout, const struct elf_art_memory *memory,
               const struct v8_numbers *numbers, bool with_positions, struct v8_place *places, size_t count)
{
    const struct knowing knowing = {known, layout, memory, numbers, places, count};
    for (size_t first = 0; first < count;)
        first = know_functions(&knowing, first);
    if (with_positions)
        know_positions(&knowing);
    // What only looked like a frame.
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (places[i].function || !known->frames[i].function)
            places[kept++] = places[i];
    return kept;
}

const struct v8_place *v8_place_at(const struct v8_place *places, size_t count, uint64_t frame_pointer)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places[middle].frame_pointer < frame_pointer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && places[low].frame_pointer == frame_pointer ? &places[low] : NULL;
}
