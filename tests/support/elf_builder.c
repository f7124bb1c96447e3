// SPDX-License-Identifier: Apache-2.0
#include "tests/support/elf_builder.h"

#include <ftw.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static void must(bool good)
{
    if (!good)
        abort();
}

// Memory for this many bytes, in steps of powers of two: large buffers grow byte by byte too.
static size_t room_for(size_t size)
{
    size_t room = 64;
    while (room <= size)
        room *= 2;
    return room;
}

size_t build_add(struct build_buffer *buffer, const void *data, size_t size)
{
    size_t at = buffer->size;
    if (!buffer->data || room_for(buffer->size) != room_for(buffer->size + size)) {
        uint8_t *grown = realloc(buffer->data, room_for(buffer->size + size));
        must(grown != NULL);
        buffer->data = grown;
    }
    if (data && size)
        memcpy(buffer->data + at, data, size);
    else
        memset(buffer->data + at, 0, size);
    buffer->size += size;
    return at;
}

void build_align(struct build_buffer *buffer, size_t alignment)
{
    while (buffer->size % alignment)
        build_add(buffer, NULL, 1);
}

static void add_segment(struct build_buffer *file, const struct build_elf *spec, size_t at,
                        const struct build_segment *segment, const uint64_t *offsets)
{
    for (size_t i = 0; i < BUILD_SECTIONS_MAX && spec->sections[i].name; i++) {
        const struct build_section *section = &spec->sections[i];
        if (strcmp(section->name, segment->section) != 0)
            continue;
        uint64_t size = section->size + segment->extra_bytes;
        uint64_t file_size = section->data ? size : 0;
        if (spec->is_32) {
            Elf32_Phdr raw = {segment->type,
                              (Elf32_Off)offsets[i],
                              (Elf32_Addr)section->vaddr,
                              0,
                              (Elf32_Word)file_size,
                              (Elf32_Word)size,
                              segment->flags,
                              4};
            memcpy(file->data + at, &raw, sizeof raw);
        } else {
            Elf64_Phdr raw = {segment->type, segment->flags, offsets[i], section->vaddr, 0, file_size, size, 4};
            memcpy(file->data + at, &raw, sizeof raw);
        }
        return;
    }
    must(false);
}

static void add_section_header(struct build_buffer *file, bool is_32, const struct build_section *section,
                               uint32_t name, uint64_t offset)
{
    if (is_32) {
        Elf32_Shdr raw = {name,
                          section->type,
                          (Elf32_Word)section->flags,
                          (Elf32_Addr)section->vaddr,
                          (Elf32_Off)offset,
                          (Elf32_Word)section->size,
                          0,
                          0,
                          (Elf32_Word)section->alignment,
                          0};
        build_add(file, &raw, sizeof raw);
    } else {
        Elf64_Shdr raw = {
            name, section->type, section->flags, section->vaddr, offset, section->size, 0, 0, section->alignment, 0};
        build_add(file, &raw, sizeof raw);
    }
}

static void set_header(struct build_buffer *file, const struct build_elf *spec, uint16_t segments, uint16_t sections,
                       uint64_t sections_at)
{
    uint16_t type = spec->type ? spec->type : ET_DYN;
    uint16_t names = sections ? (uint16_t)(sections - 1) : 0;
    uint8_t ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', spec->is_32 ? ELFCLASS32 : ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    if (spec->is_32) {
        Elf32_Ehdr raw = {{0},
                          type,
                          spec->machine ? spec->machine : EM_ARM,
                          1,
                          0,
                          segments ? sizeof raw : 0,
                          (Elf32_Off)sections_at,
                          0,
                          sizeof raw,
                          sizeof(Elf32_Phdr),
                          segments,
                          sizeof(Elf32_Shdr),
                          sections,
                          names};
        memcpy(raw.e_ident, ident, sizeof ident);
        memcpy(file->data, &raw, sizeof raw);
    } else {
        Elf64_Ehdr raw = {{0},
                          type,
                          spec->machine ? spec->machine : EM_X86_64,
                          1,
                          0,
                          segments ? sizeof raw : 0,
                          sections_at,
                          0,
                          sizeof raw,
                          sizeof(Elf64_Phdr),
                          segments,
                          sizeof(Elf64_Shdr),
                          sections,
                          names};
        memcpy(raw.e_ident, ident, sizeof ident);
        memcpy(file->data, &raw, sizeof raw);
    }
}

struct build_buffer build_elf(const struct build_elf *spec)
{
    struct build_buffer file = {0};
    struct build_buffer names = {0};
    uint64_t offsets[BUILD_SECTIONS_MAX] = {0};
    uint32_t name_offsets[BUILD_SECTIONS_MAX] = {0};
    uint16_t segments = 0;
    uint16_t sections = 0;
    while (segments < BUILD_SEGMENTS_MAX && spec->segments[segments].section)
        segments++;
    build_add(&file, NULL, spec->is_32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr));
    size_t segments_at = build_add(&file, NULL, segments * (spec->is_32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr)));
    build_add(&names, "", 1);
    for (; sections < BUILD_SECTIONS_MAX && spec->sections[sections].name; sections++) {
        const struct build_section *section = &spec->sections[sections];
        build_align(&file, 16);
        offsets[sections] = file.size;
        if (section->data)
            build_add(&file, section->data, section->size);
        name_offsets[sections] = (uint32_t)build_add(&names, section->name, strlen(section->name) + 1);
    }
    for (size_t i = 0; i < segments; i++)
        add_segment(&file, spec, segments_at + i * (spec->is_32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr)),
                    &spec->segments[i], offsets);
    uint64_t headers_at = 0;
    if (!spec->no_section_headers) {
        struct build_section table = {.name = ".shstrtab", .type = SHT_STRTAB, .size = names.size + 10};
        uint32_t table_name = (uint32_t)build_add(&names, ".shstrtab", 10);
        size_t names_at = build_add(&file, names.data, names.size);
        build_align(&file, 8);
        headers_at = file.size;
        add_section_header(&file, spec->is_32, &(struct build_section){.type = SHT_NULL}, 0, 0);
        for (size_t i = 0; i < sections; i++)
            add_section_header(&file, spec->is_32, &spec->sections[i], name_offsets[i], offsets[i]);
        add_section_header(&file, spec->is_32, &table, table_name, names_at);
    }
    set_header(&file, spec, segments, spec->no_section_headers ? 0 : (uint16_t)(sections + 2), headers_at);
    free(names.data);
    return file;
}

