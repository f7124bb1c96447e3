// SPDX-License-Identifier: Apache-2.0
// Where things are in each version, 64 bits. Seen with the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1
// and 3.13.0; in the releases of one version they do not move.
#include <string.h>

#include "libqut/cpython/cpython.h"

const char *cpython_fault_text(enum cpython_fault fault)
{
    static const char *const texts[CPYTHON_FAULT_COUNT] = {
        [CPYTHON_FINE] = "fine",
        [CPYTHON_UNKNOWN_VERSION] = "its version is not known",
        [CPYTHON_NO_THREAD] = "it does not know this thread",
        [CPYTHON_UNREADABLE] = "its frames cannot be read",
        [CPYTHON_TORN] = "its frames do not lead to one another",
        [CPYTHON_TOO_MANY] = "there are more frames, or threads, than are read",
        [CPYTHON_NO_MEMORY] = "no memory",
    };
    return (unsigned)fault < CPYTHON_FAULT_COUNT ? texts[fault] : "unknown";
}

// What has not moved between versions.
#define OBJECTS                                                                                                        \
    .thread_next = 8, .thread_interpreter = 16, .object_type = 8, .object_size = 16, .bytes_data = 32,                 \
    .text_length = 16, .text_state = 32
#define OLD_FRAMES                                                                                                     \
    .form = CPYTHON_FRAME_OBJECTS, .runtime_interpreters = 32, .interpreter_threads = 8, .thread_id = 176,             \
    .thread_frame = 24, .frame_previous = 24, .frame_code = 32, .code_first_line = 40, .code_name = 112,               \
    .code_qualified = 112, .code_file = 104, .code_lines = 120, .code_instructions = 48, .text_ascii_data = 48,        \
    .text_data = 72

static const struct cpython_layout layouts[] = {
    {OBJECTS, OLD_FRAMES, .minor = 8, .lines = CPYTHON_LINES_DELTAS, .frame_instruction = 104},
    {OBJECTS, OLD_FRAMES, .minor = 9, .lines = CPYTHON_LINES_DELTAS, .frame_instruction = 104},
    {OBJECTS, OLD_FRAMES, .minor = 10, .lines = CPYTHON_LINES_RANGES, .frame_instruction = 96},
    {OBJECTS,
     .minor = 11,
     .form = CPYTHON_ENTRY_FRAMES,
     .lines = CPYTHON_LINES_PLACES,
     .runtime_interpreters = 40,
     .interpreter_threads = 16,
     .thread_id = 152,
     .thread_native_id = 160,
     .thread_frame = 56,
     .thread_root_record = 336,
     .thread_chunk = 296,
     .thread_top = 304,
     .thread_limit = 312,
     .record_frame = 8,
     .record_previous = 16,
     .frame_code = 32,
     .frame_instruction = 56,
     .frame_previous = 48,
     .frame_owner = 69,
     .frame_entry = 68,
     .code_first_line = 72,
     .code_name = 120,
     .code_qualified = 128,
     .code_file = 112,
     .code_lines = 136,
     .code_instructions = 184,
     .text_ascii_data = 48,
     .text_data = 72},
    {OBJECTS,
     .minor = 12,
     .form = CPYTHON_RECORDED_SHIMS,
     .lines = CPYTHON_LINES_PLACES,
     .runtime_interpreters = 40,
     .interpreter_threads = 72,
     .thread_id = 136,
     .thread_native_id = 144,
     .thread_frame = 56,
     .thread_root_record = 272,
     .thread_chunk = 232,
     .thread_top = 240,
     .thread_limit = 248,
     .record_frame = 0,
     .record_previous = 8,
     .frame_code = 0,
     .frame_instruction = 56,
     .frame_previous = 8,
     .frame_owner = 70,
     .code_first_line = 68,
     .code_name = 120,
     .code_qualified = 128,
     .code_file = 112,
     .code_lines = 136,
     .code_instructions = 192,
     .code_version = 92,
     .text_ascii_data = 40,
     .text_data = 56},
};

// ---- from 3.13 on: a list of sizes and offsets, 64 bits each, at the runtime's beginning

enum { TOLD_WORDS = 64, TOLD_RANGE = 1 << 15 };

