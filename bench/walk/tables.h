// SPDX-License-Identifier: Apache-2.0
// The maker of the tables that the cache directory does not have: libqutc (tables.c), or none, where it is not built
// for the machine that walks (no_tables.c).
#ifndef QUT_BENCH_WALK_TABLES_H
#define QUT_BENCH_WALK_TABLES_H

#include <qut/local.h>

void bench_tables_compiler(struct qut_options *options);

#endif
