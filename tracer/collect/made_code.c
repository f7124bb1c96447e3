// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/made_code.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock_inline.h"
#include "formats/qut_trace.h"

// Opening reads the process's mappings: a millisecond or two.
static const uint64_t wait_least_ns = 200000000, wait_most_ns = 10000000000;

static void tell(const struct qut_made_code *found, struct collect_code *code)
{
    static_assert(sizeof code->name == sizeof found->name, "none is cut");
    *code = (struct collect_code){.start = found->start, .end = found->end};
    memcpy(code->name, found->name, sizeof code->name);
}

static bool ask(struct made_code *made, uint64_t address, uint64_t since_ns, struct collect_code *code)
{
    struct qut_made_code found;
    struct managed_name name;
    static_assert(sizeof code->name == sizeof name.text, "none is cut");
    if (!made->target)
        return false;
    if (qut_target_made_code(made->target, address, &found, sizeof found)) {
        tell(&found, code);
        return true;
    }
    if (!managed_name_at(&made->managed, made->target, address, since_ns, &name))
        return false;
    *code = (struct collect_code){.start = name.start, .end = name.end, .may_move = name.may_move};
    memcpy(code->name, name.text, sizeof code->name);
    return true;
}

static void close_target(struct made_code *made)
{
    qut_target_close(made->target);
    made->target = NULL;
}

// The libraries that a process had when it was opened are those that are asked. Where it has ended, what was open
// stays.
static bool open_again(struct made_code *made)
{
    uint64_t now_ns = base_clock_now_ns();
    if (now_ns < made->next_ns)
        return false;
    const struct qut_target_options options = {.size = sizeof options};
    struct qut_target_error error;
    struct qut_target *target = qut_target_process((pid_t)made->pid, &options, &error);
    made->wait_ns = made->wait_ns < wait_least_ns ? wait_least_ns : made->wait_ns * 2;
    made->wait_ns = made->wait_ns > wait_most_ns ? wait_most_ns : made->wait_ns;
    made->next_ns = base_clock_now_ns() + made->wait_ns;
    if (!target)
        return false;
    close_target(made);
    made->target = target;
    return true;
}

void collect_made_code_begin(struct made_code *made)
{
    if (open_again(made))
        managed_names_begin(&made->managed, made->target);
    made->next_ns = made->wait_ns = 0; // it may be opened anew as soon as a name is asked for
}

bool collect_name_made_code(void *context, uint64_t address, uint64_t since_ns, struct collect_code *code)
{
    struct made_code *made = context;
    // Of a number there is no such code, and none is looked for; so below.
    return !qut_trace_is_number(address) &&
           (ask(made, address, since_ns, code) || (open_again(made) && ask(made, address, since_ns, code)));
}

bool collect_name_past_code(void *context, uint64_t address, uint64_t met_ns, struct collect_code *code)
{
    struct made_code *made = context;
    struct qut_made_code found;
    if (!made->target || qut_trace_is_number(address) ||
        !qut_target_made_code_of(made->target, address, met_ns, &found, sizeof found))
        return false;
    tell(&found, code);
    return true;
}

// A place in a trace is inside the instruction that ran: a call ends behind it. Where none does, the thread was
// interrupted.
static size_t ask_levels(struct made_code *made, uint64_t address, struct qut_made_level *found)
{
    const uint64_t method = address & (((uint64_t)1 << COLLECT_ADDRESS_BITS) - 1);
    struct qut_frame frame = {.pc = address + 1, .lookup_pc = address, .flags = QUT_FRAME_JIT};
    if (address != method) {
        frame.pc = method;
        frame.flags = QUT_FRAME_DEX;
    }
    size_t count = qut_target_made_levels(made->target, &frame, found, COLLECT_LEVELS_MAX, sizeof *found);
    if (count > 1 || (count == 1 && found->line) || (frame.flags & QUT_FRAME_DEX))
        return count;
    frame.pc = address;
    frame.flags |= QUT_FRAME_INTERRUPTED;
    return qut_target_made_levels(made->target, &frame, found, COLLECT_LEVELS_MAX, sizeof *found);
}

size_t collect_levels_of_made_code(void *context, uint64_t address, struct collect_level *levels)
{
    struct made_code *made = context;
    const bool is_open = !qut_trace_is_number(address) && (made->target || open_again(made));
    struct qut_made_level *found = is_open ? malloc(COLLECT_LEVELS_MAX * sizeof *found) : NULL;
    size_t count = found ? ask_levels(made, address, found) : 0;
    count = count <= COLLECT_LEVELS_MAX ? count : 0;
    for (size_t i = 0; i < count; i++) {
        static_assert(sizeof levels->function == sizeof found->name && sizeof levels->file == sizeof found->file,
                      "none is cut");
        levels[i].line = found[i].flags & QUT_MADE_NEAR ? 0 : found[i].line; // what is sure
        memcpy(levels[i].function, found[i].name, sizeof levels[i].function);
        memcpy(levels[i].file, found[i].file, sizeof levels[i].file);
    }
    free(found);
    return count;
}

void collect_made_code_close(struct made_code *made)
{
    close_target(made);
    managed_names_free(&made->managed);
}