// Where in that list they stand in 3.13.
enum told {
    TOLD_COOKIE = 0,
    TOLD_VERSION = 1,
    TOLD_FREE_THREADED = 2,
    TOLD_INTERPRETERS = 5,
    TOLD_INTERPRETER_NEXT = 8,
    TOLD_INTERPRETER_THREADS = 9,
    TOLD_THREAD_NEXT = 21,
    TOLD_THREAD_INTERPRETER,
    TOLD_THREAD_FRAME,
    TOLD_THREAD_ID,
    TOLD_THREAD_NATIVE_ID,
    TOLD_THREAD_CHUNK,
    TOLD_FRAME_PREVIOUS = 29,
    TOLD_FRAME_CODE,
    TOLD_FRAME_INSTRUCTION,
    TOLD_FRAME_OWNER = 33,
    TOLD_CODE_FILE = 35,
    TOLD_CODE_NAME,
    TOLD_CODE_QUALIFIED,
    TOLD_CODE_LINES,
    TOLD_CODE_FIRST_LINE,
    TOLD_CODE_INSTRUCTIONS = 43,
};

static bool layout_as_told(const struct elf_art_memory *memory, uint64_t runtime, struct cpython_layout *layout)
{
    uint64_t told[TOLD_WORDS];
    if (!elf_art_read(memory, runtime, told, sizeof told) || memcmp(&told[TOLD_COOKIE], "xdebugpy", 8) != 0 ||
        (told[TOLD_VERSION] >> 16) != 0x030d || told[TOLD_FREE_THREADED] != 0)
        return false;
    for (unsigned i = TOLD_INTERPRETERS; i <= TOLD_CODE_INSTRUCTIONS; i++)
        if (told[i] >= TOLD_RANGE * (i < TOLD_THREAD_NEXT ? 32u : 1u)) // an interpreter's size is among them
            return false;
    *layout = (struct cpython_layout){
        OBJECTS,
        .minor = 13,
        .form = CPYTHON_SHIMS,
        .lines = CPYTHON_LINES_PLACES,
        .runtime_interpreters = (uint16_t)told[TOLD_INTERPRETERS],
        .interpreter_next = (uint16_t)told[TOLD_INTERPRETER_NEXT],
        .interpreter_threads = (uint16_t)told[TOLD_INTERPRETER_THREADS],
        .thread_id = (uint16_t)told[TOLD_THREAD_ID],
        .thread_native_id = (uint16_t)told[TOLD_THREAD_NATIVE_ID],
        .thread_frame = (uint16_t)told[TOLD_THREAD_FRAME],
        .frame_previous = (uint16_t)told[TOLD_FRAME_PREVIOUS],
        .frame_code = (uint16_t)told[TOLD_FRAME_CODE],
        .frame_instruction = (uint16_t)told[TOLD_FRAME_INSTRUCTION],
        .frame_owner = (uint16_t)told[TOLD_FRAME_OWNER],
        .code_first_line = (uint16_t)told[TOLD_CODE_FIRST_LINE],
        .code_name = (uint16_t)told[TOLD_CODE_NAME],
        .code_qualified = (uint16_t)told[TOLD_CODE_QUALIFIED],
        .code_file = (uint16_t)told[TOLD_CODE_FILE],
        .code_lines = (uint16_t)told[TOLD_CODE_LINES],
        .code_instructions = (uint16_t)told[TOLD_CODE_INSTRUCTIONS],
        .code_version = 92, // not told
        .text_ascii_data = 40,
        .text_data = 56,
    };
    // Blocks of fixed sizes are read of these.
    return layout->thread_native_id < 256 && layout->thread_id < 256 && layout->thread_frame < 256 &&
           layout->frame_owner < 96 && layout->frame_previous < 88 && layout->frame_instruction < 88 &&
           layout->frame_code < 88 && layout->code_instructions < 248 && layout->code_lines < 248 &&
           layout->code_qualified < 248 && layout->code_name < 248 && layout->code_file < 248 &&
           layout->code_first_line < 248;
}

bool cpython_layout_of(unsigned minor, const struct elf_art_memory *memory, uint64_t runtime,
                       struct cpython_layout *layout)
{
    if (!memory->arch || memory->arch->word_bytes != 8)
        return false;
    if (minor == 13)
        return layout_as_told(memory, runtime, layout);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].minor == minor) {
            *layout = layouts[i];
            return true;
        }
    return false;
}
