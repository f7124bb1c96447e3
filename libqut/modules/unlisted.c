// SPDX-License-Identifier: Apache-2.0
// ELF images that are mapped, and that no loader lists: OAT files, which Android's machine maps itself where its loader
// cannot put them at an address, and what other programs load by hand, of a file, of a memfd or as a copy. Nothing is
// believed of them but what is in memory: their bytes may lie, so what they say is compared with what is mapped.
#include "libqut/modules/unlisted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

enum { IMAGES_MAX = 64, HEADERS_MAX = 64, PAGE_MASK = 4095, PAGE_BYTES_MAX = 1 << 16, SEGMENT_BYTES_MAX = 1 << 30 };

static bool has_segment_over(const struct modules_identity *identity, uintptr_t start, uintptr_t end)
{
    bool is_over = false;
    for (uint32_t i = 0; i < identity->header_count && !is_over; i++) {
        const ElfW(Phdr) *header = &identity->headers[i];
        uintptr_t from = (uintptr_t)(identity->load_bias + header->p_vaddr), to = from + header->p_memsz;
        is_over = (header->p_flags & PF_X) && from < to && (from & ~(uintptr_t)PAGE_MASK) < end && start < to;
    }
    return is_over;
}

bool modules_has_code(const struct modules_identity *identity, uintptr_t start, uintptr_t end)
{
    return start < identity->end && (identity->start & ~(uintptr_t)PAGE_MASK) < end &&
           has_segment_over(identity, start, end);
}

// ---- where images begin

// The program headers of an image that may begin with the mapping. False: none does.
static bool read_head(const struct unlisted_mapping *mapping, ElfW(Ehdr) * head, ElfW(Phdr) headers[HEADERS_MAX])
{
    uintptr_t size = mapping->end - mapping->start;
    if (!mapping->is_readable || size < sizeof *head ||
        os_read_self(mapping->start, head, sizeof *head) != sizeof *head ||
        memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != NATIVE_CLASS ||
        head->e_machine != arch_native_arch.elf_machine || head->e_phentsize != sizeof *headers || head->e_phnum == 0 ||
        head->e_phnum > HEADERS_MAX || head->e_phoff > size || size - head->e_phoff < head->e_phnum * sizeof *headers)
        return false;
    size_t bytes = head->e_phnum * sizeof *headers;
    bool is_sound = os_read_self(mapping->start + (uintptr_t)head->e_phoff, headers, bytes) == bytes;
    for (unsigned i = 0; i < head->e_phnum && is_sound; i++)
        is_sound = headers[i].p_filesz <= SEGMENT_BYTES_MAX;
    return is_sound;
}

// Whether the mapping of code begins where a segment of code does, in memory and in the file.
static bool begins_segment(const struct unlisted_mapping *head, const struct unlisted_mapping *code,
                           const ElfW(Phdr) * header, uint64_t load_bias)
{
    uintptr_t start = (uintptr_t)(load_bias + header->p_vaddr);
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || header->p_memsz == 0 || start < code->start ||
        start >= code->end || start - code->start >= PAGE_BYTES_MAX)
        return false;
    uint64_t in_file = head->offset_bytes + header->p_offset - (start - code->start);
    bool is_of_file = code->inode != 0;
    return !is_of_file || (head->inode == code->inode && head->device == code->device && in_file == code->offset_bytes);
}

static bool find_load_bias(const struct unlisted_mapping *head, const struct unlisted_mapping *code,
                           const ElfW(Phdr) * headers, unsigned count, uint64_t *load_bias)
{
    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type != PT_LOAD || headers[i].p_offset > PAGE_MASK)
            continue;
        *load_bias = (uintptr_t)(head->start - (uintptr_t)(headers[i].p_vaddr - headers[i].p_offset));
        for (unsigned j = 0; j < count; j++)
            if (begins_segment(head, code, &headers[j], *load_bias))
                return true;
        return false;
    }
    return false;
}

// ---- one image

// No more than what is executable counts as its code, whatever it says.
static void limit_to(struct modules_identity *identity, const struct unlisted_mapping *code)
{
    if (identity->start < code->start)
        identity->start = code->start;
    if (identity->end > code->end)
        identity->end = code->end;
}

