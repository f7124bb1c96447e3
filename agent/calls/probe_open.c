// SPDX-License-Identifier: Apache-2.0
// Calls that are open, of each thread, where a script asks which of them an exception leaves. Each has a word of the
// shadow at its slot, when it began: that is 0 once it has returned, and another one's once the slot is used again. The
// list beside says which slots those are. Beside these, calls that have jumped to other functions (tail calls), and end
// with what is at their slot by now. The same holds here as in probe.c: a signal handler may come in anywhere.
#include <linux/mman.h>
#include <sys/syscall.h>

#include "agent/calls/inside.h"

enum { LIST_BYTES = 9 << 17, JUMPED_MOST = 4096, READ_WRITE = 1 | 2, NO_SUCH_PROCESS = 3 };

struct list {
    struct list *next;  // of all threads, those that have ended as well
    uint32_t tid;       // 0: nobody's, and free for another thread
    uint32_t count;     // of `calls`; those that are over may be among them
    uint64_t thrown_at; // the innermost slot of what has been thrown and not caught; 0: nothing has
    uint32_t thrown;
    uint32_t jumped_count; // of `jumped`; slot 0: over
    struct calls_open_call jumped[JUMPED_MOST];
    struct calls_open_call calls[];
};
enum { CALLS_MOST = (LIST_BYTES - sizeof(struct list)) / sizeof(struct calls_open_call) };

static struct list *lists;
static uint32_t session; // lists of an earlier one are gone
static _Thread_local struct list *own_list __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t own_session __attribute__((tls_model("initial-exec")));

static uint64_t *began_at(uint64_t slot)
{
    return (uint64_t *)(slot - calls_distance(calls_machine.times_log2));
}

static bool is_open(const struct calls_open_call *call)
{
    return call->slot && *began_at(call->slot) == call->began;
}

