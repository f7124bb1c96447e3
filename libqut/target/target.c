// SPDX-License-Identifier: Apache-2.0
// The public face of every kind of target.
#include "libqut/target/opened_target.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"

int target_fail(struct qut_target_error *error, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return -1;
}

// Callers of older versions know fewer options.
static struct qut_target_options known_options(const struct qut_target_options *given)
{
    struct qut_target_options options = {.size = sizeof options};
    if (given)
        memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

struct qut_target *target_new(const struct target_kind *kind, const struct qut_target_options *given)
{
    const struct qut_target_options options = known_options(given);
    struct qut_target *target = calloc(1, sizeof *target);
    if (!target)
        return NULL;
    target->kind = kind;
    target->pac_mask = options.pac_mask;
    target->pac_mask_given = options.pac_mask != 0;
    target->interrupt = options.interrupt;
    target->one_by_one = options.one_by_one;
    target->frame_pointers = options.frame_pointers;
    target->compile = options.compile;
    target->compile_context = options.compile_context;
    target->open_fd = -1;
    target->cache_directory = options.cache_directory ? strdup(options.cache_directory) : NULL;
    target->sysroot = options.sysroot ? strdup(options.sysroot) : NULL;
    bool complete = (!options.cache_directory || target->cache_directory) && (!options.sysroot || target->sysroot);
    for (unsigned i = 0; i < TARGET_STACK_WINDOWS; i++)
        complete &= (target->windows[i].bytes = malloc(TARGET_STACK_WINDOW_BYTES)) != NULL;
    complete &= (target->code_window.bytes = malloc(TARGET_CODE_WINDOW_BYTES)) != NULL;
    if (!complete) {
        qut_target_close(target);
        return NULL;
    }
    return target;
}

void qut_target_close(struct qut_target *target)
{
    if (!target)
        return;
    target->kind->close(target);
    if (target->open_fd >= 0)
        os_close_file(target->open_fd);
    target_free_machine(target);
    target_free_perf_map(target);
    target_free_jit_dump(target);
    target_free_python(target);
    if (target->free_v8)
        target->free_v8(target);
    target_free_images(target);
    target_maps_free(&target->maps);
    for (unsigned i = 0; i < TARGET_STACK_WINDOWS; i++)
        free(target->windows[i].bytes);
    free(target->code_window.bytes);
    free(target->note_room);
    free(target->threads);
    free(target->cache_directory);
    free(target->sysroot);
    free(target);
}

struct qut_target_thread *target_add_thread(struct qut_target *target, pid_t tid)
{
    if (target->thread_count == target->thread_capacity) {
        size_t capacity = target->thread_capacity ? 2 * target->thread_capacity : 16;
        struct qut_target_thread *threads = realloc(target->threads, capacity * sizeof *threads);
        if (!threads)
            return NULL;
        target->threads = threads;
        target->thread_capacity = capacity;
    }
    struct qut_target_thread *thread = &target->threads[target->thread_count++];
    *thread = (struct qut_target_thread){.info.tid = tid};
    return thread;
}

static int by_tid(const void *a, const void *b)
{
    const struct qut_target_thread *x = a, *y = b;
    return x->info.tid < y->info.tid ? -1 : x->info.tid > y->info.tid;
}

void target_sort_threads(struct qut_target *target)
{
    if (target->thread_count)
        qsort(target->threads, target->thread_count, sizeof *target->threads, by_tid);
}

void target_take_auxv(struct qut_target *target, const uint8_t *bytes, size_t size, uint64_t *vdso)
{
    unsigned word = target->arch->word_bytes;
    for (size_t at = 0; size - at >= 2 * word && at <= size; at += 2 * word) {
        uint64_t kind = 0, value = 0;
        memcpy(&kind, bytes + at, word);
        memcpy(&value, bytes + at + word, word);
        if (kind == AT_ENTRY)
            target->program_entry = value;
        else if (kind == AT_BASE)
            target->linker_base = value;
        else if (kind == AT_SYSINFO_EHDR && vdso)
            *vdso = value;
    }
}

uint64_t target_pac_mask_of_maps(const struct qut_target *target)
{
    enum { ADDRESS_BITS_LEAST = 39, SIGN_BIT = 55 }; // bit 55 tells kernel from user addresses, and is no part of it
    if (!target->arch->has_signed_ra || target->maps.count == 0)
        return 0;
    uint64_t highest = target->maps.items[target->maps.count - 1].end - 1;
    unsigned bits = highest ? 64 - (unsigned)__builtin_clzll(highest) : 0;
    bits = bits < ADDRESS_BITS_LEAST ? ADDRESS_BITS_LEAST : bits;
    return bits < SIGN_BIT ? ((uint64_t)1 << SIGN_BIT) - ((uint64_t)1 << bits) : 0;
}

const char *qut_target_arch(const struct qut_target *target)
{
    return target->arch->name;
}

unsigned qut_target_word_bytes(const struct qut_target *target)
{
    return target->arch->word_bytes;
}

int qut_target_stop(struct qut_target *target, struct qut_target_error *error)
{
    if (!target->stopped && target->kind->stop)
        return target->kind->stop(target, error);
    target->stopped = true;
    return 0;
}

void qut_target_resume_thread(struct qut_target *target, size_t thread)
{
    if (target->kind->resume_thread && thread < target->thread_count)
        target->kind->resume_thread(target, &target->threads[thread]);
}

void qut_target_resume(struct qut_target *target)
{
    if (!target->kind->resume_thread)
        return;
    for (size_t i = 0; i < target->thread_count; i++)
        target->kind->resume_thread(target, &target->threads[i]);
    if (target->stopped && !target->one_by_one)
        target->longest_ns = os_now_ns() - target->stop_began_ns;
    target->stopped = false;
}

uint64_t qut_target_stopped_ns(const struct qut_target *target)
{
    return target->longest_ns;
}

size_t qut_target_thread_count(struct qut_target *target)
{
    if (!target->stopped && target->kind->list_threads)
        target->kind->list_threads(target);
    return target->thread_count;
}

pid_t qut_target_tid(const struct qut_target *target, size_t thread, const char **asleep_in)
{
    bool is_there = thread < target->thread_count;
    if (asleep_in)
        *asleep_in = is_there ? target->threads[thread].info.asleep_in : NULL;
    return is_there ? target->threads[thread].info.tid : 0;
}

void qut_target_thread(struct qut_target *target, size_t thread, struct qut_thread_info *info)
{
    *info = (struct qut_thread_info){0};
    if (thread >= target->thread_count)
        return;
    // Not while the process waits to be stopped.
    if (target->kind->name_thread && !target->threads[thread].info.name[0])
        target->kind->name_thread(target, &target->threads[thread]);
    *info = target->threads[thread].info;
}

bool qut_target_module(struct qut_target *target, uint64_t address, struct qut_module_info *info)
{
    struct target_map *map = target_maps_find(&target->maps, address);
    const struct target_image *image = map ? target_image_of(target, map) : NULL;
    *info = (struct qut_module_info){0};
    if (!image)
        return false;
    *info = (struct qut_module_info){
        .path = image->path,
        .file_path = image->file_path ? image->file_path : "",
        .file_offset = image->file_offset,
        .start = image->start,
        .load_bias = image->load_bias,
        .soname = image->soname ? image->soname : "",
        .build_id = image->build_id,
        .build_id_size = image->build_id_size,
        .is_elf = image->is_elf,
        .deleted = image->deleted,
        .table_reason = image->table_state == TARGET_TABLE_NONE ? image->reason : NULL,
    };
    return true;
}

size_t qut_target_read(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    return target_read_any(target, address, bytes, size);
}
