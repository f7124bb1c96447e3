// SPDX-License-Identifier: Apache-2.0
// A frame of JavaScript, whoever made its code: below the frame pointer come the context, the function, the number of
// arguments; of interpreted ones the bytecode and where in it. Other frames have a number where the context is, which
// says what they are.
#include "libqut/v8/inside.h"

enum { MARKS_MAX = 48 }; // 31 kinds of frames in V8 13

static uint64_t word_at(const uint8_t bytes[V8_FRAME_BYTES], int32_t from_frame_pointer)
{
    return v8_word(bytes, (size_t)(V8_FRAME_BYTES + from_frame_pointer));
}

// The kind of frame, doubled.
static bool is_mark(uint64_t word)
{
    return word % 2 == 0 && word / 2 - 1 < MARKS_MAX;
}

bool v8_frame_of(const struct v8_layout *layout, const uint8_t bytes[V8_FRAME_BYTES], struct v8_frame *frame)
{
    uint64_t context = word_at(bytes, layout->frame_context);
    *frame = (struct v8_frame){.function = v8_object(word_at(bytes, layout->frame_function))};
    if (is_mark(context)) {
        frame->function = 0;
        return true;
    }
    if (!v8_object(context) || !frame->function)
        return false;
    // Counted from the reference to the object, not from its first bytecode.
    uint64_t offset = word_at(bytes, layout->frame_bytecode_offset);
    int32_t first = layout->bytecodes_data - V8_OBJECT_TAG;
    if (v8_is_smi(offset) && v8_smi(offset) >= first) {
        frame->bytecodes = v8_object(word_at(bytes, layout->frame_bytecodes));
        frame->offset = (uint32_t)(v8_smi(offset) - first);
    }
    return true;
}

bool v8_may_be_frame(const struct v8_layout *layout, const uint8_t *bytes, uint64_t address, uint64_t end)
{
    uint64_t outer = v8_word(bytes, 0), context = v8_word(bytes + layout->frame_context, 0);
    return outer > address && outer < end && outer % 8 == 0 &&
           (is_mark(context) || (v8_object(context) && v8_object(v8_word(bytes + layout->frame_function, 0))));
}

// Made code begins with `push %rbp; mov %rsp, %rbp`, sometimes behind a check of what it was made for, and ends with
// `mov %rbp, %rsp; pop %rbp; ...; ret`, with the arguments counted in between. Around both %rbp is the caller's.
bool v8_is_near_edge(const struct elf_art_memory *memory, uint64_t pc)
{
    enum { BEFORE = 40, BEHIND = 48 };
    static const uint8_t begins[] = {0x55, 0x48, 0x89, 0xe5}, begins_too[] = {0x55, 0x48, 0x8b, 0xec},
                         ends[] = {0x48, 0x8b, 0xe5, 0x5d}, ends_too[] = {0x48, 0x89, 0xec, 0x5d};
    uint8_t code[BEFORE + BEHIND];
    size_t got = memory->read(memory->context, pc - BEFORE, code, sizeof code);
    if (got <= BEFORE)
        return true;
    for (size_t i = 0; i + sizeof begins <= got; i++) {
        bool is_begin =
            memcmp(code + i, begins, sizeof begins) == 0 || memcmp(code + i, begins_too, sizeof begins) == 0;
        bool is_end = memcmp(code + i, ends, sizeof ends) == 0 || memcmp(code + i, ends_too, sizeof ends) == 0;
        if ((is_begin && i + sizeof begins > BEFORE) || (is_end && i < BEFORE))
            return true;
    }
    // What lies behind may not be mapped; then no beginning of code is there.
    return false;
}
