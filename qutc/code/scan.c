// SPDX-License-Identifier: Apache-2.0
// Which instructions a function has, by what they say of where they go on.
#include "qutc/code/inside.h"

static bool decode(const struct code_follower *f, uint32_t pc, unsigned mode, struct code_instruction *in)
{
    struct base_bytes code = input_image_some(f->image, f->text_start + pc, 16);
    if (code.size > f->text_size - pc)
        code.size = f->text_size - pc;
    // Instructions of Arm, Thumb and x86, which no compiler makes: a file whose code was taken out has no other, seen
    // in AOSP's libart for arm.
    static const uint8_t zeros[4];
    if (code.size >= sizeof zeros && memcmp(code.data, zeros, sizeof zeros) == 0) {
        code_begin(in);
        return false;
    }
    f->code->read(code, f->text_start + pc, mode, in);
    // Zeros up to the next function are no code: in Debian's libart, behind calls that do not come back.
    for (unsigned i = 1; f->marks && i < in->size_bytes; i++)
        if (f->marks[pc + i] & CODE_MARK_WHOLE)
            return false;
    return in->size_bytes != 0;
}

bool code_read(const struct code_follower *f, uint32_t pc, struct code_instruction *in)
{
    enum { HEAD = offsetof(struct code_instruction, ops) };
    unsigned marks = f->marks ? f->marks[pc] : 0; // before anything is known of the file
    if (marks & CODE_MARK_DATA) {
        code_begin(in);
        return false;
    }
    unsigned mode = (marks & CODE_MARK_MODE) != 0;
    struct code_decoded_cache *cache = f->decoded;
    if (cache) {
        const struct code_decoded *kept = &cache->items[cache->place[pc % CODE_DECODED_PLACES]];
        if (kept->key == pc + 1 && kept->mode == mode) {
            memcpy(in, kept->head, HEAD);
            memcpy(in->ops, kept->ops, sizeof kept->ops); // all: copies of a known length are the fast ones
            return true;
        }
    }
    if (!decode(f, pc, mode, in))
        return false;
    if (cache && in->op_count <= CODE_DECODED_OPS_MAX) {
        struct code_decoded *kept = &cache->items[cache->next];
        cache->place[pc % CODE_DECODED_PLACES] = (uint16_t)cache->next;
        cache->next = (cache->next + 1) % CODE_DECODED_COUNT;
        kept->key = pc + 1;
        kept->mode = mode;
        memcpy(kept->head, in, HEAD);
        memcpy(kept->ops, in->ops, in->op_count * sizeof *in->ops);
    }
    return true;
}

void code_set_mode(struct code_walk *w, uint32_t pc, unsigned mode)
{
    uint16_t *marks = &w->f->marks[pc];
    bool is_said =
        *marks & (CODE_MARK_CALLED | CODE_MARK_INSTRUCTION) || (*marks & CODE_MARK_START && code_function_at(w->f, pc));
    if (w->f->arch->has_thumb && !is_said)
        *marks = (uint16_t)((*marks & ~CODE_MARK_MODE) | (mode ? CODE_MARK_MODE : 0));
}

static void mark(struct code_walk *w, uint32_t pc, unsigned bits)
{
    uint16_t *marks = &w->f->marks[pc];
    if (!(*marks & CODE_MARK_WALK)) {
        uint32_t *touched = BASE_ADD(&w->touched);
        if (!touched) {
            w->no_memory = true;
            return;
        }
        *touched = pc;
    }
    *marks = (uint16_t)(*marks | bits);
}

// Of a direct jump. False: it leaves the function, or the file's code.
static bool goes_to(const struct code_walk *w, uint64_t vaddr, uint32_t *pc)
{
    const struct code_follower *f = w->f;
    if (vaddr < f->text_start || vaddr - f->text_start >= f->text_size)
        return false;
    *pc = (uint32_t)(vaddr - f->text_start);
    return true;
}

bool code_is_other(const struct code_walk *w, uint32_t pc)
{
    unsigned marks = w->f->marks[pc];
    if (pc == w->start)
        return false;
    return (marks & CODE_MARK_START && !(marks & CODE_MARK_FRAGMENT)) || code_is_left_out(w->f, pc);
}

static bool scan_later(struct code_walk *w, uint32_t pc)
{
    bool is_new = !(w->f->marks[pc] & CODE_MARK_LEADER);
    mark(w, pc, CODE_MARK_LEADER);
    if (w->f->marks[pc] & CODE_MARK_INSTRUCTION)
        return is_new;
    uint32_t *later = BASE_ADD(&w->to_scan);
    if (later)
        *later = pc;
    else
        w->no_memory = true;
    return true;
}

void code_note_called(struct code_walk *w, uint32_t pc, unsigned mode)
{
    code_set_mode(w, pc, mode);
    uint32_t *called = BASE_ADD(&w->f->called);
    if (called)
        *called = pc;
    else
        w->no_memory = true;
    w->f->marks[pc] |= CODE_MARK_CALLED;
}

