// SPDX-License-Identifier: Apache-2.0
// Where things are in each version, 64 bits. Seen with the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1
// and 3.13.0; in the releases of one version they do not move. What 3.14.10 and 3.15.2 say of themselves was seen in
// them.
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

enum { TOLD_WORDS = 64, TOLD_RANGE = 1 << 15, TOLD_COOKIE = 0, TOLD_VERSION = 1, TOLD_FREE_THREADED = 2 };

// Where in that list each of them stands: structures grow in their midst.
struct told_places {
    uint8_t minor;
    uint8_t executable_tag;    // from 3.14 on a frame's reference to its code may be one that does not count
    uint8_t generator_running; // the state of one that runs; not told
    uint8_t interpreters, interpreter_next, interpreter_threads;
    uint8_t thread_frame, thread_base_frame, thread_id, thread_native_id;
    uint8_t frame_previous, frame_code, frame_instruction, frame_owner;
    uint8_t code_file, code_name, code_qualified, code_lines, code_first_line, code_instructions;
};
static const struct told_places told_places[] = {
    {13, 0, 0, 5, 8, 9, 23, 0, 24, 25, 29, 30, 31, 33, 35, 36, 37, 38, 39, 43},
    {14, 3, 0, 5, 8, 9, 26, 0, 27, 28, 32, 33, 34, 36, 40, 41, 42, 43, 44, 48},
    {15, 3, 4, 5, 8, 9, 26, 27, 30, 31, 40, 41, 42, 44, 48, 49, 50, 51, 52, 56},
};

static bool layout_as_told(const struct told_places *at, const struct elf_art_memory *memory, uint64_t runtime,
                           struct cpython_layout *layout)
{
    uint64_t told[TOLD_WORDS];
    if (!elf_art_read(memory, runtime, told, sizeof told) || memcmp(&told[TOLD_COOKIE], "xdebugpy", 8) != 0 ||
        (told[TOLD_VERSION] >> 16) != (0x0300u | at->minor) || told[TOLD_FREE_THREADED] != 0)
        return false;
    // An interpreter's offsets, and its size, are larger.
    const uint8_t *last = &at->code_instructions;
    for (const uint8_t *place = &at->interpreters; place <= last; place++)
        if (told[*place] >= TOLD_RANGE * (place < &at->thread_frame ? 32u : 1u) && *place != 0)
            return false;
    *layout = (struct cpython_layout){
        OBJECTS,
        .minor = at->minor,
        .form = CPYTHON_SHIMS,
        .lines = CPYTHON_LINES_PLACES,
        .executable_tag = at->executable_tag,
        .generator_running = at->generator_running,
        .runtime_interpreters = (uint16_t)told[at->interpreters],
        .interpreter_next = (uint16_t)told[at->interpreter_next],
        .interpreter_threads = (uint16_t)told[at->interpreter_threads],
        .thread_id = (uint16_t)told[at->thread_id],
        .thread_native_id = (uint16_t)told[at->thread_native_id],
        .thread_frame = (uint16_t)told[at->thread_frame],
        .thread_base_frame = at->thread_base_frame ? (uint16_t)told[at->thread_base_frame] : 0,
        .frame_previous = (uint16_t)told[at->frame_previous],
        .frame_code = (uint16_t)told[at->frame_code],
        .frame_instruction = (uint16_t)told[at->frame_instruction],
        .frame_owner = (uint16_t)told[at->frame_owner],
        .code_first_line = (uint16_t)told[at->code_first_line],
        .code_name = (uint16_t)told[at->code_name],
        .code_qualified = (uint16_t)told[at->code_qualified],
        .code_file = (uint16_t)told[at->code_file],
        .code_lines = (uint16_t)told[at->code_lines],
        .code_instructions = (uint16_t)told[at->code_instructions],
        .code_version = 92, // not told
        .text_ascii_data = 40,
        .text_data = 56,
    };
    // Blocks of fixed sizes are read of these.
    return layout->thread_native_id < 256 && layout->thread_id < 256 && layout->thread_frame < 256 &&
           layout->thread_base_frame < 256 && layout->frame_owner < 80 && layout->frame_previous < 72 &&
           layout->frame_instruction < 72 && layout->frame_code < 72 && layout->code_instructions < 248 &&
           layout->code_lines < 248 && layout->code_qualified < 248 && layout->code_name < 248 &&
           layout->code_file < 248 && layout->code_first_line < 248;
}

bool cpython_layout_of(unsigned minor, const struct elf_art_memory *memory, uint64_t runtime,
                       struct cpython_layout *layout)
{
    if (!memory->arch || memory->arch->word_bytes != 8)
        return false;
    for (size_t i = 0; i < sizeof told_places / sizeof *told_places; i++)
        if (told_places[i].minor == minor)
            return layout_as_told(&told_places[i], memory, runtime, layout);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].minor == minor) {
            *layout = layouts[i];
            return true;
        }
    return false;
}
