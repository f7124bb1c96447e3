// SPDX-License-Identifier: Apache-2.0
// CPython in a target: where it is, and what its threads do.
#include "libqut/target/python_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- where it is

// By what it exports from 3.11 on, else by the name of its file: "python3.8", "libpython3.10.so.1.0".
static unsigned minor_of(struct target_machine *machine, const struct target_image *image)
{
    uint64_t size_bytes, address = target_machine_export(machine, image, "Py_Version", &size_bytes);
    uint32_t version;
    if (address && elf_art_read(&machine->memory, address, &version, sizeof version) && version >> 24 == 3)
        return version >> 16 & 255;
    const char *slash = strrchr(image->path, '/');
    const char *at = strstr(slash ? slash : image->path, "python3.");
    return at ? (unsigned)strtoul(at + strlen("python3."), NULL, 10) : 0;
}

static void read_runtime(struct target_machine *machine, struct target_python *python, const struct target_image *image)
{
    struct cpython_runtime *runtime = &python->runtime;
    uint64_t size_bytes;
    runtime->runtime = python->found;
    runtime->thread_count = 0;
    runtime->code_type = target_machine_export(machine, image, "PyCode_Type", &size_bytes);
    runtime->evaluator_start = target_machine_export(machine, image, "_PyEval_EvalFrameDefault", &size_bytes);
    runtime->evaluator_end = runtime->evaluator_start + size_bytes;
    bool is_known = runtime->code_type && size_bytes &&
                    cpython_layout_of(minor_of(machine, image), &machine->memory, python->found, &runtime->layout);
    python->fault = is_known ? CPYTHON_FINE : CPYTHON_UNKNOWN_VERSION;
    if (!runtime->threads)
        runtime->threads = malloc(CPYTHON_THREADS_MAX * sizeof *runtime->threads);
    if (!runtime->threads)
        python->fault = CPYTHON_NO_MEMORY;
}

static void search(struct qut_target *target, struct target_machine *machine, struct target_python *python)
{
    const struct target_image *image = NULL;
    for (size_t i = 0; i < target->range_count && !image; i++)
        if (target->ranges[i].image->exports[TARGET_EXPORT_CPYTHON])
            image = target->ranges[i].image;
    uint64_t found = image ? image->exports[TARGET_EXPORT_CPYTHON] : 0;
    if (found == python->found)
        return;
    python->found = found;
    if (!found)
        return;
    read_runtime(machine, python, image);
    python->text_start = python->text_end = 0;
    for (size_t i = 0; i < target->range_count; i++)
        if (python->runtime.evaluator_start - target->ranges[i].start <
            target->ranges[i].end - target->ranges[i].start) {
            python->text_start = target->ranges[i].start;
            python->text_end = target->ranges[i].end;
        }
}

bool target_python_look(struct qut_target *target)
{
    struct target_machine *machine = target_machine(target);
    if (!machine)
        return false;
    if (!target->python)
        target->python = calloc(1, sizeof *target->python);
    struct target_python *python = target->python;
    if (!python)
        return false;
    target_machine_search(machine);
    search(target, machine, python);
    if (python->found && python->fault == CPYTHON_FINE)
        cpython_list_threads(&python->runtime, &machine->memory);
    return python->found != 0;
}

bool target_python_knows(const struct qut_target *target, pid_t tid)
{
    const struct target_python *python = target->python;
    if (!python || !python->found)
        return false;
    for (size_t i = 0; i < python->runtime.thread_count; i++)
        if (python->runtime.threads[i].tid == tid)
            return true;
    return false;
}

// ---- one thread

struct target_python_stack *target_python_stack_new(void)
{
    struct target_python_stack *stack = calloc(1, sizeof *stack);
    if (!stack)
        return NULL;
    stack->taken.frames = calloc(CPYTHON_FRAMES_MAX, sizeof *stack->taken.frames);
    stack->taken.groups = calloc(CPYTHON_GROUPS_MAX, sizeof *stack->taken.groups);
    stack->taken.view = malloc(sizeof *stack->taken.view);
    stack->functions = calloc(CPYTHON_FRAMES_MAX, sizeof *stack->functions);
    if (stack->taken.frames && stack->taken.groups && stack->taken.view && stack->functions)
        return stack;
    target_python_stack_free(stack);
    return NULL;
}

void target_python_stack_free(struct target_python_stack *stack)
{
    if (!stack)
        return;
    free(stack->taken.frames);
    free(stack->taken.groups);
    free(stack->taken.view);
    free(stack->functions);
    free(stack);
}

struct target_python_stack *target_python_stack_copy(const struct target_python_stack *stack)
{
    const struct cpython_stack *taken = &stack->taken;
    struct target_python_stack *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *stack;
    copy->taken.view = NULL; // nothing more is taken
    copy->taken.frames = malloc((taken->frame_count + 1) * sizeof *taken->frames);
    copy->taken.groups = malloc((taken->group_count + 1) * sizeof *taken->groups);
    copy->functions = malloc((taken->frame_count + 1) * sizeof *stack->functions);
    if (!copy->taken.frames || !copy->taken.groups || !copy->functions) {
        target_python_stack_free(copy);
        return NULL;
    }
    memcpy(copy->taken.frames, taken->frames, taken->frame_count * sizeof *taken->frames);
    memcpy(copy->taken.groups, taken->groups, taken->group_count * sizeof *taken->groups);
    memcpy(copy->functions, stack->functions, taken->frame_count * sizeof *stack->functions);
    return copy;
}

