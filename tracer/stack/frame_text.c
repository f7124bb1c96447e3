// SPDX-License-Identifier: Apache-2.0
#include "tracer/stack/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/script/script.h"
#include "libqut/target/python.h"
#include "tracer/managed/art_at.h"
#include "tracer/symbols/demangle.h"

// Thumb has calls of two and of four bytes. The second half of the latter begins with two set bits, which no call of
// two bytes (blx register) does.
static uint64_t thumb_call_bytes(struct qut_target *target, uint64_t pc)
{
    uint16_t halves[2];
    if (qut_target_read(target, pc - sizeof halves, halves, sizeof halves) != sizeof halves)
        return 2;
    return (halves[0] & 0xf000) == 0xf000 && (halves[1] & 0xc000) == 0xc000 ? 4 : 2;
}

// AOSP's convention, so that lines can be compared: the last instruction before a return address, in steps that are
// right for calls. On riscv64 it takes 4 bytes for compressed calls as well. Code that a signal interrupted it treats
// as if it had made a call; we do so where a snapshot is to give the same lines, and tell the truth elsewhere.
static uint64_t call_bytes(const struct stack_modules *modules, const struct stack_options *options,
                           const struct qut_frame *frame, size_t index)
{
    bool is_exact = (frame->flags & QUT_FRAME_INTERRUPTED) && (index == 0 || !options->snapshot);
    if (is_exact || (frame->flags & QUT_FRAME_SIGNAL))
        return 0;
    if ((frame->flags & QUT_FRAME_THUMB) && !(frame->flags & QUT_FRAME_INTERRUPTED))
        return thumb_call_bytes(modules->target, frame->pc);
    return strncmp(qut_target_arch(modules->target), "x86", 3) == 0 ? 1 : 4;
}

static void name_function(struct stack_modules *modules, const struct stack_options *options,
                          const struct symbol *symbol, struct stack_place *place)
{
    place->function = strndup(symbol->name, symbol->name_length);
    char *readable = place->function && !options->raw_names ? symbols_demangle(place->function) : NULL;
    modules->no_memory |= !place->function || (!options->raw_names && !readable);
    if (!readable)
        return;
    if (strcmp(readable, place->function) == 0) {
        free(readable);
        return;
    }
    place->mangled = place->function;
    place->function = readable;
}

// Code that was made at run time is in no file. Its pc counts from its mapping where the mapping's name tells where
// that begins ("<anonymous:d0250000>"), or where a profiler made the mapping, of a file that stands for the code.
// Elsewhere it is the address: "memfd:jit-cache" is mapped more than once.
static bool counts_from_mapping(const struct qut_module_info *info)
{
    const char *name = info->path[0] == '<' ? info->path + 1 : info->path;
    return !*info->path || strncmp(name, "anonymous:", 10) == 0 || (*info->file_path && !info->deleted);
}

// An inlined method has no code of its own, and no distance from where that begins.
static void name_by_machine(struct stack_modules *modules, const struct stack_options *options,
                            const struct stack_made *made, size_t level, uint64_t address, struct stack_place *place)
{
    const struct qut_made_level *of = &made->levels[level];
    const struct symbol symbol = {.name = of->name, .name_length = strlen(of->name)};
    name_function(modules, options, &symbol, place);
    place->file = *of->file ? of->file : NULL;
    place->line = of->line;
    place->is_inlined = of->flags & QUT_MADE_INLINED;
    place->is_near = of->flags & QUT_MADE_NEAR;
    if (!place->is_inlined)
        place->function_offset = address - of->start;
}

static void describe_jit(struct stack_modules *modules, const struct stack_options *options,
                         const struct qut_frame *frame, size_t level, uint64_t address, uint64_t thumb_bit,
                         struct stack_place *place)
{
    const struct qut_module_info *info = &place->module->info;
    place->is_address = !counts_from_mapping(info);
    place->pc = (place->is_address ? address : address - info->start) | thumb_bit;
    struct symbol symbol;
    if (options->no_names)
        return;
    if (stack_jit_symbol(modules, address, &symbol)) {
        place->function_offset = address - symbol.start_vaddr;
        name_function(modules, options, &symbol, place);
        return;
    }
    const struct stack_made *made = stack_made_at(modules, frame);
    if (made && made->count) {
        name_by_machine(modules, options, made, level, address, place);
        return;
    }
    struct managed_art_place art;
    modules->dex.target = modules->target;
    if (managed_art_at(&modules->dex, address, &art)) {
        place->function = art.method;
        place->function_offset = address - art.start;
    }
    modules->no_memory |= modules->dex.no_memory;
}

size_t stack_level_count(struct stack_modules *modules, const struct stack_options *options,
                         const struct qut_frame *frame)
{
    const struct stack_made *made = options->no_names ? NULL : stack_made_at(modules, frame);
    return made && made->count ? made->count : 1;
}

