// SPDX-License-Identifier: Apache-2.0
// Android's linker counts the modules that it adds and removes in two variables of its own, and tells them with
// dl_iterate_phdr, since Android 11. It exports neither, but its file keeps its symbol table: seen in the linker64 of
// Android 14. That of 8.1 has one too, without them.
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"

enum { SECTIONS_MAX = 128, SYMBOLS_MAX = 1 << 18, SYMBOLS_READ = 512 };

static const char *const names[] = {"__dl__ZL21g_module_load_counter", "__dl__ZL23g_module_unload_counter"};

struct file {
    int fd;
    ElfW(Shdr) symbols, strings;
    ElfW(Sym) buffer[SYMBOLS_READ];
};

static bool find_tables(struct file *file)
{
    ElfW(Ehdr) header;
    if (os_read_at(file->fd, 0, &header, sizeof header) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != (sizeof(uintptr_t) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header.e_shentsize != sizeof file->symbols || header.e_shnum > SECTIONS_MAX)
        return false;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        ElfW(Shdr) *symbols = &file->symbols;
        if (os_read_at(file->fd, header.e_shoff + i * sizeof *symbols, symbols, sizeof *symbols) != sizeof *symbols)
            return false;
        if (symbols->sh_type == SHT_SYMTAB)
            return symbols->sh_entsize == sizeof file->buffer[0] && symbols->sh_link < header.e_shnum &&
                   os_read_at(file->fd, header.e_shoff + symbols->sh_link * sizeof *symbols, &file->strings,
                              sizeof file->strings) == sizeof file->strings;
    }
    return false;
}

static bool is_named(const struct file *file, const ElfW(Sym) * symbol, const char *name)
{
    char read[64];
    size_t size = strlen(name) + 1;
    return symbol->st_name < file->strings.sh_size && size <= file->strings.sh_size - symbol->st_name &&
           os_read_at(file->fd, file->strings.sh_offset + symbol->st_name, read, size) == size &&
           memcmp(read, name, size) == 0;
}

static void look_at(const struct file *file, const ElfW(Sym) * symbol, uint64_t vaddrs[2])
{
    // Few symbols are objects of eight bytes: names are read of those only.
    if ((symbol->st_info & 15) != STT_OBJECT || symbol->st_size != sizeof(uint64_t) || symbol->st_shndx == SHN_UNDEF)
        return;
    for (unsigned i = 0; i < 2; i++)
        if (vaddrs[i] == 0 && is_named(file, symbol, names[i]))
            vaddrs[i] = symbol->st_value;
}

bool os_linker_counters(const char *path, uint64_t vaddrs[2])
{
    vaddrs[0] = vaddrs[1] = 0;
    struct file *file = malloc(sizeof *file);
    if (!file)
        return false;
    file->fd = os_open_file(path, NULL);
    uint64_t count = file->fd >= 0 && find_tables(file) ? file->symbols.sh_size / sizeof file->buffer[0] : 0;
    count = count < SYMBOLS_MAX ? count : SYMBOLS_MAX;
    for (uint64_t first = 0, got = 1; got && first < count && !(vaddrs[0] && vaddrs[1]); first += got) {
        size_t wanted = count - first < SYMBOLS_READ ? (size_t)(count - first) : SYMBOLS_READ;
        got = os_read_at(file->fd, file->symbols.sh_offset + first * sizeof file->buffer[0], file->buffer,
                         wanted * sizeof file->buffer[0]) /
              sizeof file->buffer[0];
        for (uint64_t i = 0; i < got; i++)
            look_at(file, &file->buffer[i], vaddrs);
    }
    if (file->fd >= 0)
        os_close_file(file->fd);
    free(file);
    return vaddrs[0] && vaddrs[1];
}
