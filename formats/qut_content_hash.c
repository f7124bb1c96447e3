// SPDX-License-Identifier: Apache-2.0
#include "formats/qut_content_hash.h"

#include <string.h>

// Four independent 64-bit lanes, each fed every fourth word by multiply-rotate-multiply (the rounds and constants of
// xxHash64), then mixed into one another so that each byte of the result depends on each byte of the content.
static const uint64_t prime_1 = 0x9e3779b185ebca87U;
static const uint64_t prime_2 = 0xc2b2ae3d27d4eb4fU;
static const uint64_t prime_3 = 0x165667b19e3779f9U;

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t feed(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * prime_2, 31) * prime_1;
}

static uint64_t avalanche(uint64_t value)
{
    value = (value ^ value >> 33) * prime_2;
    value = (value ^ value >> 29) * prime_3;
    return value ^ value >> 32;
}

void qut_content_hash_begin(struct qut_content_hash *hash)
{
    *hash = (struct qut_content_hash){.lane = {prime_1 + prime_2, prime_2, 0, 0 - prime_1}};
}

void qut_content_hash_add(struct qut_content_hash *hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes, *end = at + size;
    uint64_t word[4];
    for (; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (unsigned i = 0; i < 4; i++)
            hash->lane[i] = feed(hash->lane[i], word[i]);
    }
    hash->size_bytes += size;
    if (at == end)
        return;
    memset(word, 0, sizeof word);
    memcpy(word, at, (size_t)(end - at));
    for (unsigned i = 0; i < 4; i++)
        hash->lane[i] = feed(hash->lane[i], word[i]);
}

void qut_content_hash_end(struct qut_content_hash *hash, uint8_t result[QUT_CONTENT_HASH_BYTES])
{
    if (hash->size_bytes % sizeof hash->lane == 0)
        for (unsigned i = 0; i < 4; i++)
            hash->lane[i] = feed(hash->lane[i], 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 4; i++)
            hash->lane[i] = avalanche(
                feed(hash->lane[i], hash->lane[(i + 1) % 4] ^ hash->lane[(i + 2) % 4] ^ hash->lane[(i + 3) % 4]) +
                hash->size_bytes);
    memcpy(result, hash->lane, sizeof hash->lane);
}
