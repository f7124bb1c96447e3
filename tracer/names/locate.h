// SPDX-License-Identifier: Apache-2.0
// From what a trace says of a module to a file that has its names. A file with another build-id has other functions at
// the same addresses: it gives none.
#ifndef TRACER_NAMES_LOCATE_H
#define TRACER_NAMES_LOCATE_H

#include "qutc/input/image.h"
#include "tracer/names/named_file.h"

// "PATH", where it is a file; else without what was put behind it: " (deleted)", "!ENTRY" of an archive, which then is
// *entry (a part of `path`; "": none). Allocated; NULL without memory.
char *names_locate_path(const struct names_options *options, const char *path, const char **entry);

// The image as the process had it loaded. NULL: it cannot be had, and file->why says why.
struct input_image *names_locate_image(struct names_file *file);

// A debug file that has the trace's build-id: in the debug root, else from debuginfod where that is asked for. NULL:
// there is none.
struct input_image *names_locate_debug_image(struct names_file *file);

#endif
