// SPDX-License-Identifier: Apache-2.0
#include "libqut/art/traced.h"

enum { WORD = 8, DEPTH_MAX = 64, HEAD_WORDS = 3, NODE_WORDS = 8, NODES_AT_ONCE = 32 };

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

// False: there is no such map.
static bool read_head(const struct elf_art_memory *memory, uint64_t thread, uint64_t head[HEAD_WORDS])
{
    const struct art_traced_layout *layout = art_traced_layout(memory->arch);
    uint64_t self, map;
    return layout && thread && thread % WORD == 0 &&
           elf_art_read(memory, thread + layout->self_at, &self, sizeof self) && self == thread &&
           elf_art_read(memory, thread + layout->returns_at, &map, sizeof map) && map && map % WORD == 0 &&
           elf_art_read(memory, map, head, HEAD_WORDS * sizeof *head);
}

bool art_true_return(const struct elf_art_memory *memory, uint64_t thread, uint64_t sp, uint64_t *pc)
{
    uint64_t head[HEAD_WORDS];
    if (!read_head(memory, thread, head))
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (find_in(memory, &forms[i], head[forms[i].root], sp - WORD, pc))
            return true;
    return false;
}

static size_t add_node(struct art_return *found, size_t count, size_t max, uint64_t node)
{
    if (node && node % WORD == 0 && count < max)
        found[count++].slot = node;
    return count;
}

// Nodes that were not read yet stand where what they say will: each is replaced by that. One that leads round comes to
// an end where there is no more room.
static size_t list_all(const struct elf_art_memory *memory, const struct form *form, uint64_t root,
                       struct art_return *found, size_t max)
{
    uint64_t nodes[NODES_AT_ONCE][NODE_WORDS];
    struct elf_art_piece pieces[NODES_AT_ONCE];
    size_t count = add_node(found, 0, max, root), sound = 0;
    for (size_t first = 0, end; first < count; first = end) {
        end = count - first < NODES_AT_ONCE ? count : first + NODES_AT_ONCE;
        for (size_t i = first; i < end; i++)
            pieces[i - first] =
                (struct elf_art_piece){.address = found[i].slot, .bytes = nodes[i - first], .size = sizeof nodes[0]};
        elf_art_read_pieces(memory, pieces, end - first);
        for (size_t i = 0; i < end - first; i++) {
            if (pieces[i].got != sizeof nodes[0] || !nodes[i][form->key] || nodes[i][form->key] % WORD ||
                !nodes[i][form->pc])
                continue;
            count = add_node(found, count, max, nodes[i][form->left]);
            count = add_node(found, count, max, nodes[i][form->right]);
            found[sound++] = (struct art_return){nodes[i][form->key], nodes[i][form->pc]};
        }
    }
    return sound;
}

size_t art_true_returns(const struct elf_art_memory *memory, uint64_t thread, struct art_return *returns, size_t max)
{
    uint64_t head[HEAD_WORDS];
    size_t count = 0;
    if (!read_head(memory, thread, head))
        return 0;
    for (size_t i = 0; count == 0 && i < sizeof forms / sizeof *forms; i++)
        count = list_all(memory, &forms[i], head[forms[i].root], returns, max);
    return count;
}

bool art_true_return_of(const struct art_return *returns, size_t count, uint64_t sp, uint64_t *pc)
{
    for (size_t i = 0; i < count; i++)
        if (returns[i].slot == sp - WORD) {
            *pc = returns[i].pc;
            return true;
        }
    return false;
}