static void find_dex(struct stack_modules *modules, struct stack_module *module, uint64_t dex_pc,
                     struct managed_dex_place *dex)
{
    struct base_error error = {0};
    modules->dex.target = modules->target;
    if (!managed_dex_at(&modules->dex, module ? &module->info : NULL, dex_pc, dex, &error) &&
        modules->dex_refused++ == 0) {
        modules->dex_first = module;
        modules->dex_first_error = error;
    }
    modules->no_memory |= modules->dex.no_memory;
}

// Bytecode: pc is where it is interpreted, not behind a call.
static void describe_dex(struct stack_modules *modules, const struct stack_options *options,
                         const struct qut_frame *frame, struct stack_module *module, struct stack_place *place)
{
    struct managed_dex_place dex = {0};
    const struct stack_made *made = options->no_names ? NULL : stack_made_at(modules, frame);
    if (made && made->count) {
        if (module)
            place->pc = frame->pc - stack_module_base(module);
        name_by_machine(modules, options, made, 0, frame->pc, place);
        return;
    }
    if (!options->no_names)
        find_dex(modules, module, frame->pc, &dex);
    if (module)
        place->pc = frame->pc - stack_module_base(module);
    if (dex.entry && module) {
        place->entry = dex.entry;
        place->entry_offset = dex.entry_offset;
        place->pc = frame->pc - dex.entry_start;
    }
    place->function = dex.method;
    place->function_offset = dex.end ? frame->pc - dex.start : 0;
}

// A function of CPython: it is in no module, but in a source file.
static void describe_python(struct stack_modules *modules, const struct stack_options *options,
                            const struct qut_frame *frame, struct stack_place *place)
{
    const struct target_python_function *function =
        target_python_function(modules->target, target_python_number(frame->lookup_pc));
    *place = (struct stack_place){.pc = frame->pc};
    if (!function || options->no_names)
        return;
    place->file = function->file;
    place->line = target_python_line(frame->lookup_pc);
    place->function = function->name ? strdup(function->name) : NULL;
    modules->no_memory |= function->name && !place->function;
}

// ... of JavaScript likewise, whether it has code or is interpreted.
static void describe_script(struct stack_modules *modules, const struct stack_options *options,
                            const struct qut_frame *frame, struct stack_place *place)
{
    const struct script_function *function = script_function(modules->target, script_number(frame->lookup_pc));
    *place = (struct stack_place){.pc = frame->pc};
    if (!function || options->no_names)
        return;
    place->file = function->file;
    place->line = script_line(frame->lookup_pc);
    place->function = function->name ? strdup(function->name) : NULL;
    modules->no_memory |= function->name && !place->function;
}

void stack_describe(struct stack_modules *modules, const struct stack_options *options, const struct qut_frame *frame,
                    size_t index, size_t level, struct stack_place *place)
{
    if (frame->flags & QUT_FRAME_PYTHON) {
        describe_python(modules, options, frame, place);
        return;
    }
    if (frame->flags & QUT_FRAME_SCRIPT) {
        describe_script(modules, options, frame, place);
        return;
    }
    struct stack_module *module = stack_module_at(modules, frame->flags & QUT_FRAME_DEX ? frame->pc : frame->lookup_pc);
    *place = (struct stack_place){.pc = frame->pc, .module = module};
    if (frame->flags & QUT_FRAME_DEX) {
        describe_dex(modules, options, frame, module, place);
        return;
    }
    if (!module)
        return;
    bool is_jit = (frame->flags & QUT_FRAME_JIT) && !module->info.is_elf;
    uint64_t vaddr = frame->pc - call_bytes(modules, options, frame, index);
    vaddr -= is_jit ? 0 : stack_module_base(module);
    if (qut_target_word_bytes(modules->target) == 4)
        vaddr = (uint32_t)vaddr;
    // The registers of a thread have the Thumb bit apart from pc, unless they were written down with it (frame 0).
    bool has_bit = (frame->flags & QUT_FRAME_THUMB) && (index == 0 || !(frame->flags & QUT_FRAME_INTERRUPTED));
    if (is_jit) {
        describe_jit(modules, options, frame, level, vaddr, has_bit, place);
        return;
    }
    place->pc = vaddr | (has_bit ? 1 : 0);
    struct symbol symbol;
    if (options->no_names)
        return;
    // Made code that nobody told of while it was walked.
    uint64_t base = module->info.is_elf ? 0 : stack_module_base(module);
    if (module->info.is_elf ? !stack_module_symbol(modules, module, vaddr, &symbol)
                            : !stack_made_symbol(modules, vaddr + base, &symbol))
        return;
    place->function_offset = vaddr + base - symbol.start_vaddr;
    name_function(modules, options, &symbol, place);
}

