// SPDX-License-Identifier: Apache-2.0
// Names of compiled methods by an OAT file's tables and the dex files beside it, against its symbols, which are the
// judge: each symbol of a method must have the same name there, and at the same place.
//
// usage: oat_names WITH_SYMBOLS WITHOUT DEX_FILES
//
//   WITH_SYMBOLS  an OAT file with .symtab or .gnu_debugdata
//   WITHOUT       the same compilation without them (or the same file: only its tables are looked at)
//   DEX_FILES     a .vdex file, or a dex file; "-": what WITHOUT leads to
//
// Prints "SYMBOLS symbols of methods, N named, M otherwise, K shared".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/file_map.h"
#include "qutc/input/oat.h"
#include "tracer/dex/oat_methods.h"

static struct input_image *open_image(const char *path)
{
    const struct input_image_options options = {.read_files = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    char text[256];
    if (input_image_open(path, NULL, 0, 0, &options, &image, &error) == 0)
        return image;
    fprintf(stderr, "%s: %s\n", path, base_error_text(&error, text, sizeof text));
    exit(2);
}

// "[DEDUPED]" says that it is one of several names: any of them.
static bool is_shared(const char *name, size_t length)
{
    static const char mark[] = "[DEDUPED]";
    return length >= sizeof mark - 1 && memcmp(name + length - (sizeof mark - 1), mark, sizeof mark - 1) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct input_image *judge = open_image(argv[1]), *image = open_image(argv[2]);
    struct input_file_map map = {.fd = -1};
    bool is_led = strcmp(argv[3], "-") == 0;
    struct base_error error = {0};
    char text[256];
    struct dex_oat *oat = NULL;
    if (!is_led && input_file_map_open(&map, argv[3], 0, 0, INPUT_FILE_MAPPED, &error) != 0)
        return 2;
    oat = is_led ? dex_oat_open(image, argv[2], NULL, &error) : dex_oat_make(image, map.bytes, &error);
    if (!oat) {
        fprintf(stderr, "%s: %s\n", argv[3], base_error_text(&error, text, sizeof text));
        return 2;
    }
    struct input_oat_methods methods;
    size_t symbols = 0, named = 0, otherwise = 0, shared = 0;
    uint64_t last = 0;
    if (input_oat_find_methods(image, &methods, &error) != 0)
        return 2;
    if (getenv("VERBOSE"))
        for (size_t i = 0; i < methods.count; i++)
            printf("0x%jx: dex file %u, class %u, method %u\n", (uintmax_t)methods.items[i].vaddr, methods.items[i].dex,
                   methods.items[i].class_index, methods.items[i].number);
    struct symbols *truth = symbols_read(judge, 0, &error);
    for (uint64_t vaddr = image->oat.code.start; vaddr < image->oat.code.end; vaddr++) {
        struct symbol wanted, found;
        if (!symbols_find(truth, vaddr, &wanted) || wanted.start_vaddr != vaddr || wanted.start_vaddr == last)
            continue;
        last = wanted.start_vaddr;
        bool is_method = memchr(wanted.name, '.', wanted.name_length) != NULL;
        symbols += is_method;
        if (!dex_oat_find(oat, vaddr, &found)) {
            if (is_method && getenv("VERBOSE"))
                printf("none: %.*s\n", (int)wanted.name_length, wanted.name);
            continue;
        }
        named++;
        static const char stub[] = "art_jni_trampoline"; // or the method's name, where it has one of its own
        if (wanted.name_length == sizeof stub - 1 && memcmp(wanted.name, stub, sizeof stub - 1) == 0 &&
            wanted.end_vaddr == found.end_vaddr)
            continue;
        if (is_shared(wanted.name, wanted.name_length) && is_shared(found.name, found.name_length)) {
            shared++;
            continue;
        }
        if (wanted.name_length == found.name_length && memcmp(wanted.name, found.name, found.name_length) == 0 &&
            wanted.end_vaddr == found.end_vaddr)
            continue;
        otherwise++;
        if (otherwise <= 5)
            printf("symbol %.*s to %jx, named %.*s to %jx\n", (int)wanted.name_length, wanted.name,
                   (uintmax_t)wanted.end_vaddr, (int)found.name_length, found.name, (uintmax_t)found.end_vaddr);
    }
    printf("%zu symbols of methods, %zu named, %zu otherwise, %zu shared; %zu pieces of code\n", symbols, named,
           otherwise, shared, dex_oat_count(oat));
    symbols_free(truth);
    input_oat_methods_free(&methods);
    dex_oat_free(oat);
    input_image_close(image);
    if (!is_led)
        input_file_map_close(&map);
    return symbols && named && !otherwise ? 0 : 1;
}
