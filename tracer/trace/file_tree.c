// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_tree.h"

#include <stdlib.h>

enum { LIST_MARGIN_BYTES = 5 }; // a number in a list takes no more: codes have 35 bits, ids 24

static const uint64_t code_mask = ((uint64_t)1 << QUT_TRACE_CODE_BITS) - 1;
static const unsigned kind_mask = (1u << QUT_TRACE_KIND_BITS) - 1;

static uint64_t code_of(uint64_t word)
{
    return word >> QUT_TRACE_KIND_BITS & code_mask;
}

static uint32_t parent_of(uint64_t word)
{
    return (uint32_t)(word >> QUT_TRACE_PARENT_SHIFT);
}

// ---- numbering

struct entry {
    uint64_t word;
    uint32_t id;
};

// By parent, then by code: children of one node stand together.
static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return left->word < right->word ? -1 : left->word > right->word;
}

static size_t collect_entries(struct entry *entries, const uint64_t *nodes, size_t capacity)
{
    size_t count = 0;
    for (size_t id = 1; id < capacity; id++)
        if (nodes[id])
            entries[count++] = (struct entry){.word = nodes[id], .id = (uint32_t)id};
    if (count)
        qsort(entries, count, sizeof *entries, compare_entries);
    return count;
}

static size_t count_words(const uint64_t *words, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 1; i < capacity; i++)
        count += words[i] != 0;
    return count;
}

// Each node, then its children: the way is in `path`. Returns how many were met.
static size_t walk(struct trace_tree *tree, const struct entry *entries, size_t count, const uint32_t *first_child,
                   uint32_t *path)
{
    size_t depth = 0, met = 0, at = first_child[0];
    while (at) {
        const struct entry *entry = &entries[at - 1];
        const uint32_t parent = parent_of(entry->word), id = (uint32_t)++met;
        tree->ids[entry->id] = id;
        tree->words[id] = (entry->word & (((uint64_t)1 << QUT_TRACE_PARENT_SHIFT) - 1)) | (uint64_t)tree->ids[parent]
                                                                                              << QUT_TRACE_PARENT_SHIFT;
        path[depth++] = (uint32_t)at;
        at = first_child[entry->id];
        while (!at && depth) {
            size_t done = path[--depth]; // the entry behind it, if it is its sibling
            if (done < count && parent_of(entries[done].word) == parent_of(entries[done - 1].word))
                at = done + 1;
        }
    }
    return met;
}

bool trace_tree_number(struct trace_tree *tree, const uint64_t *nodes, size_t capacity, struct trace_memory *memory)
{
    const size_t count = count_words(nodes, capacity);
    struct entry *entries = trace_memory_take(memory, count, sizeof *entries);
    uint32_t *first_child = trace_memory_take(memory, capacity, sizeof *first_child);
    uint32_t *path = trace_memory_take(memory, count, sizeof *path);
    tree->words = trace_memory_take(memory, count + 1, sizeof *tree->words);
    tree->ids = trace_memory_take(memory, capacity, sizeof *tree->ids);
    tree->count = count + 1;
    if (!entries || !first_child || !path || !tree->words || !tree->ids)
        return false;
    collect_entries(entries, nodes, capacity);
    for (size_t i = count; i-- > 0;) {
        if (parent_of(entries[i].word) >= capacity)
            return false;
        first_child[parent_of(entries[i].word)] = (uint32_t)i + 1;
    }
    return walk(tree, entries, count, first_child, path) == count;
}

// ---- writing

static uint8_t *put_uleb(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

// Distances, in a list that ascends.
static uint8_t *put_list(uint8_t *to, const uint64_t *values, size_t count)
{
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        to = put_uleb(to, values[i] - before);
        before = values[i];
    }
    return to;
}

static unsigned rank_bytes(size_t code_count)
{
    return code_count <= 1u << 8 ? 1 : code_count <= 1u << 16 ? 2 : 3;
}

