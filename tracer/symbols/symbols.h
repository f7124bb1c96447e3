// SPDX-License-Identifier: Apache-2.0
// The functions of one ELF image, by address.
#ifndef TRACER_SYMBOLS_SYMBOLS_H
#define TRACER_SYMBOLS_SYMBOLS_H

#include "qutc/input/image.h"

struct qut_symbols;

struct qut_symbol {
    const char *name; // as in the file, not demangled; lives as long as the index
    size_t name_length;
    uint64_t start_vaddr; // on arm without the Thumb bit
    bool has_size;
};

// Takes over the image, also when it fails. load_bias: see qutc_image_symbol_sections. An image without symbols gives
// an index without symbols. NULL, and *error, without memory only. Takes time in proportion to the number of symbols.
struct qut_symbols *qut_symbols_read(struct qutc_image *image, uint64_t load_bias, struct qutc_error *error);
void qut_symbols_free(struct qut_symbols *symbols);

// The function that contains an address. Of several, the one that begins last; of several names for that, the one with
// a size, then a global one, then the one with fewest leading underscores. A symbol without a size (assembly) reaches
// to the next symbol or the end of its section, where no other contains the address.
bool qut_symbols_find(const struct qut_symbols *symbols, uint64_t vaddr, struct qut_symbol *symbol);

size_t qut_symbols_count(const struct qut_symbols *symbols);

#endif
