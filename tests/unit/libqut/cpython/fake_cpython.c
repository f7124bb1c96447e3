// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/cpython/fake_cpython.h"

#include <string.h>

enum { RUNTIME_BYTES = 1024, INTERPRETER_BYTES = 8192, STATE_BYTES = 512 };

static size_t read_fake(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct fake_cpython *fake = context;
    if (address < FAKE_BASE || address >= FAKE_BASE + FAKE_BYTES)
        return 0;
    size_t left = (size_t)(FAKE_BASE + FAKE_BYTES - address);
    size_t count = size < left ? size : left;
    memcpy(bytes, fake->bytes + (address - FAKE_BASE), count);
    return count;
}

uint64_t fake_room(struct fake_cpython *fake, size_t size)
{
    uint64_t address = fake->next;
    fake->next += (size + 15) & ~(size_t)15;
    return address;
}

void fake_put_bytes(struct fake_cpython *fake, uint64_t address, const void *bytes, size_t size)
{
    memcpy(fake->bytes + (address - FAKE_BASE), bytes, size);
}

void fake_put(struct fake_cpython *fake, uint64_t address, uint64_t word)
{
    fake_put_bytes(fake, address, &word, sizeof word);
}

static const struct arch arch_64 = {.word_bytes = 8};

// As 3.13 tells of itself: only what is read has a value.
static void tell_offsets(struct fake_cpython *fake, uint64_t runtime)
{
    static const struct {
        unsigned index;
        uint64_t value;
    } told[] = {{1, 0x030d00f0}, {5, 632},  {8, 7264}, {9, 7344}, {21, 8},  {22, 16}, {23, 72},
                {24, 152},       {25, 160}, {26, 232}, {29, 8},   {30, 0},  {31, 56}, {33, 70},
                {35, 112},       {36, 120}, {37, 128}, {38, 136}, {39, 68}, {43, 200}};
    fake_put_bytes(fake, runtime, "xdebugpy", 8);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        fake_put(fake, runtime + told[i].index * 8, told[i].value);
}

void fake_begin(struct fake_cpython *fake, unsigned minor)
{
    memset(fake, 0, sizeof *fake);
    fake->next = FAKE_BASE + 4096;
    fake->memory = (struct elf_art_memory){.read = read_fake, .context = fake, .arch = &arch_64};
    struct cpython_runtime *runtime = &fake->runtime;
    runtime->runtime = fake_room(fake, RUNTIME_BYTES);
    runtime->code_type = fake_room(fake, 64);
    runtime->threads = fake->threads;
    tell_offsets(fake, runtime->runtime);
    cpython_layout_of(minor, &fake->memory, runtime->runtime, &runtime->layout);
    const struct cpython_layout *layout = &runtime->layout;
    fake->interpreter = fake_room(fake, INTERPRETER_BYTES);
    fake->state = fake_room(fake, STATE_BYTES);
    fake_put(fake, runtime->runtime + layout->runtime_interpreters, fake->interpreter);
    fake_put(fake, fake->interpreter + layout->interpreter_threads, fake->state);
    fake_put(fake, fake->state + layout->thread_interpreter, fake->interpreter);
    // The thread's descriptor, as the C library has it.
    uint64_t descriptor = fake_room(fake, 1024);
    fake_put(fake, descriptor + 16, descriptor);
    fake_put(fake, descriptor + 720, FAKE_TID);
    fake_put(fake, fake->state + layout->thread_id, descriptor);
    if (layout->thread_native_id)
        fake_put(fake, fake->state + layout->thread_native_id, FAKE_TID);
    if (layout->thread_root_record)
        fake_set_innermost(fake, fake_root(fake));
    fake->stack = (struct cpython_stack){.view = &fake->view, .frames = fake->frames, .groups = fake->groups};
}

uint64_t fake_text(struct fake_cpython *fake, const void *units, size_t count, unsigned width)
{
    const struct cpython_layout *layout = &fake->runtime.layout;
    unsigned bytes = width ? width : 1;
    uint64_t text = fake_room(fake, 128 + count * bytes);
    fake_put(fake, text + layout->text_length, count);
    fake_put(fake, text + layout->text_state, 32u | bytes << 2 | (width ? 0u : 64u));
    fake_put_bytes(fake, text + (width ? layout->text_data : layout->text_ascii_data), units, count * bytes);
    return text;
}

uint64_t fake_code(struct fake_cpython *fake, const char *name, const char *file)
{
    const struct cpython_layout *layout = &fake->runtime.layout;
    uint64_t code = fake_room(fake, 512);
    fake_put(fake, code, 1); // references
    fake_put(fake, code + layout->object_type, fake->runtime.code_type);
    if (layout->form != CPYTHON_FRAME_OBJECTS)
        fake_put(fake, code + layout->object_size, 16);
    uint64_t lines = fake_room(fake, 64);
    fake_put(fake, code + layout->code_first_line, 7);
    fake_put(fake, code + layout->code_name, fake_text(fake, name, strlen(name), 0));
    fake_put(fake, code + layout->code_qualified, fake_text(fake, name, strlen(name), 0));
    fake_put(fake, code + layout->code_file, fake_text(fake, file, strlen(file), 0));
    fake_put(fake, code + layout->code_lines, lines);
    return code;
}

uint64_t fake_frame(struct fake_cpython *fake, uint64_t code, uint64_t previous, unsigned owner, bool is_entry)
{
    const struct cpython_layout *layout = &fake->runtime.layout;
    uint64_t frame = fake_room(fake, 128);
    const uint8_t one = (uint8_t)owner, entry = is_entry;
    fake_put(fake, frame + layout->frame_code, code);
    fake_put(fake, frame + layout->frame_previous, previous);
    if (layout->form == CPYTHON_FRAME_OBJECTS)
        return frame;
    fake_put(fake, frame + layout->frame_instruction, code + layout->code_instructions + 4);
    fake_put_bytes(fake, frame + layout->frame_owner, &one, 1);
    if (layout->frame_entry)
        fake_put_bytes(fake, frame + layout->frame_entry, &entry, 1);
    return frame;
}

uint64_t fake_record(struct fake_cpython *fake, uint64_t frame, uint64_t previous)
{
    const struct cpython_layout *layout = &fake->runtime.layout;
    uint64_t record = fake_room(fake, 32);
    fake_put(fake, record + layout->record_frame, frame);
    fake_put(fake, record + layout->record_previous, previous);
    return record;
}

uint64_t fake_root(const struct fake_cpython *fake)
{
    return fake->state + fake->runtime.layout.thread_root_record;
}

void fake_set_innermost(struct fake_cpython *fake, uint64_t address)
{
    fake_put(fake, fake->state + fake->runtime.layout.thread_frame, address);
}

void fake_take(struct fake_cpython *fake)
{
    cpython_list_threads(&fake->runtime, &fake->memory);
    cpython_take(&fake->runtime, &fake->memory, FAKE_TID, &fake->stack);
}