static struct list *find_free(uint32_t tid)
{
    for (struct list *list = __atomic_load_n(&lists, __ATOMIC_ACQUIRE); list; list = list->next) {
        uint32_t nobody = 0;
        if (__atomic_compare_exchange_n(&list->tid, &nobody, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return list;
    }
    return NULL;
}

static struct list *make_list(uint32_t tid)
{
    const long at =
        calls_system(SYS_mmap, 0, LIST_BYTES, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0)
        return NULL;
    struct list *list = (struct list *)at;
    list->tid = tid;
    list->next = __atomic_load_n(&lists, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&lists, &list->next, list, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
    return list;
}

// A handler that comes in between may make another one, which stays free for somebody.
static struct list *list_of_thread(void)
{
    if (own_list && own_session == session)
        return own_list;
    const uint32_t tid = (uint32_t)calls_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
    struct list *list = find_free(tid);
    list = list ? list : make_list(tid);
    if (list) {
        own_list = list;
        own_session = session;
    }
    return list;
}

// ---- calls begin and end

bool calls_open_begins(const struct calls_open_call *call)
{
    struct list *list = list_of_thread();
    *began_at(call->slot) = call->began;
    if (!list || list->count >= CALLS_MOST)
        return false;
    // The place first: a handler takes those behind it, and what was there before is over.
    struct calls_open_call *place = &list->calls[list->count];
    __atomic_store_n(&list->count, list->count + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *place = *call;
    return true;
}

void calls_open_ends(uint64_t slot)
{
    struct list *list = own_session == session ? own_list : NULL;
    *began_at(slot) = 0;
    while (list && list->count && !is_open(&list->calls[list->count - 1]))
        __atomic_store_n(&list->count, list->count - 1, __ATOMIC_RELAXED);
}

// ---- calls jump to others

static void forget_jumped(struct list *list, uint32_t i)
{
    list->jumped[i].slot = 0;
    while (list->jumped_count && list->jumped[list->jumped_count - 1].slot == 0)
        __atomic_store_n(&list->jumped_count, list->jumped_count - 1, __ATOMIC_RELAXED);
}

static bool take_jumped(struct list *list, uint64_t slot, struct calls_open_call *call)
{
    for (uint32_t i = list ? list->jumped_count : 0; i-- > 0;)
        if (list->jumped[i].slot == slot) {
            *call = list->jumped[i];
            forget_jumped(list, i);
            return true;
        }
    return false;
}

// Of those that were left nobody may have noticed it: where the slot is used anew, they are over. A handler that comes
// in before the count is told uses the same place.
bool calls_open_jumps(const struct calls_open_call *call)
{
    struct list *list = list_of_thread();
    struct calls_open_call left;
    while (call->is_first && take_jumped(list, call->slot, &left))
        continue;
    if (!list || list->jumped_count >= JUMPED_MOST)
        return false;
    struct calls_open_call *place = &list->jumped[list->jumped_count];
    *place = *call;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&list->jumped_count, list->jumped_count + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *place = *call;
    return true;
}

bool calls_open_jumped(uint64_t slot, struct calls_open_call *call)
{
    return take_jumped(own_session == session ? own_list : NULL, slot, call);
}

// ---- calls are left

// With those that have jumped to it.
static void leave(struct list *list, const struct calls_open_call *call, uint32_t tid, calls_left_fn *left,
                  void *context)
{
    struct calls_open_call copy = *call;
    const uint64_t slot = copy.slot;
    *began_at(slot) = 0;
    do
        left(context, &copy, tid);
    while (take_jumped(list, slot, &copy));
}

static bool leave_slot(struct list *list, uint64_t slot, uint32_t tid, calls_left_fn *left, void *context)
{
    for (uint32_t i = list ? list->count : 0; i-- > 0;)
        if (list->calls[i].slot == slot && is_open(&list->calls[i])) {
            leave(list, &list->calls[i], tid, left, context);
            return true;
        }
    return false;
}

// A new thread may have the stack of one that has ended.
void calls_open_reused(uint64_t slot, calls_left_fn *left, void *context)
{
    struct list *own = own_session == session ? own_list : NULL;
    if (leave_slot(own, slot, 0, left, context))
        return;
    for (struct list *list = __atomic_load_n(&lists, __ATOMIC_ACQUIRE); list; list = list->next)
        if (list != own && leave_slot(list, slot, __atomic_load_n(&list->tid, __ATOMIC_RELAXED), left, context))
            return;
    *began_at(slot) = 0;
}

void calls_open_thrown(uint64_t slot)
{
    struct list *list = list_of_thread();
    if (!list)
        return;
    if (!list->thrown || slot < list->thrown_at)
        list->thrown_at = slot;
    list->thrown++;
}

// What was thrown lies further in than who catches it, and on the same stack: so does all that is left. Where nobody
// has said that something is thrown, it is what began last, as far as it lies further in.
void calls_open_caught(uint64_t slot, calls_left_fn *left, void *context)
{
    struct list *list = own_session == session ? own_list : NULL;
    if (!list)
        return;
    const bool is_known = list->thrown && list->thrown_at <= slot;
    const uint64_t from = is_known ? list->thrown_at : 0;
    for (uint32_t i = list->count; i-- > 0;) {
        struct calls_open_call *call = &list->calls[i];
        if (!is_open(call))
            continue;
        if (call->slot >= from && call->slot <= slot)
            leave(list, call, 0, left, context);
        else if (!is_known)
            break;
    }
    if (list->thrown && --list->thrown == 0)
        list->thrown_at = 0;
    while (list->count && !is_open(&list->calls[list->count - 1]))
        __atomic_store_n(&list->count, list->count - 1, __ATOMIC_RELAXED);
}

// ---- threads and the session

// Its thread goes on in the calls that its parent's had begun, by another number. Other threads are not there.
void calls_open_after_fork(void)
{
    for (struct list *list = lists; list; list = list->next) {
        const bool is_own = list == own_list && own_session == session;
        list->tid = is_own ? (uint32_t)calls_system(SYS_gettid, 0, 0, 0, 0, 0, 0) : 0;
        list->count = is_own ? list->count : 0;
        list->jumped_count = is_own ? list->jumped_count : 0;
    }
}

// A thread that has ended has left what it had begun.
void calls_open_look_for_ended(uint32_t pid, calls_left_fn *left, void *context)
{
    for (struct list *list = __atomic_load_n(&lists, __ATOMIC_ACQUIRE); list; list = list->next) {
        const uint32_t tid = __atomic_load_n(&list->tid, __ATOMIC_ACQUIRE);
        if (!tid || calls_system(SYS_tgkill, pid, tid, 0, 0, 0, 0) != -NO_SUCH_PROCESS)
            continue;
        for (uint32_t i = list->count; i-- > 0;)
            if (is_open(&list->calls[i]))
                leave(list, &list->calls[i], tid, left, context);
        list->count = list->jumped_count = 0;
        list->thrown = 0;
        __atomic_store_n(&list->tid, 0, __ATOMIC_RELEASE);
    }
}

void calls_open_end(void)
{
    struct list *list = lists;
    lists = NULL;
    session++;
    while (list) {
        struct list *next = list->next;
        calls_system(SYS_munmap, (long)list, LIST_BYTES, 0, 0, 0, 0);
        list = next;
    }
}
