// SPDX-License-Identifier: Apache-2.0
// Functions of aarch64 that begin with each kind of instruction do what they did; registers are kept; exceptions and
// backtraces go through traced functions, with return addresses that are signed or not.
#include <stdint.h>
#include <string.h>
#include <unwind.h>

#include "tests/unit/agent/calls/account.h"

#ifdef THUNKS_GUARDED
static const bool is_guarded = true;
#else
static const bool is_guarded = false;
#endif

typedef uint64_t (*number_fn)(uint64_t);
uint64_t begins_adr(uint64_t), begins_adrp(uint64_t), begins_ldr(uint64_t), begins_ldr_w(uint64_t),
    begins_ldrsw(uint64_t), begins_ldr_d(uint64_t), begins_ldr_q(uint64_t), begins_prfm(uint64_t), begins_b(uint64_t),
    begins_add(uint64_t), begins_ret(uint64_t), begins_cbz(uint64_t), begins_cbnz(uint64_t), begins_tbz(uint64_t),
    begins_tbnz(uint64_t), begins_stp(uint64_t), begins_paciasp(uint64_t), begins_pacibsp(uint64_t);

static const number_fn functions[] = {begins_adr,   begins_adrp,    begins_ldr,    begins_ldr_w, begins_ldrsw,
                                      begins_ldr_d, begins_ldr_q,   begins_prfm,   begins_b,     begins_ret,
                                      begins_cbz,   begins_cbnz,    begins_tbz,    begins_tbnz,  begins_stp,
                                      begins_add,   begins_paciasp, begins_pacibsp};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

TEST(each_first_instruction_can_be_moved)
{
    static const uint64_t arguments[] = {0, 1, 2, UINT64_C(1) << 33, UINT64_MAX};
    enum { ARGUMENTS = sizeof arguments / sizeof *arguments };
    uint64_t before[FUNCTIONS][ARGUMENTS];
    for (unsigned i = 0; i < FUNCTIONS; i++)
        for (unsigned k = 0; k < ARGUMENTS; k++)
            before[i][k] = functions[i](arguments[k]);
    trace_begins(RING, 2);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        CHECK(thunks_trace_moved((void (*)(void))functions[i], i + 1), "function %u", i);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        for (unsigned k = 0; k < ARGUMENTS; k++) {
            uint64_t now = functions[i](arguments[k]);
            CHECK(now == before[i][k], "function %u of %#lx: %#lx, %#lx", i, arguments[k], now, before[i][k]);
        }
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    for (unsigned i = 0; i < FUNCTIONS; i++) { // begins_b ends in begins_add, which others call
        unsigned calls = functions[i] == begins_add ? 5 * ARGUMENTS : ARGUMENTS;
        CHECK(sums->enters[i + 1] == calls && sums->exits[i + 1] == (functions[i] == begins_b ? 0 : calls),
              "function %u: %lu, %lu", i, sums->enters[i + 1], sums->exits[i + 1]);
    }
    check_order();
    thunks_undo();
    for (unsigned i = 0; i < FUNCTIONS; i++)
        CHECK(functions[i](2) == before[i][2], "function %u is not as it was", i);
}

// ---- registers

struct registers {
    uint64_t general[16];
    uint8_t vectors[32][16];
};
extern struct registers machine_at_entry;
struct registers machine_at_entry;
void machine_call(const struct registers *given, struct registers *at_exit, void (*function)(void));
void machine_looks(void);

static void call_with_values(unsigned call)
{
    struct registers given, at_exit;
    for (unsigned i = 0; i < 16; i++)
        given.general[i] = UINT64_C(0x8123456789abcde1) * (i + 1 + call * 16);
    for (unsigned i = 0; i < sizeof given.vectors; i++)
        ((uint8_t *)given.vectors)[i] = (uint8_t)(i * 37 + call);
    machine_call(&given, &at_exit, machine_looks);
    CHECK(memcmp(&given, &machine_at_entry, sizeof given) == 0, "entry of call %u", call);
    CHECK(memcmp(&given, &at_exit, sizeof given) == 0, "exit of call %u", call);
}

