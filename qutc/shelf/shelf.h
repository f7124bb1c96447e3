// SPDX-License-Identifier: Apache-2.0
// Tables by build-id, as plain files that any web server or bucket serves, and what takes them from there. What is in
// the folder, and who vouches for it: formats/qut_shelf.md. No function prints; all may block and allocate. Threads:
// calls on different objects may run at the same time.
#ifndef QUTC_SHELF_H
#define QUTC_SHELF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cursor_inline.h"
#include "base/error.h"
#include "libqut/arch/arch.h"
#include "qutc/input/image.h"

enum {
    SHELF_HASH_BYTES = 32,      // SHA-256
    SHELF_SIGNATURE_BYTES = 64, // Ed25519
};

// ---- writing

// Puts a table (one that passes qut_table_check) under its place in `root`, packed, and what the index will say of it
// and of the file it was made of beside it. *packed_bytes may be NULL.
int shelf_put(const char *root, const struct input_image *image, struct base_bytes table, size_t *packed_bytes,
              struct base_error *error);

// Whether a table is under the image's place already.
bool shelf_has(const char *root, const struct input_image *image);

struct shelf_totals {
    size_t indexes; // that were written anew
    size_t tables;  // in these
};

// Takes what shelf_put left beside the tables into the indexes of `root`, and signs those with the private key of the
// PEM file `key` (NULL: signatures of what changed are taken away). Runs of several processes wait for one another.
int shelf_index(const char *root, const char *key, struct shelf_totals *totals, struct base_error *error);

// ---- taking

enum shelf_answer {
    SHELF_TAKEN,
    SHELF_MISSING, // every server answered, and none has it
    SHELF_REFUSED, // one has it, but what it gave is not what it should be; or it did not answer: *error says why
};

// What a table is wanted of.
struct shelf_wanted {
    const struct arch *arch;
    const uint8_t *identity;
    size_t identity_size;
    const struct input_image *image; // the file; NULL: it is not at hand, and nothing but the key vouches for the table
};
struct shelf_wanted shelf_wanted_of(const struct input_image *image);

struct shelf_source {
    const char *const *urls;
    size_t url_count;
    const char *key; // PEM file of the public key; NULL: whoever answers is believed
    const char
        *memory; // folder where indexes are kept, and that there is none, for SHELF_MEMORY_SECONDS; NULL: nowhere
    unsigned timeout_ms; // of one request
};
enum { SHELF_MEMORY_SECONDS = 600, SHELF_TIMEOUT_MS = 2000, SHELF_URLS_MAX = 16 };

// Asks one server after the other. The table has passed its checker and is of the identity and architecture that are
// wanted and, where the image is at hand, of its bytes. *table is aligned as tables need it; free(). Of SHELF_TAKEN,
// *from is the index of the URL.
enum shelf_answer shelf_take(const struct shelf_source *source, const struct shelf_wanted *wanted, uint8_t **table,
                             size_t *table_size, size_t *from, struct base_error *error);

// http or https, and no user in it: that would be seen in lists of processes, and in what we say.
int shelf_check_url(const char *url, struct base_error *error);

#endif
