// SPDX-License-Identifier: Apache-2.0
// The functions, or the data, of one ELF image, by address.
#ifndef TRACER_SYMBOLS_SYMBOLS_H
#define TRACER_SYMBOLS_SYMBOLS_H

#include "qutc/input/image.h"

struct symbols;

struct symbol {
    const char *name; // as in the file, not demangled; lives as long as the index
    size_t name_length;
    uint64_t start_vaddr; // on arm without the Thumb bit
    uint64_t end_vaddr;   // start_vaddr: no size is given
    bool has_size;
    bool is_resolver; // the code is of an IFUNC: it says where the function is
    bool is_local;
};

// Takes over the image, also when it fails. load_bias: see input_image_symbol_sections. An image without symbols gives
// an index without symbols. NULL, and *error, without memory only. Takes time in proportion to the number of symbols.
struct symbols *symbols_read(struct input_image *image, uint64_t load_bias, struct base_error *error);
// The same of data: objects that have a size, by their addresses.
struct symbols *symbols_read_data(struct input_image *image, uint64_t load_bias, struct base_error *error);
void symbols_free(struct symbols *symbols);

// The function that contains an address. Of several, the one that begins last; of several names for that, the one with
// a size, then a global one, then the one with fewest leading underscores. A symbol without a size (assembly) reaches
// to the next symbol or the end of its section, where no other contains the address.
bool symbols_find(const struct symbols *symbols, uint64_t vaddr, struct symbol *symbol);

// Whether the image has Go's own table, which tells of all its functions without any symbol.
bool symbols_has_go_functions(const struct input_image *image);

const struct input_image *symbols_image(const struct symbols *symbols);

size_t symbols_count(const struct symbols *symbols);
// All of them, by start: index below symbols_count. Names may be several for one start, and one may come twice.
void symbols_at(const struct symbols *symbols, size_t index, struct symbol *symbol);

#endif
