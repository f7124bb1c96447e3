// SPDX-License-Identifier: Apache-2.0
#include "libqut/cpython/inside.h"

enum {
    INTERPRETERS_MAX = 1024,
    STATE_LEAST_BYTES = 184,
    // glibc, x86-64, all releases since 2.4: a thread's descriptor has its own address here, and the thread's id there.
    DESCRIPTOR_SELF = 16,
    DESCRIPTOR_TID = 720,
};

int32_t cpython_thread_of_descriptor(const struct elf_art_memory *memory, uint64_t descriptor)
{
    uint64_t self = 0;
    int32_t tid = 0;
    bool is_one = cpython_is_pointer(descriptor) &&
                  elf_art_read(memory, descriptor + DESCRIPTOR_SELF, &self, sizeof self) && self == descriptor &&
                  elf_art_read(memory, descriptor + DESCRIPTOR_TID, &tid, sizeof tid);
    return is_one && tid > 0 ? tid : 0;
}

void cpython_state_of(const struct cpython_layout *layout, uint64_t state, const uint8_t bytes[CPYTHON_STATE_BYTES],
                      struct cpython_thread *thread)
{
    *thread = (struct cpython_thread){
        .state = state,
        .interpreter = cpython_word(bytes, layout->thread_interpreter),
        .descriptor = cpython_word(bytes, layout->thread_id),
        .native = layout->thread_native_id ? cpython_word(bytes, layout->thread_native_id) : 0,
    };
}

bool cpython_read_state(const struct cpython_layout *layout, const struct elf_art_memory *memory, uint64_t state,
                        uint8_t bytes[CPYTHON_STATE_BYTES], struct cpython_thread *thread)
{
    if (!cpython_is_pointer(state))
        return false;
    // It may be the last of its mapping, and is shorter in some versions.
    memset(bytes, 0, CPYTHON_STATE_BYTES);
    if (memory->read(memory->context, state, bytes, CPYTHON_STATE_BYTES) < STATE_LEAST_BYTES)
        return false;
    cpython_state_of(layout, state, bytes, thread);
    return true;
}

// The interpreter has the thread's id from 3.11 on; after a fork, 3.11's is still the parent's. The descriptor's is
// always true.
static int32_t tid_of(const struct elf_art_memory *memory, const struct cpython_thread *thread)
{
    int32_t tid = cpython_thread_of_descriptor(memory, thread->descriptor);
    return tid ? tid : thread->native <= INT32_MAX ? (int32_t)thread->native : 0;
}

static enum cpython_fault list_of(struct cpython_runtime *runtime, const struct elf_art_memory *memory,
                                  uint64_t interpreter)
{
    const struct cpython_layout *layout = &runtime->layout;
    uint8_t bytes[CPYTHON_STATE_BYTES];
    uint64_t state;
    if (!elf_art_read(memory, interpreter + layout->interpreter_threads, &state, sizeof state))
        return CPYTHON_UNREADABLE;
    while (state != 0) {
        if (runtime->thread_count == CPYTHON_THREADS_MAX)
            return CPYTHON_TOO_MANY;
        struct cpython_thread *thread = &runtime->threads[runtime->thread_count];
        if (!cpython_read_state(layout, memory, state, bytes, thread))
            return CPYTHON_UNREADABLE;
        if (thread->interpreter != interpreter)
            return CPYTHON_TORN;
        thread->tid = tid_of(memory, thread);
        runtime->thread_count++;
        state = cpython_word(bytes, layout->thread_next);
    }
    return CPYTHON_FINE;
}

enum cpython_fault cpython_list_threads(struct cpython_runtime *runtime, const struct elf_art_memory *memory)
{
    const struct cpython_layout *layout = &runtime->layout;
    uint64_t interpreter;
    enum cpython_fault first = CPYTHON_FINE;
    runtime->thread_count = 0;
    if (!elf_art_read(memory, runtime->runtime + layout->runtime_interpreters, &interpreter, sizeof interpreter))
        return CPYTHON_UNREADABLE;
    for (unsigned i = 0; interpreter != 0; i++) {
        if (i == INTERPRETERS_MAX)
            return CPYTHON_TOO_MANY;
        if (!cpython_is_pointer(interpreter))
            return CPYTHON_TORN;
        enum cpython_fault fault = list_of(runtime, memory, interpreter);
        first = first ? first : fault;
        if (!elf_art_read(memory, interpreter + layout->interpreter_next, &interpreter, sizeof interpreter))
            return CPYTHON_UNREADABLE;
    }
    return first;
}
