// SPDX-License-Identifier: Apache-2.0
// Copies of a compiled library in the shapes that distributions and Android ship, and where its functions are, by other
// tools than ours. All of these abort on failure; paths are allocated.
#ifndef TESTS_UNIT_TRACER_NAMES_FILES_H
#define TESTS_UNIT_TRACER_NAMES_FILES_H

#include <stdint.h>

// Runs a command of the shell.
void files_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Inside a function of an ELF file, by nm.
uint64_t files_address(const char *path, const char *symbol);
uint64_t files_dynamic_address(const char *path, const char *symbol); // of those that others use

// "%02x%02x..." of a file's build-id, by readelf.
char *files_build_id(const char *path);

char *files_copy(const char *directory, const char *path, const char *name);
// Without symbols but for those that others use.
char *files_strip(const char *directory, const char *path, const char *name);
// The debug file, where it is looked for under a root.
char *files_debug(const char *root, const char *path);
// Stripped, with the small symbol table in .gnu_debugdata.
char *files_mini(const char *directory, const char *path, const char *name);
// A zip archive in which it is stored as `entry`, and another file as `other_entry`.
char *files_archive(const char *directory, const char *name, const char *path, const char *entry,
                    const char *other_path, const char *other_entry);

#endif