static int compare_words(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static size_t collect_codes(uint64_t *codes, const struct trace_tree *tree, size_t first, size_t end)
{
    size_t count = 0;
    for (size_t id = first; id < end; id++)
        codes[id - first] = code_of(tree->words[id]);
    qsort(codes, end - first, sizeof *codes, compare_words);
    for (size_t i = 0; i < end - first; i++)
        if (!count || codes[count - 1] != codes[i])
            codes[count++] = codes[i];
    return count;
}

static size_t chain_length(const struct trace_tree *tree, size_t id)
{
    size_t length = 0;
    for (uint32_t at = parent_of(tree->words[id]); at; at = parent_of(tree->words[at]))
        length++;
    return length;
}

static uint8_t *put_ranks(uint8_t *to, const struct trace_tree *tree, size_t first, size_t end, const uint64_t *codes,
                          size_t code_count)
{
    const unsigned bytes = rank_bytes(code_count);
    for (size_t id = first; id < end; id++) {
        const uint64_t code = code_of(tree->words[id]);
        const uint64_t *place = bsearch(&code, codes, code_count, sizeof *codes, compare_words);
        const size_t rank = (size_t)(place - codes);
        for (unsigned i = 0; i < bytes; i++)
            *to++ = (uint8_t)(rank >> (8 * i));
    }
    return to;
}

// How far the walk went back from the node before to each one's parent.
static uint8_t *put_steps(uint8_t *to, const struct trace_tree *tree, size_t first, size_t end)
{
    for (size_t id = first; id < end; id++) {
        uint32_t parent = parent_of(tree->words[id]), steps = 0;
        for (uint32_t at = (uint32_t)id - 1; id != first && at != parent; at = parent_of(tree->words[at]))
            steps++;
        to = put_uleb(to, steps);
    }
    return to;
}

// As much as has room whatever its numbers are.
static size_t block_end(const struct trace_tree *tree, size_t first, size_t chain_count)
{
    const size_t each = 1 + 3 + 2 * LIST_MARGIN_BYTES;
    const size_t room = QUT_TRACE_FILE_BLOCK_BYTES_MAX - sizeof(struct qut_trace_file_tree);
    size_t count = chain_count * LIST_MARGIN_BYTES < room ? (room - chain_count * LIST_MARGIN_BYTES) / each : 0;
    if (count > QUT_TRACE_FILE_TREE_NODES_MAX)
        count = QUT_TRACE_FILE_TREE_NODES_MAX;
    return count < tree->count - first ? first + count : tree->count;
}

size_t trace_tree_write(uint8_t to[QUT_TRACE_FILE_BLOCK_BYTES_MAX], const struct trace_tree *tree, size_t first,
                        size_t *next, struct trace_memory *memory)
{
    const size_t chain_count = chain_length(tree, first);
    const size_t end = *next = block_end(tree, first, chain_count);
    uint64_t *codes = trace_memory_take(memory, end - first, sizeof *codes);
    uint64_t *chain = trace_memory_take(memory, chain_count, sizeof *chain);
    if (!codes || !chain || end == first)
        return 0;
    const size_t code_count = collect_codes(codes, tree, first, end);
    uint32_t ancestor = parent_of(tree->words[first]);
    for (size_t i = chain_count; i-- > 0; ancestor = parent_of(tree->words[ancestor]))
        chain[i] = ancestor;
    const struct qut_trace_file_tree head = {.first = (uint32_t)first,
                                             .count = (uint32_t)(end - first),
                                             .code_count = (uint32_t)code_count,
                                             .chain_count = (uint32_t)chain_count};
    memcpy(to, &head, sizeof head);
    uint8_t *at = put_list(to + sizeof head, chain, chain_count);
    at = put_list(at, codes, code_count);
    for (size_t id = first; id < end; id++)
        *at++ = (uint8_t)(tree->words[id] & kind_mask);
    at = put_ranks(at, tree, first, end, codes, code_count);
    at = put_steps(at, tree, first, end);
    return (size_t)(at - to);
}

// ---- reading

struct tree_reader {
    struct base_cursor cursor;
    struct qut_trace_file_tree head;
    uint64_t *words;
    uint32_t *chain;
    uint64_t *codes;
    size_t chain_left;
    uint32_t last; // where the walk is
};

static bool read_list(struct tree_reader *reader, uint64_t limit, size_t count, uint64_t *codes, uint32_t *ids)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t distance = base_read_uleb(&reader->cursor);
        if (reader->cursor.failed || distance >= limit - value || (i && !distance))
            return false;
        value += distance;
        if (codes)
            codes[i] = value;
        else
            ids[i] = (uint32_t)value;
    }
    return true;
}

