// SPDX-License-Identifier: Apache-2.0
// C++ and Rust names as people write them. Names come from files that nobody vouches for.
#ifndef TRACER_SYMBOLS_DEMANGLE_H
#define TRACER_SYMBOLS_DEMANGLE_H

enum { QUT_MANGLED_MAX = 4096, QUT_DEMANGLED_MAX = 16384 };

// The readable name, allocated; a copy of the name where it is not mangled, longer than QUT_MANGLED_MAX, or would
// become longer than QUT_DEMANGLED_MAX (a few bytes can describe gigabytes). NULL without memory. One thread at a time.
char *qut_demangle(const char *name);

#endif
