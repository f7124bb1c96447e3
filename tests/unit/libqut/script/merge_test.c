// SPDX-License-Identifier: Apache-2.0
// Functions of JavaScript among native frames: 'j' is a frame in made code, 'b' in the machine's own; 'J' and 'B' are
// interrupted. Each place that is known is a function, innermost 1, or a mark.
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"
#include "tests/support/tap.h"

enum { MADE = 0x100000, OTHER = 0x900000, STACK = 0x700000, FRAME_BYTES = 0x100, FRAMES_MAX = 32, CODE_BYTES = 4096 };

static uint8_t code[CODE_BYTES]; // at MADE
static struct target_image made = {.is_elf = false};
static struct target_image own = {.is_elf = true}; // has no table that is read: so its code is not the machine's
static struct target_code_range ranges[] = {{MADE, MADE + CODE_BYTES, &made}, {OTHER, OTHER + CODE_BYTES, &own}};
static struct script_machine machine;
static struct target_machine memory;
static struct qut_target target;
static struct script_stack *stack;
static struct qut_frame frames[FRAMES_MAX];
static size_t count;
static struct qut_end end;

static size_t read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    if (address < MADE || address - MADE >= CODE_BYTES)
        return 0;
    size_t left = CODE_BYTES - (size_t)(address - MADE);
    size = size < left ? size : left;
    memcpy(bytes, code + (address - MADE), size);
    return size;
}

// Innermost first; callers were found by frame pointers.
static void walk(const char *text)
{
    memset(code, 0x90, sizeof code);
    memory = (struct target_machine){.memory = {.read = read_code}};
    machine = (struct script_machine){.is_known = true, .image = &made};
    target = (struct qut_target){.v8 = &machine, .machine = &memory, .ranges = ranges, .range_count = 2};
    end = (struct qut_end){.reason = QUT_END_OUTERMOST, .guessed_frame = 1};
    stack->count = 0;
    for (count = 0; text[count]; count++) {
        uint64_t pc = (text[count] == 'j' || text[count] == 'J' ? MADE : OTHER) + 0x200;
        bool is_interrupted = text[count] == 'J' || text[count] == 'B';
        frames[count] = (struct qut_frame){.pc = pc, .lookup_pc = pc, .sp = STACK + count * FRAME_BYTES};
        frames[count].flags = (is_interrupted ? QUT_FRAME_INTERRUPTED : 0u) | (count ? QUT_FRAME_GUESSED : 0u);
    }
}

// What was taken for the frame of this index: its pointer is just below its caller's sp.
static void take(size_t index, uint32_t function, uint32_t line)
{
    stack->places[stack->count++] = (struct v8_place){
        .frame_pointer = frames[index].sp + FRAME_BYTES - 16, .function = function, .position = -1, .line = line};
}

static void merge(size_t max)
{
    count = script_merge(&target, stack, frames, count, max, &end);
}

static bool is_function(size_t index, uint32_t number, uint32_t line)
{
    return frames[index].flags & QUT_FRAME_SCRIPT && v8_is_number(frames[index].lookup_pc) &&
           script_number(frames[index].lookup_pc) == number && script_line(frames[index].lookup_pc) == line;
}

TEST(made_code_becomes_its_function)
{
    walk("Jjjb");
    take(0, 1, 11);
    take(1, 2, 12);
    take(2, 0, 0); // a mark
    merge(FRAMES_MAX);
    CHECK(count == 4, "%zu frames", count);
    CHECK(is_function(0, 1, 0), "interrupted: no line, %#x", frames[0].flags);
    CHECK(is_function(1, 2, 12), "a call has one, %#x", frames[1].flags);
    CHECK(!(frames[2].flags & QUT_FRAME_SCRIPT), "a mark is no function%s", "");
    CHECK(end.guessed_frame == QUT_NO_GUESS, "guess %u", end.guessed_frame);
    CHECK(frames[0].pc == MADE + 0x200 && frames[1].sp == STACK + FRAME_BYTES, "code and stack stay%s", "");
}

TEST(what_is_not_known_stays_a_guess)
{
    walk("Jjj");
    take(1, 2, 12);
    merge(FRAMES_MAX);
    CHECK(count == 3 && end.guessed_frame == 1, "guess %u", end.guessed_frame);
    CHECK(!(frames[2].flags & QUT_FRAME_GUESSED), "behind a function%s", "");
    walk("bb"); // an image without a table: whether there are rules is not known
    take(0, 1, 11);
    merge(FRAMES_MAX);
    CHECK(count == 2 && !(frames[0].flags & QUT_FRAME_SCRIPT), "%zu frames", count);
    walk("");
    merge(FRAMES_MAX);
    CHECK(count == 0, "%zu frames", count);
}

// Before the frame stands, and behind its end, the pointer is the caller's.
TEST(edges_of_code)
{
    static const uint8_t begins[] = {0x55, 0x48, 0x8b, 0xec}, ends[] = {0x48, 0x8b, 0xe5, 0x5d};
    static const struct {
        int at; // from the pc
        bool is_end, has_name;
    } cases[] = {{0, false, false}, {-1, false, false}, {-3, false, false}, {-4, false, true}, {30, false, false},
                 {-4, true, false}, {-20, true, false}, {4, true, true},    {100, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        walk("Jj");
        memcpy(code + 0x200 + cases[i].at, cases[i].is_end ? ends : begins, sizeof begins);
        take(0, 1, 0);
        merge(FRAMES_MAX);
        CHECK(is_function(0, 1, 0) == cases[i].has_name, "case %zu", i);
        CHECK((end.guessed_frame == QUT_NO_GUESS) == cases[i].has_name, "case %zu: guess %u", i, end.guessed_frame);
    }
}

// What lies below sp is left from before.
TEST(a_frame_that_does_not_stand)
{
    walk("Jj");
    frames[1].sp = frames[0].sp + 16;
    stack->places[stack->count++] = (struct v8_place){.frame_pointer = frames[0].sp, .function = 1, .position = -1};
    merge(FRAMES_MAX);
    CHECK(!(frames[0].flags & QUT_FRAME_SCRIPT) && end.guessed_frame == 1, "guess %u", end.guessed_frame);
    walk("Jj");
    frames[1].sp = 8; // no caller lies further in
    take(0, 1, 0);
    merge(FRAMES_MAX);
    CHECK(!(frames[0].flags & QUT_FRAME_SCRIPT), "%#x", frames[0].flags);
}

int main(void)
{
    stack = script_stack_new();
    if (!stack)
        return 1;
    RUN(made_code_becomes_its_function);
    RUN(what_is_not_known_stays_a_guess);
    RUN(edges_of_code);
    RUN(a_frame_that_does_not_stand);
    script_stack_free(stack);
    return tap_finish();
}
