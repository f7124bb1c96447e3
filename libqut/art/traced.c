// SPDX-License-Identifier: Apache-2.0
#include "libqut/art/traced.h"

enum { WORD = 8, DEPTH_MAX = 64, HEAD_WORDS = 3, NODE_WORDS = 8 };

// Words of a map's head and of its nodes.
static const struct form {
    uint8_t root, left, right, key, pc;
} forms[] = {
    {.root = 2, .left = 2, .right = 3, .key = 4, .pc = 7}, // libstdc++
    {.root = 1, .left = 0, .right = 1, .key = 4, .pc = 7}, // libc++
};

static bool find_in(const struct elf_art_memory *memory, const struct form *form, uint64_t root, uint64_t slot,
                    uint64_t *pc)
{
    uint64_t node[NODE_WORDS];
    for (unsigned depth = 0; depth < DEPTH_MAX && root && root % WORD == 0; depth++) {
        if (!elf_art_read(memory, root, node, sizeof node))
            return false;
        if (node[form->key] == slot) {
            *pc = node[form->pc];
            return *pc != 0;
        }
        root = slot < node[form->key] ? node[form->left] : node[form->right];
    }
    return false;
}

bool art_true_return(const struct elf_art_memory *memory, uint64_t thread, uint64_t sp, uint64_t *pc)
{
    const struct art_traced_layout *layout = art_traced_layout(memory->arch);
    uint64_t self, map, head[HEAD_WORDS];
    if (!layout || !thread || thread % WORD || !elf_art_read(memory, thread + layout->self_at, &self, sizeof self) ||
        self != thread || !elf_art_read(memory, thread + layout->returns_at, &map, sizeof map) || !map || map % WORD ||
        !elf_art_read(memory, map, head, sizeof head))
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (find_in(memory, &forms[i], head[forms[i].root], sp - WORD, pc))
            return true;
    return false;
}