static int add_image(struct modules_unlisted *unlisted, const struct unlisted_mapping *head,
                     const struct unlisted_mapping *code, const ElfW(Ehdr) * elf, uint64_t load_bias)
{
    struct modules_scan *scan = &unlisted->scan;
    size_t count = scan->count;
    const struct os_module module = {
        .path = code->path,
        .load_bias = load_bias,
        .program_headers = (const void *)(head->start + (uintptr_t)elf->e_phoff),
        .program_header_count = elf->e_phnum,
    };
    int result = modules_scan_add(scan, &module);
    if (result != 0 || scan->count == count)
        return result;
    struct modules_found *found = &scan->found[count];
    found->identity.is_unlisted = true;
    unlisted->whole_end = found->identity.end;
    unlisted->code_end = code->end;
    unlisted->head = *head;
    limit_to(&found->identity, code);
    if (found->identity.build_id_size == 0)
        modules_identify_content(&found->identity, found->dynamic, scan->buffer, MODULES_SCAN_BUFFER_BYTES);
    // Another one in its place could not be told from it by a walk: as good as unknown.
    if (found->identity.canary_address == 0) {
        free(found->name);
        scan->count = count;
    }
    return 0;
}

// More of the one that was found last: what follows its code at once, or begins another of its segments.
static bool is_more(struct modules_unlisted *unlisted, const struct unlisted_mapping *code)
{
    struct modules_scan *scan = &unlisted->scan;
    struct modules_identity *last = scan->count ? &scan->found[scan->count - 1].identity : NULL;
    if (!last || code->start >= unlisted->whole_end || !has_segment_over(last, code->start, code->end))
        return false;
    bool is_next = code->start == unlisted->code_end;
    for (uint32_t i = 0; i < last->header_count && !is_next; i++)
        is_next = begins_segment(&unlisted->head, code, &last->headers[i], last->load_bias);
    if (!is_next)
        return false;
    unlisted->code_end = code->end;
    last->end = code->end < unlisted->whole_end ? code->end : unlisted->whole_end;
    return true;
}

static int find_image(struct modules_unlisted *unlisted, const struct unlisted_mapping *code)
{
    ElfW(Ehdr) elf;
    uint64_t load_bias;
    for (unsigned back = 0; back < MODULES_UNLISTED_BACK && back < unlisted->seen_count; back++) {
        struct unlisted_mapping *head = &unlisted->seen[(unlisted->seen_count - 1 - back) % MODULES_UNLISTED_BACK];
        if (head->is_no_head)
            continue;
        ElfW(Phdr) headers[HEADERS_MAX];
        head->is_no_head = !read_head(head, &elf, headers);
        if (!head->is_no_head && find_load_bias(head, code, headers, elf.e_phnum, &load_bias))
            return add_image(unlisted, head, code, &elf, load_bias);
    }
    return 0;
}

// ---- all

static bool is_listed(uintptr_t start, uintptr_t end)
{
    const struct modules_registry *registry = &modules_registry;
    for (size_t i = 0; i < registry->record_count; i++)
        if (!registry->records[i]->identity.is_unlisted &&
            modules_has_code(&registry->records[i]->identity, start, end))
            return true;
    return false;
}

int modules_unlisted_see(struct modules_unlisted *unlisted, const struct os_map_line *line)
{
    struct unlisted_mapping *mapping = &unlisted->seen[unlisted->seen_count++ % MODULES_UNLISTED_BACK];
    *mapping = (struct unlisted_mapping){.start = line->start,
                                         .end = line->end,
                                         .offset_bytes = line->offset_bytes,
                                         .device = line->device,
                                         .inode = line->inode,
                                         .is_readable = line->is_readable};
    if (!line->is_executable || !line->is_readable || unlisted->scan.count == IMAGES_MAX ||
        is_listed(line->start, line->end))
        return 0;
    if (line->path_bytes < sizeof unlisted->path) {
        memcpy(unlisted->path, line->path, line->path_bytes);
        unlisted->path[line->path_bytes] = 0;
        os_maps_unescape(unlisted->path);
    } else {
        unlisted->path[0] = 0;
    }
    mapping->path = unlisted->path;
    return is_more(unlisted, mapping) ? 0 : find_image(unlisted, mapping);
}

int modules_unlisted_take(struct modules_unlisted *unlisted)
{
    const struct modules_registry *registry = &modules_registry;
    bool is_any_known = false;
    for (size_t i = 0; i < registry->record_count && !is_any_known; i++)
        is_any_known = registry->records[i]->identity.is_unlisted;
    int result = unlisted->scan.count || is_any_known ? modules_scan_take(&unlisted->scan, NULL) : 0;
    modules_scan_free(&unlisted->scan);
    return result;
}
