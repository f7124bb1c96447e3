// SPDX-License-Identifier: Apache-2.0
// A JIT's list in a memory of any bytes, which changes while it is read; its symbol files; and a symbol looked for in
// the same bytes. Input: an architecture; how many changes; three bytes for each of them; the memory.
#include "libqut/elf/dynamic_symbol.h"
#include "tests/proof/fuzz/fuzz.h"
#include "tests/support/fake_jit_list.h"

enum { HEAD_BYTES = 2, CHANGE_BYTES = 3, CHECKED_ENTRIES = 64, COMPILED_SYMFILES = 2, RANGES = 4, DYNAMIC_AT = 0x400 };

struct changing {
    const uint8_t *next, *end; // changes: after how many reads, where (in pairs of bytes), what
    size_t due;                // the number of the read that the next one comes before
};

static void before_read(struct fake_list *list, size_t read)
{
    struct changing *changing = list->data;
    while (changing->next < changing->end && read >= changing->due) {
        // Where descriptor and entries are, most often.
        size_t at = FAKE_DESCRIPTOR - FAKE_BASE + (size_t)changing->next[1] * (changing->next[0] & 0x80 ? 63 : 1);
        list->bytes[at % FAKE_BYTES] ^= changing->next[2];
        changing->next += CHANGE_BYTES;
        if (changing->next < changing->end)
            changing->due = read + (changing->next[0] & 0x7f);
    }
}

static void compile_blob(const uint8_t *bytes, size_t size)
{
    const struct input_image_options options = {.unpack_max_bytes = 1 << 20, .jit = true};
    struct base_error error = {0};
    struct input_image *image;
    if (input_image_open_memory((struct base_bytes){bytes, size}, "fuzz", &options, &image, &error) != 0) {
        fuzz_require(error.reason != BASE_OK);
        return;
    }
    fuzz_compile(image);
    input_image_close(image);
}

static void use_symfile(const struct fake_list *list, const struct art_jit_list *read, size_t index)
{
    uint8_t *bytes;
    size_t size;
    struct art_jit_range ranges[RANGES];
    enum art_jit_fault fault =
        art_jit_copy_symfile(&list->memory, &read->descriptor, &read->entries[index], &bytes, &size);
    fuzz_require((fault == ART_JIT_FINE) == (bytes != NULL));
    if (!bytes)
        return;
    fuzz_require(size == read->entries[index].symfile_bytes);
    art_jit_complete_symfile(&list->memory, bytes, size);
    size_t count = art_jit_code_ranges(list->memory.arch, bytes, size, ranges, RANGES);
    fuzz_require(count <= RANGES);
    for (size_t i = 0; i < count; i++)
        fuzz_require(ranges[i].start < ranges[i].end);
    count = art_jit_frame_sections(list->memory.arch, bytes, size, ranges, RANGES);
    for (size_t i = 0; i < count; i++)
        fuzz_require(ranges[i].start <= ranges[i].end && ranges[i].end <= size);
    if (index < COMPILED_SYMFILES)
        compile_blob(bytes, size);
    free(bytes);
}

int fuzz_jit_list(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES || size < HEAD_BYTES + (size_t)data[1] * CHANGE_BYTES)
        return 0;
    static struct fake_list list;
    struct changing changing = {data + HEAD_BYTES, data + HEAD_BYTES + (size_t)data[1] * CHANGE_BYTES, 0};
    const uint8_t *memory = changing.end;
    size_t memory_size = size - (size_t)(memory - data);
    memset(&list, 0, sizeof list);
    list.memory = (struct elf_art_memory){
        .read = fake_read, .context = &list, .arch = arch_by_id((enum qut_arch_id)(1 + data[0] % (QUT_ARCH_END - 1)))};
    list.before_read = before_read;
    list.data = &changing;
    memcpy(list.bytes, memory, memory_size < FAKE_BYTES ? memory_size : FAKE_BYTES);

    struct art_jit_list read;
    enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    fuzz_require(*art_jit_fault_text(fault));
    bool may_have_some = fault == ART_JIT_FINE || fault == ART_JIT_UNREADABLE || fault == ART_JIT_CYCLE;
    fuzz_require(may_have_some || (read.count == 0 && !read.entries));
    size_t checked = read.count < CHECKED_ENTRIES ? read.count : CHECKED_ENTRIES;
    for (size_t i = 0; i < checked; i++) {
        const struct art_jit_entry *entry = &read.entries[i];
        fuzz_require(entry->address && entry->symfile_address && entry->symfile_bytes && !(entry->seqlock & 1));
        for (size_t j = 0; j < i; j++)
            fuzz_require(read.entries[j].address != entry->address);
        use_symfile(&list, &read, i);
    }
    art_jit_list_free(&read);
    elf_art_find_symbol(&list.memory, FAKE_BASE, FAKE_BASE + DYNAMIC_AT, "__jit_debug_descriptor");
    return 0;
}