void stack_place_free(struct stack_place *place)
{
    free(place->function);
    free(place->mangled);
    *place = (struct stack_place){0};
}

uint64_t stack_place_offset(const struct stack_place *place)
{
    const struct qut_module_info *info = &place->module->info;
    if (place->is_address)
        return 0;
    if (place->entry)
        return place->entry_offset;
    return info->is_elf ? info->file_offset : info->start - info->load_bias;
}

const char *stack_place_module(const struct stack_place *place, bool base_name, char *text, size_t text_size)
{
    if (!place->module) {
        if (place->file && place->line)
            snprintf(text, text_size, "%s:%" PRIu32, place->file, place->line);
        else
            snprintf(text, text_size, "%s", place->file ? place->file : "<unknown>");
        return text;
    }
    const struct qut_module_info *info = &place->module->info;
    uint64_t offset = stack_place_offset(place);
    char anonymous[32], suffix[32] = "";
    snprintf(anonymous, sizeof anonymous, "<anonymous:%" PRIx64 ">", info->start);
    if (offset)
        snprintf(suffix, sizeof suffix, " (offset 0x%" PRIx64 ")", offset);
    bool has_soname = info->is_elf && info->file_offset && *info->file_path && *info->soname;
    const char *member = place->entry ? place->entry : has_soname ? info->soname : "";
    const char *path = *info->path ? info->path : anonymous, *slash = *path == '[' ? NULL : strrchr(path, '/');
    snprintf(text, text_size, "%s%s%s%s%s", base_name && slash ? slash + 1 : path,
             info->deleted && !base_name ? " (deleted)" : "", *member ? "!" : "", member, suffix);
    return text;
}

// What was not known of a thread because it was not stopped, or that it did not stay.
static bool asleep_text(const struct stack_thread *thread, char *text, size_t text_size)
{
    const char *call = thread->info.asleep_in;
    bool moved = thread->end.reason == QUT_END_NO_PROGRESS && thread->count == 0;
    if (!call || (thread->end.reason != QUT_END_NO_REGISTER && !moved))
        return false;
    const char *what = moved ? "it did not sleep for long enough" : "more than its pc and sp would be needed";
    if (*call)
        snprintf(text, text_size,
                 "not stopped: it sleeps in %s, which stopping would interrupt; --interrupt stops it too (%s)", call,
                 what);
    else
        snprintf(text, text_size, "not stopped: %s", what);
    return true;
}

const char *stack_end_text(struct stack_modules *modules, const struct stack_thread *thread, char *text,
                           size_t text_size)
{
    const struct qut_end *end = &thread->end;
    if (asleep_text(thread, text, text_size))
        return text;
    if (end->reason == QUT_END_NO_REGISTER && thread->count == 0) {
        snprintf(text, text_size, "no registers: it has ended, or could not be stopped");
        return text;
    }
    const struct stack_module *module = stack_module_at(modules, end->pc);
    const char *path = module && *module->info.path ? module->info.path : "a mapping without a file";
    const char *why = module && module->info.table_reason ? module->info.table_reason : "reason unknown";
    uint64_t pc = end->pc;
    switch (end->reason) {
    case QUT_END_LIMIT: snprintf(text, text_size, "there are more frames (--limit)"); break;
    case QUT_END_NO_MODULE: snprintf(text, text_size, "no module at 0x%" PRIx64, pc); break;
    case QUT_END_NOT_CODE:
        snprintf(text, text_size, "no caller: 0x%" PRIx64 " in %s is not executable", pc, path);
        break;
    case QUT_END_NO_TABLE: snprintf(text, text_size, "no unwind table for %s: %s", path, why); break;
    case QUT_END_NO_ROW: snprintf(text, text_size, "no unwind information at 0x%" PRIx64 " in %s", pc, path); break;
    case QUT_END_REFUSED:
        snprintf(text, text_size, "unwind information at 0x%" PRIx64 " in %s: %s", pc, path,
                 qut_refusal_name(end->refusal));
        break;
    case QUT_END_NO_REGISTER:
        snprintf(text, text_size, "the rule at 0x%" PRIx64 " in %s needs a register that is not known here", pc, path);
        break;
    case QUT_END_BAD_MEMORY:
        snprintf(text, text_size, "the rule at 0x%" PRIx64 " in %s reads 0x%" PRIx64 ", which cannot be read", pc, path,
                 end->address);
        break;
    case QUT_END_NO_PROGRESS: snprintf(text, text_size, "no caller further out on the stack at 0x%" PRIx64, pc); break;
    default: snprintf(text, text_size, "%s at 0x%" PRIx64, qut_end_reason_name(end->reason), pc); break;
    }
    return text;
}
