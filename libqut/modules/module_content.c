// SPDX-License-Identifier: Apache-2.0
// What modules without build-id are told apart by.
#include <string.h>

#include "libqut/art/oat_identity.h"
#include "libqut/modules/jit_registry.h"

enum { CHECKSUM_AT = 8 }; // in an OAT file's header, over data and code; the architecture follows

static bool identify_oat(struct modules_identity *identity, uintptr_t dynamic)
{
    struct art_oat_segment segments[MODULES_HEADERS_MAX];
    const struct art_oat_image image = {.memory = &modules_jit_own_memory,
                                        .load_bias = identity->load_bias,
                                        .dynamic_address = dynamic,
                                        .segments = segments,
                                        .segment_count = identity->header_count};
    uint8_t oat_identity[ART_OAT_IDENTITY_BYTES], canary[MODULES_CANARY_BYTES];
    uint64_t header;
    for (uint32_t i = 0; i < identity->header_count; i++) {
        const ElfW(Phdr) *segment = &identity->headers[i];
        segments[i] = (struct art_oat_segment){segment->p_vaddr, segment->p_filesz, segment->p_flags & PF_W};
    }
    if (!art_oat_identity(&image, oat_identity, &header) ||
        !elf_art_read(image.memory, header + CHECKSUM_AT, canary, sizeof canary))
        return false;
    identity->has_oat_identity = true;
    memcpy(identity->oat_identity, oat_identity, sizeof oat_identity);
    identity->canary_address = (uintptr_t)(header + CHECKSUM_AT);
    memcpy(identity->canary, canary, sizeof canary);
    return true;
}

static uint64_t hash_content(const struct modules_identity *identity, uint8_t *buffer, size_t size)
{
    uint64_t hash = 1;
    for (uint32_t i = 0; i < identity->header_count; i++) {
        const ElfW(Phdr) *header = &identity->headers[i];
        uintptr_t address = (uintptr_t)(identity->load_bias + header->p_vaddr);
        size_t rest = header->p_flags & PF_W ? 0 : (size_t)header->p_filesz;
        while (rest > 0) {
            size_t got = os_copy_self(address, buffer, rest < size ? rest : size);
            for (size_t at = 0; at < got; at += sizeof(uint64_t)) {
                uint64_t word = 0;
                memcpy(&word, buffer + at, got - at < sizeof word ? got - at : sizeof word);
                hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
                hash ^= hash >> 29;
            }
            if (got == 0)
                break;
            address += got;
            rest -= got;
        }
    }
    return hash;
}

// Two files without build-id can be mapped at the same place, one after the other.
void modules_identify_content(struct modules_identity *identity, uintptr_t dynamic, uint8_t *buffer, size_t size)
{
    if (dynamic == 0 || !identify_oat(identity, dynamic))
        identity->content_hash = hash_content(identity, buffer, size);
}
