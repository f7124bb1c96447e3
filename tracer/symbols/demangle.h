// SPDX-License-Identifier: Apache-2.0
// C++ and Rust names as people write them. Names come from untrusted files.
#ifndef TRACER_SYMBOLS_DEMANGLE_H
#define TRACER_SYMBOLS_DEMANGLE_H

enum { SYMBOLS_MANGLED_MAX = 4096, SYMBOLS_DEMANGLED_MAX = 16384 };

// The readable name, allocated; a copy of the name where it is not mangled, longer than SYMBOLS_MANGLED_MAX, or would
// become longer than SYMBOLS_DEMANGLED_MAX (a few bytes can describe gigabytes). NULL without memory. One thread at a
// time.
char *symbols_demangle(const char *name);

#endif