// Recursion meets one code object again and again, a program's stack few of them: each is read once, many at a time.
enum { MET_BITS = 8, MET = 1 << MET_BITS };
struct met {
    uint64_t addresses[MET]; // by hash; 0: none
    uint32_t numbers[MET];
    uint8_t bytes[MET][CPYTHON_CODE_BYTES];
};

static unsigned slot_of(uint64_t address)
{
    return (unsigned)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MET_BITS));
}

static uint32_t number_of(struct target_python *python, uint64_t address, const uint8_t *bytes, size_t got)
{
    struct cpython_code code;
    if (!cpython_code_of(&python->runtime, address, bytes, got, &code))
        return 0;
    return cpython_is_internal(&code) ? TARGET_PYTHON_INTERNAL : target_python_intern(python, &code);
}

// Of the frames from `first` on, as far as no two code objects have one slot. Returns where that ends.
static size_t meet(const struct cpython_stack *taken, size_t first, struct met *met)
{
    memset(met->addresses, 0, sizeof met->addresses);
    for (size_t i = first; i < taken->frame_count; i++) {
        uint64_t address = taken->frames[i].code;
        unsigned slot = slot_of(address);
        if (met->addresses[slot] && met->addresses[slot] != address)
            return i;
        met->addresses[slot] = address;
    }
    return taken->frame_count;
}

static void know_functions(struct target_machine *machine, struct target_python *python,
                           struct target_python_stack *stack)
{
    struct met met;
    struct elf_art_piece pieces[MET];
    struct cpython_stack *taken = &stack->taken;
    size_t wanted = cpython_code_bytes(&python->runtime);
    for (size_t first = 0, end; first < taken->frame_count && wanted <= CPYTHON_CODE_BYTES; first = end) {
        size_t count = 0;
        end = meet(taken, first, &met);
        for (unsigned slot = 0; slot < MET; slot++)
            if (met.addresses[slot])
                pieces[count++] =
                    (struct elf_art_piece){.address = met.addresses[slot], .bytes = met.bytes[slot], .size = wanted};
        elf_art_read_pieces(&machine->memory, pieces, count);
        for (unsigned slot = 0, piece = 0; slot < MET; slot++)
            if (met.addresses[slot])
                met.numbers[slot] = number_of(python, met.addresses[slot], met.bytes[slot], pieces[piece++].got);
        for (size_t i = first; i < end; i++) {
            stack->functions[i] = taken->frames[i].code ? met.numbers[slot_of(taken->frames[i].code)] : 0;
            if (stack->functions[i] == 0 && taken->fault == CPYTHON_FINE)
                taken->fault = CPYTHON_UNREADABLE;
        }
    }
}

void target_python_take(struct qut_target *target, pid_t tid, struct target_python_stack *stack)
{
    struct target_python *python = target->python;
    stack->reason = NULL;
    stack->merged = stack->guessed = 0;
    stack->taken.frame_count = stack->taken.group_count = 0;
    stack->taken.fault = CPYTHON_NO_THREAD;
    if (!python || !python->found || !target->machine)
        return;
    stack->taken.fault = python->fault;
    if (python->fault != CPYTHON_FINE)
        return;
    cpython_take(&python->runtime, &target->machine->memory, (int32_t)tid, &stack->taken);
    know_functions(target->machine, python, stack);
}

void target_python_take_thread(struct qut_target *target, size_t index, struct target_python_stack *stack)
{
    if (index >= target->thread_count)
        return;
    struct qut_target_thread *thread = &target->threads[index];
    pid_t tid = target->kind->inner_tid ? target->kind->inner_tid(target, thread) : thread->info.tid;
    // The list was made while others ran.
    if (target->python && target->python->fault == CPYTHON_FINE && !target_python_knows(target, tid))
        target_python_look(target);
    target_python_take(target, tid, stack);
    if (thread->state == TARGET_REGISTERS_READ || !target->kind->still_asleep ||
        target->kind->still_asleep(target, thread))
        return;
    stack->taken.frame_count = stack->taken.group_count = 0;
    stack->taken.fault = CPYTHON_TORN;
}

void target_free_python(struct qut_target *target)
{
    struct target_python *python = target->python;
    if (!python)
        return;
    for (size_t i = 0; i < python->function_count; i++) {
        free(python->functions[i]->name);
        free(python->functions[i]->file);
        free(python->functions[i]->lines);
        free(python->functions[i]);
    }
    free(python->functions);
    free(python->heads);
    free(python->scratch);
    free(python->content);
    free(python->runtime.threads);
    free(python);
    target->python = NULL;
}