TEST(registers_are_kept)
{
    enum { CALLS = 200 }; // the first by way of a new stack and thread; the last where the ring is full
    trace_begins(SMALL_RING, 2);
    CHECK(thunks_trace(machine_looks, 1), "no nops");
    for (unsigned i = 0; i < CALLS; i++)
        call_with_values(i);
    CHECK(thunks_ring(0)->lost_enters > 0 && thunks_ring(0)->lost_exits > 0, "it was never full");
}

TEST(registers_are_kept_by_counts)
{
    trace_begins(SMALL_RING, 2);
    CHECK(thunks_count(machine_looks, 3, true), "no nops");
    for (unsigned i = 0; i < 3; i++)
        call_with_values(i);
    CHECK(thunks_counted(3) == 3, "%lu", thunks_counted(3));
}

// ---- unwinding

int machine_catches(void (*function)(int), int argument);
extern const char machine_landing[];

_Unwind_Reason_Code machine_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                        struct _Unwind_Exception *exception, struct _Unwind_Context *context);
_Unwind_Reason_Code machine_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                        struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)class, (void)exception;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME))
        return _URC_CONTINUE_UNWIND;
    _Unwind_SetIP(context, (uintptr_t)machine_landing);
    return _URC_INSTALL_CONTEXT;
}

static long cleaned;

static void clean(int *unused)
{
    (void)unused;
    cleaned++;
}

// Not nops: what comes first is the function's own, paciasp where it signs.
__attribute__((noinline)) static void deep(int depth)
{
    static struct _Unwind_Exception exception;
    int here __attribute__((cleanup(clean))) = depth;
    tell(FIB);
    if (depth > 0)
        deep(depth - 1);
    else
        _Unwind_RaiseException(&exception);
    sink += here;
}

TEST(exceptions_go_through)
{
    enum { THROWS = 10000, DEPTH = 5, DRAIN_EVERY = 512 };
    trace_begins(RING, 2);
    CHECK(thunks_trace_moved((void (*)(void))deep, FIB), "not planned");
    for (int i = 0; i < THROWS; i++) {
        CHECK(machine_catches(deep, DEPTH) == 1, "not caught: %d", i);
        if (i % DRAIN_EVERY == 0)
            thunks_drain();
    }
    thunks_drain();
    CHECK(cleaned == THROWS * (DEPTH + 1), "%ld cleaned", cleaned);
    CHECK(told[FIB] == THROWS * (DEPTH + 1) && thunks_sums()->enters[FIB] == told[FIB] &&
              thunks_sums()->exits[FIB] == 0,
          "%lu, %lu", thunks_sums()->enters[FIB], thunks_sums()->exits[FIB]);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count)
{
    const bool is_stub = thunks_header() && (uint64_t)_Unwind_GetRegionStart(context) == thunks_header()->enter_stub;
    *(unsigned *)count += is_stub ? 1000 : 1;
    return _URC_NO_REASON;
}

__attribute__((noinline)) static unsigned walker(int depth)
{
    unsigned frames = 0;
    if (depth > 0)
        frames = walker(depth - 1);
    else
        _Unwind_Backtrace(count_frame, &frames);
    sink++;
    return frames;
}

TEST(backtraces_are_whole)
{
    enum { DEPTH = 5 };
    const unsigned before = walker(DEPTH);
    trace_begins(RING, 2);
    CHECK(thunks_trace_moved((void (*)(void))walker, MIDDLE), "not planned");
    const unsigned frames = walker(DEPTH);
    CHECK(before > DEPTH && frames == before + (DEPTH + 1) * 1000, "%u frames, before %u", frames, before);
}

int main(void)
{
    if (!is_guarded) // functions without marks
        RUN_ALONE(each_first_instruction_can_be_moved);
    RUN_ALONE(registers_are_kept);
    RUN_ALONE(registers_are_kept_by_counts);
    RUN_ALONE(exceptions_go_through);
    RUN_ALONE(backtraces_are_whole);
    return tap_finish();
}
