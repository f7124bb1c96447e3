// SPDX-License-Identifier: Apache-2.0
// One file that code of the trace is in, opened for its names: an ELF image, wherever it and its symbols are, or dex
// files. It is open only while its places are named.
#ifndef TRACER_NAMES_NAMED_FILE_H
#define TRACER_NAMES_NAMED_FILE_H

#include "tracer/dex/oat_methods.h"
#include "tracer/names/inlines.h"
#include "tracer/names/names.h"
#include "tracer/names/plt_names.h"
#include "tracer/names/starts.h"
#include "tracer/symbols/symbols.h"

enum { NAMES_WHY_MAX = 256 };

struct names_debuginfod;
struct names_dex;

struct names_file {
    const struct names_options *options; // with a debug root
    const struct trace_module *module;   // one of those that are this file
    struct names_debuginfod *debuginfod; // NULL: no server is asked

    bool is_opened;                  // it was tried
    struct input_image *image;       // the file as the process had it; NULL: it cannot be had
    struct symbols *symbols;         // of image, which they own; NULL: none
    struct input_image *debug_image; // a debug file that the image itself did not lead to; NULL: none
    struct symbols *debug_symbols;
    bool starts_are_read;
    struct names_starts starts; // of functions, by unwind information
    bool plt_is_read;
    struct names_plt plt;
    bool inlines_are_opened;
    struct names_inlines *inlines; // NULL: no debug information
    struct names_dex *dex;
    bool oat_is_read;
    struct dex_oat *oat;     // compiled methods that symbols do not name; NULL: none
    char why[NAMES_WHY_MAX]; // names are missing; "": they are not
    bool no_memory;          // something of the file was not read for want of it
};

// Before that a file is {.options, .module, .debuginfod}, and nothing is opened.
void names_file_close(struct names_file *file);

// The function at a virtual address. False where it is not known; file->why says why. A symbol without a size does not
// reach over the start of another function.
bool names_file_symbol(struct names_file *file, uint64_t vaddr, struct symbol *symbol);

// Where the function begins that has no name. Ask after names_file_symbol. False: not even that is known.
bool names_file_start(struct names_file *file, uint64_t vaddr, uint64_t *start_vaddr);

// Whether an address that has no name jumps to another module; and to which function (empty: not known). Ask after
// names_file_symbol.
bool names_file_is_plt(struct names_file *file, uint64_t vaddr, struct base_bytes *target);

// As names_inlines_at; 0 where there is no debug information.
size_t names_file_inlines(struct names_file *file, uint64_t vaddr,
                          struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX]);

// The method that bytecode at an offset of the file (with FILE; else at a virtual address) is of: allocated. NULL: not
// known.
char *names_file_method(struct names_file *file, uint64_t pc);

#endif
