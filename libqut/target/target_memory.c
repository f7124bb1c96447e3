// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/target/opened_target.h"

enum { CODE_WINDOW_BEFORE = 64, WINDOW_ALIGN = 256 };

// Bytes of the file that is mapped there and was not changed since: only of mappings that cannot be written.
static size_t read_file_behind(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    struct target_map *map = target_maps_find(&target->maps, address);
    if (!map || map->writable || !map->path[0])
        return 0;
    struct target_image *image = target_image_of(target, map);
    if (!image || !image->file_path)
        return 0;
    if (target->open_image != image) {
        if (target->open_fd >= 0)
            os_close_file(target->open_fd);
        target->open_fd = os_open_file(image->file_path, NULL);
        target->open_image = target->open_fd >= 0 ? image : NULL;
    }
    if (target->open_fd < 0)
        return 0;
    uint64_t left = map->end - address;
    return os_read_at(target->open_fd, map->offset + (address - map->start), bytes, size < left ? size : (size_t)left);
}

size_t target_read_any(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    uint8_t *at = bytes;
    size_t done = 0;
    while (done < size && address + done >= address) {
        size_t got = target->kind->read(target, address + done, at + done, size - done);
        if (got == 0 && target->files_are_memory)
            got = read_file_behind(target, address + done, at + done, size - done);
        if (got == 0)
            break;
        done += got;
    }
    return done;
}

void target_begin_reads(struct qut_target *target)
{
    for (unsigned i = 0; i < TARGET_STACK_WINDOWS; i++)
        target->windows[i].size = 0;
    target->code_window.size = 0;
    target->older_window = 0;
    target->note_count = 0;
    target->notes_overflow = false;
}

static const uint8_t *in_window(const struct target_window *window, uint64_t address, size_t size)
{
    uint64_t into = address - window->start;
    return into < window->size && window->size - into >= size ? window->bytes + into : NULL;
}

// Not beyond the mapping: a stack's outermost frames end there, and asking for more costs a refused call.
static void fill_window(struct qut_target *target, struct target_window *window, uint64_t start)
{
    const struct target_map *map = target_maps_find(&target->maps, start);
    uint64_t left = map ? map->end - start : TARGET_STACK_WINDOW_BYTES;
    size_t size = left < TARGET_STACK_WINDOW_BYTES ? (size_t)left : TARGET_STACK_WINDOW_BYTES;
    window->start = start;
    window->size = target_read_any(target, start, window->bytes, size);
}

// NULL: it is not there, and *elsewhere says whether it may be looked for in memory.
static const uint8_t *copied_bytes(const struct qut_target *target, uint64_t address, size_t size, bool *elsewhere)
{
    struct target_copy *copy = target->copy;
    for (unsigned i = 0; i < TARGET_COPY_PIECES; i++) {
        const uint8_t *found = in_window(&copy->pieces[i], address, size);
        if (found && i == 0 && address + size > copy->reached)
            copy->reached = address + size;
        if (found)
            return found;
    }
    const struct target_map *map = target_maps_find(&target->maps, address);
    *elsewhere = map && !map->writable;
    return NULL;
}

static const uint8_t *stack_bytes(struct qut_target *target, uint64_t address, size_t size)
{
    bool elsewhere = true;
    const uint8_t *copied = target->copy ? copied_bytes(target, address, size, &elsewhere) : NULL;
    if (copied || !elsewhere)
        return copied;
    for (unsigned i = 0; i < TARGET_STACK_WINDOWS; i++) {
        const uint8_t *found = in_window(&target->windows[i], address, size);
        if (found) {
            target->older_window = TARGET_STACK_WINDOWS - 1 - i;
            return found;
        }
    }
    // From a little below, as frames are read from the inside out. Where that cannot be read, from the address itself.
    struct target_window *window = &target->windows[target->older_window];
    fill_window(target, window, address & ~(uint64_t)(WINDOW_ALIGN - 1));
    if (!in_window(window, address, size))
        fill_window(target, window, address);
    const uint8_t *found = in_window(window, address, size);
    if (found)
        target->older_window = (target->older_window + 1) % TARGET_STACK_WINDOWS;
    return found;
}

bool target_read_word(void *context, uint64_t address, uint64_t *value)
{
    struct qut_target *target = context;
    const uint8_t *found = stack_bytes(target, address, target->arch->word_bytes);
    if (!found)
        return false;
    *value = 0;
    memcpy(value, found, target->arch->word_bytes);
    if (target->notes) {
        if (target->note_count < TARGET_READ_NOTES_MAX)
            target->notes[target->note_count++] = (struct target_read_note){address, *value};
        else
            target->notes_overflow = true;
    }
    return true;
}

size_t target_read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    struct qut_target *target = context;
    struct target_window *window = &target->code_window;
    const uint8_t *found = in_window(window, address, size);
    if (!found) {
        uint64_t start = address & ~(uint64_t)(CODE_WINDOW_BEFORE - 1);
        start -= start >= CODE_WINDOW_BEFORE ? CODE_WINDOW_BEFORE : 0;
        window->start = start;
        window->size = target_read_any(target, start, window->bytes, TARGET_CODE_WINDOW_BYTES);
        found = in_window(window, address, size);
    }
    if (!found)
        return target_read_any(target, address, bytes, size);
    memcpy(bytes, found, size);
    return size;
}

bool target_words_hold(struct qut_target *target)
{
    struct target_read_note *notes = target->notes;
    size_t count = target->note_count;
    bool hold = !target->notes_overflow;
    target_begin_reads(target);
    target->notes = NULL; // these reads are not noted
    for (size_t i = 0; hold && i < count; i++) {
        uint64_t value;
        hold = target_read_word(target, notes[i].address, &value) && value == notes[i].value;
    }
    target->notes = notes;
    return hold;
}
