// SPDX-License-Identifier: Apache-2.0
// Whether what a checksum was made of is still as it was: every reader asks here. A fuzzer changes bytes and cannot
// change the sum with them, so that all that stands behind a checksum would never be tried: builds for fuzzing take
// every sum for right. They say so by the name that libFuzzer and AFL++ have for it (the latter defines it by itself);
// such a build is never to be installed.
#ifndef QUT_FORMATS_QUT_CHECKSUM_INLINE_H
#define QUT_FORMATS_QUT_CHECKSUM_INLINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { QUT_CHECKSUMS_COUNT = 0 };
#else
enum { QUT_CHECKSUMS_COUNT = 1 };
#endif

static inline bool qut_checksum_agrees(uint64_t told, uint64_t sum)
{
    return told == sum || !QUT_CHECKSUMS_COUNT;
}

#endif