void code_forget_calls(struct code_follower *f, size_t first)
{
    for (size_t i = first; i < f->called.count; i++)
        f->marks[f->called.items[i]] &= (uint16_t)~CODE_MARK_CALLED;
    f->called.count = first < f->called.count ? first : f->called.count;
}

// Literals stand behind the code that loads them.
static void note_literals(struct code_walk *w, const struct code_instruction *in)
{
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        uint32_t pc;
        if (op->kind != CODE_OP_INDEXED || op->from != CODE_REG_NONE || op->other != CODE_REG_NONE ||
            !goes_to(w, (uint64_t)op->number, &pc))
            continue;
        for (uint32_t byte = pc; byte < pc + op->size_bytes && byte < w->f->text_size; byte++)
            w->f->marks[byte] |= CODE_MARK_DATA;
    }
}

// What is not looked at for its own sake jumps to what is: that is a function of its own, if the stack is as at an
// entry.
static bool leaves_for_wanted(const struct code_walk *w, const struct code_instruction *in, uint32_t target)
{
    return w->is_unwanted && in->flow == CODE_JUMP && w->f->is_wanted(w->f->wanted_context, target);
}

// It goes on where not all is looked at.
static bool is_way_out(const struct code_walk *w, const struct code_instruction *in)
{
    if (in->flow != CODE_JUMP && in->flow != CODE_BRANCH)
        return false;
    uint64_t start = w->f->text_start;
    return in->through != CODE_REG_NONE || in->target < start + w->start || in->target >= start + w->end;
}

static void scan_block(struct code_walk *w, uint32_t pc)
{
    struct code_instruction in;
    uint32_t target;
    unsigned conditional = 0;
    while (pc < w->f->text_size && !(w->f->marks[pc] & CODE_MARK_INSTRUCTION) && !w->no_memory) {
        w->has_way_out |= pc < w->start || pc >= w->end;
        if (!code_read(w->f, pc, &in)) {
            w->has_way_out = true;
            return;
        }
        mark(w, pc, CODE_MARK_INSTRUCTION);
        w->instruction_count++;
        note_literals(w, &in);
        w->has_return |= in.flow == CODE_RETURN && pc < w->end;
        w->has_way_out |= in.flow == CODE_UNKNOWN || is_way_out(w, &in);
        if ((in.flow == CODE_JUMP || in.flow == CODE_BRANCH) && in.through == CODE_REG_NONE &&
            goes_to(w, in.target, &target) && !code_is_other(w, target) && !leaves_for_wanted(w, &in, target)) {
            code_set_mode(w, target, in.target_mode);
            scan_later(w, target);
        } else if (in.flow == CODE_JUMP && in.through == CODE_REG_NONE && goes_to(w, in.target, &target) &&
                   w->f->is_wanted && w->f->is_wanted(w->f->wanted_context, target)) {
            code_set_mode(w, target, in.target_mode);
            w->goes_on_in_wanted = true;
        }
        if (in.flow == CODE_CALL && in.through == CODE_REG_NONE && goes_to(w, in.target, &target) &&
            !(w->f->marks[target] & CODE_MARK_CALLED))
            code_note_called(w, target, in.target_mode);
        in.conditional |= conditional > 0;
        conditional = in.conditional_next ? in.conditional_next : conditional - (conditional > 0);
        bool ends = in.flow == CODE_JUMP || in.flow == CODE_RETURN || in.flow == CODE_STOP || in.flow == CODE_UNKNOWN;
        if (ends && !in.conditional)
            return;
        unsigned mode = (w->f->marks[pc] & CODE_MARK_MODE) != 0;
        pc += in.size_bytes;
        if (pc < w->f->text_size)
            code_set_mode(w, pc, mode);
        if (w->is_unwanted && in.flow == CODE_CALL && pc == w->end)
            return;
        bool is_start = pc < w->f->text_size && w->f->marks[pc] & CODE_MARK_START && pc != w->start;
        if ((is_start && in.flow == CODE_CALL) || (pc < w->f->text_size && code_is_other(w, pc)))
            return;
    }
    // Another way leads on into what was scanned.
    if (pc < w->f->text_size && w->f->marks[pc] & CODE_MARK_INSTRUCTION)
        mark(w, pc, CODE_MARK_LEADER);
}

uint64_t code_address(struct code_walk *w, uint64_t vaddr, unsigned mode, uint32_t *pc)
{
    struct code_follower *f = w->f;
    if (f->arch->word_bytes == 4)
        vaddr &= UINT32_MAX;
    if (mode == CODE_MODE_BY_ADDRESS)
        mode = vaddr & 1;
    if (f->arch->has_thumb)
        vaddr &= ~(uint64_t)1;
    if (goes_to(w, vaddr, pc))
        code_set_mode(w, *pc, mode);
    else
        *pc = f->text_size;
    return vaddr;
}

bool code_scan(struct code_walk *w, uint32_t pc)
{
    bool is_new = scan_later(w, pc);
    while (w->to_scan.count && !w->no_memory && w->instruction_count < CODE_INSTRUCTIONS_MAX)
        scan_block(w, w->to_scan.items[--w->to_scan.count]);
    return is_new;
}