struct input_image *build_open_bytes(const struct build_buffer *file, struct base_error *error)
{
    struct input_image *image = NULL;
    *error = (struct base_error){0};
    input_image_open_memory((struct base_bytes){file->data, file->size}, "built", NULL, &image, error);
    return image;
}

struct input_image *build_open(const struct build_elf *spec, struct base_error *error)
{
    struct build_buffer file = build_elf(spec);
    struct input_image *image = build_open_bytes(&file, error);
    free(file.data);
    return image;
}

static void put(struct build_buffer *buffer, uint64_t value, size_t size)
{
    build_add(buffer, &value, size);
}

static void put_entry(struct build_buffer *zip, const struct build_member *member, bool central, uint32_t local_offset)
{
    put(zip, central ? 0x02014b50 : 0x04034b50, 4);
    if (central)
        put(zip, 20, 2);
    put(zip, 20, 2);
    put(zip, 0, 2);
    put(zip, member->method, 2);
    put(zip, 0, 4);
    put(zip, crc32(0, member->data, (uInt)member->size), 4);
    put(zip, member->size, 4);
    put(zip, member->size, 4);
    put(zip, strlen(member->name), 2);
    put(zip, 0, 2);
    if (central) {
        put(zip, 0, 2);
        put(zip, 0, 8);
        put(zip, local_offset, 4);
    }
    build_add(zip, member->name, strlen(member->name));
}

struct build_buffer build_zip(const struct build_member *members, size_t count, const char *comment)
{
    struct build_buffer zip = {0};
    uint32_t local[64];
    must(count <= 64);
    for (size_t i = 0; i < count; i++) {
        local[i] = (uint32_t)zip.size;
        put_entry(&zip, &members[i], false, 0);
        build_add(&zip, members[i].data, members[i].size);
    }
    size_t directory = zip.size;
    for (size_t i = 0; i < count; i++)
        put_entry(&zip, &members[i], true, local[i]);
    size_t directory_size = zip.size - directory;
    put(&zip, 0x06054b50, 4);
    put(&zip, 0, 4);
    put(&zip, count, 2);
    put(&zip, count, 2);
    put(&zip, directory_size, 4);
    put(&zip, directory, 4);
    put(&zip, strlen(comment), 2);
    build_add(&zip, comment, strlen(comment));
    return zip;
}

struct build_buffer build_zlib(const void *data, size_t size)
{
    uLongf packed = compressBound(size);
    struct build_buffer buffer = {0};
    build_add(&buffer, NULL, packed);
    must(compress(buffer.data, &packed, data, size) == Z_OK);
    buffer.size = packed;
    return buffer;
}

struct build_buffer build_zstd(const void *data, size_t size)
{
    struct build_buffer buffer = {0};
    build_add(&buffer, NULL, ZSTD_compressBound(size));
    buffer.size = ZSTD_compress(buffer.data, buffer.size, data, size, 3);
    must(!ZSTD_isError(buffer.size));
    return buffer;
}

struct build_buffer build_xz(const void *data, size_t size)
{
    struct build_buffer buffer = {0};
    size_t packed = 0;
    build_add(&buffer, NULL, lzma_stream_buffer_bound(size));
    must(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, data, size, buffer.data, &packed, buffer.size) == LZMA_OK);
    buffer.size = packed;
    return buffer;
}

struct build_buffer build_compressed64(uint32_t method, uint64_t claimed_size, const struct build_buffer *packed)
{
    struct build_buffer section = {0};
    Elf64_Chdr header = {.ch_type = method, .ch_size = claimed_size, .ch_addralign = 8};
    build_add(&section, &header, sizeof header);
    build_add(&section, packed->data, packed->size);
    return section;
}

char *build_directory(void)
{
    const char *root = getenv("TMPDIR");
    char *path = NULL;
    must(asprintf(&path, "%s/qut-input-XXXXXX", root ? root : "/tmp") > 0);
    must(mkdtemp(path) != NULL);
    return path;
}

char *build_file(const char *directory, const char *name, const void *data, size_t size)
{
    char *path = NULL;
    must(asprintf(&path, "%s/%s", directory, name) > 0);
    for (char *slash = path + strlen(directory) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    must(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void build_remove(char *directory)
{
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(directory);
}

char *corpus_path(const char *name)
{
    const char *shared = getenv("QUT_SHARED");
    char *path = NULL;
    if (shared && *shared) {
        must(asprintf(&path, "%s/corpus/%s", shared, name) > 0);
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    printf("SKIP: no corpus/%s under QUT_SHARED\n", name);
    fflush(stdout);
    return NULL;
}
