// SPDX-License-Identifier: Apache-2.0
// What a function's name rests on: the function, what its instances share, the scope or the text that has its name, and
// that text. An object of another function at one of these places has other bytes, or leads to other places.
#include "libqut/v8/inside.h"

void *v8_proof_bytes(struct v8_proof *proof, unsigned step)
{
    switch (step) {
    case V8_PROOF_FUNCTION: return proof->function;
    case V8_PROOF_SHARED: return proof->shared;
    case V8_PROOF_NAME: return proof->name;
    default: return proof->text;
    }
}

size_t v8_proof_size(unsigned step)
{
    static const uint8_t sizes[V8_PROOF_STEPS] = {
        sizeof((struct v8_proof *)0)->function, sizeof((struct v8_proof *)0)->shared,
        sizeof((struct v8_proof *)0)->name, sizeof((struct v8_proof *)0)->text};
    return step < V8_PROOF_STEPS ? sizes[step] : 0;
}

// Only the map and up to two fields count. Returns the first of them.
static uint64_t keep(uint8_t *bytes, size_t size, size_t got, int32_t first, int32_t second)
{
    uint64_t kept[3] = {0};
    bool is_there = got == size && first + 8 <= (int32_t)size && second + 8 <= (int32_t)size;
    if (is_there) {
        kept[0] = v8_word(bytes, 0);
        kept[1] = v8_word(bytes, (size_t)first);
        kept[2] = v8_word(bytes, (size_t)second);
    }
    memset(bytes, 0, size);
    memcpy(bytes, kept, sizeof kept);
    return kept[1];
}

void v8_proof_lead(const struct v8_layout *layout, struct v8_proof *proof, unsigned step)
{
    if (step >= V8_PROOF_STEPS || !proof->address[step])
        return;
    size_t size = v8_proof_size(step), got = proof->got[step];
    uint64_t next = 0;
    if (step == V8_PROOF_FUNCTION)
        next = keep(proof->function, size, got, layout->function_shared, layout->function_shared);
    else if (step == V8_PROOF_SHARED)
        next = keep(proof->shared, size, got, layout->shared_name, layout->shared_script);
    else if (step == V8_PROOF_NAME) {
        // Of a scope, the text may be elsewhere: it is then told by what the scope has.
        size_t at = v8_scope_name_at(layout, proof->name, got);
        memset(proof->name + got, 0, size - got);
        next = at && at + 8 <= got ? v8_word(proof->name, at) : 0;
    } else
        memset(proof->text + got, 0, size - got);
    if (step + 1 < V8_PROOF_STEPS)
        proof->address[step + 1] = v8_object(next);
}