static uint32_t top_of_chain(const struct tree_reader *reader)
{
    return reader->chain_left ? reader->chain[reader->chain_left - 1] : 0;
}

// Back towards the root. False: beyond it.
static bool go_back(struct tree_reader *reader, uint64_t steps)
{
    for (; steps; steps--) {
        if (!reader->last)
            return false;
        if (reader->last >= reader->head.first) {
            reader->last = parent_of(reader->words[reader->last]);
        } else {
            reader->chain_left--;
            reader->last = top_of_chain(reader);
        }
    }
    return true;
}

static bool read_words(struct tree_reader *reader, size_t *end)
{
    const struct qut_trace_file_tree *head = &reader->head;
    const unsigned bytes = rank_bytes(head->code_count);
    struct base_bytes kinds = base_read_bytes(&reader->cursor, head->count);
    struct base_bytes ranks = base_read_bytes(&reader->cursor, (uint64_t)head->count * bytes);
    for (uint32_t i = 0; i < head->count; i++) {
        const uint64_t steps = base_read_uleb(&reader->cursor);
        uint32_t rank = 0;
        if (reader->cursor.failed || !go_back(reader, steps))
            return false;
        for (unsigned byte = 0; byte < bytes; byte++)
            rank |= (uint32_t)ranks.data[(size_t)i * bytes + byte] << (8 * byte);
        if (rank >= head->code_count || kinds.data[i] > kind_mask)
            return false;
        reader->words[head->first + i] = (uint64_t)reader->last << QUT_TRACE_PARENT_SHIFT |
                                         reader->codes[rank] << QUT_TRACE_KIND_BITS | kinds.data[i];
        reader->last = head->first + i;
        *end = reader->last >= *end ? (size_t)reader->last + 1 : *end;
    }
    return base_cursor_left(&reader->cursor) == 0;
}

static bool read_head(struct tree_reader *reader, size_t capacity)
{
    struct qut_trace_file_tree *head = &reader->head;
    struct base_bytes bytes = base_read_bytes(&reader->cursor, sizeof *head);
    if (reader->cursor.failed)
        return false;
    memcpy(head, bytes.data, sizeof *head);
    return head->first && head->first <= capacity && head->count <= capacity - head->first &&
           head->count <= QUT_TRACE_FILE_TREE_NODES_MAX && head->code_count <= head->count &&
           head->chain_count < head->first && head->chain_count <= base_cursor_left(&reader->cursor);
}

bool trace_tree_read(struct base_bytes bytes, uint64_t *words, size_t capacity, size_t *end, bool *no_memory)
{
    struct tree_reader reader = {.cursor = base_cursor(bytes), .words = words};
    if (!read_head(&reader, capacity))
        return false;
    const struct qut_trace_file_tree *head = &reader.head;
    reader.chain = malloc((head->chain_count + 1) * sizeof *reader.chain);
    reader.codes = malloc((head->code_count + 1) * sizeof *reader.codes);
    *no_memory = !reader.chain || !reader.codes;
    bool is_good = !*no_memory && read_list(&reader, head->first, head->chain_count, NULL, reader.chain) &&
                   (!head->chain_count || reader.chain[0]) &&
                   read_list(&reader, code_mask + 1, head->code_count, reader.codes, NULL);
    reader.chain_left = head->chain_count;
    if (is_good) {
        reader.last = top_of_chain(&reader);
        is_good = read_words(&reader, end);
    }
    free(reader.chain);
    free(reader.codes);
    return is_good;
}
