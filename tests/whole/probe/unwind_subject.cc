// SPDX-License-Identifier: Apache-2.0
// Leaves functions in all ways and keeps its own account of it: by returning, by exceptions through cleanups that call
// and throw themselves, by what is kept and thrown again, out of deep recursions, by longjmp, at a thread's end; while
// another stack of the same thread has a call that is open.
//
//     unwind_subject ROUNDS THREADS     prints a line for each function: NAME CALLS RETURNED LEFT; then ends
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>

namespace
{

struct account {
    const char *name;
    std::atomic<long> calls{0}, returned{0}, left{0};
};

account inner{"un_inner"}, middle{"un_middle"}, outer{"un_outer"}, cleanup{"un_cleanup"}, deep{"un_deep"},
    again{"un_again"}, jump{"un_jump"}, ends{"un_ends"}, aside{"un_aside"}, hops{"un_hops"};
account *const accounts[] = {&inner, &middle, &outer, &cleanup, &deep, &again, &jump, &ends, &aside, &hops};

// Counts how the call that has it is left.
class counted
{
  public:
    explicit counted(account &which) : of(which), thrown(std::uncaught_exceptions()) { of.calls++; }
    ~counted() { (std::uncaught_exceptions() > thrown ? of.left : of.returned)++; }

  private:
    account &of;
    int thrown;
};

} // namespace

#define PROBED extern "C" __attribute__((noinline))

PROBED void un_inner(long n)
{
    counted call(inner);
    if (n % 3 == 0)
        throw std::runtime_error("a third");
    if (n % 3 == 1)
        throw n;
}

PROBED void un_cleanup(long n)
{
    counted call(cleanup);
    if (n % 2)
        return;
    try {
        un_inner(n * 3); // throws, while another one may be on its way
    } catch (const std::runtime_error &) {
    }
}

namespace
{

struct cleans {
    long n;
    ~cleans() { un_cleanup(n); }
};

} // namespace

PROBED void un_middle(long n)
{
    counted call(middle);
    cleans at_the_end{n};
    un_inner(n);
}

PROBED void un_outer(long n)
{
    counted call(outer);
    try {
        un_middle(n);
    } catch (long caught) {
        if (caught % 5 == 0)
            throw;
    }
}

PROBED long un_deep(long depth, long n)
{
    counted call(deep);
    if (depth == 0)
        throw n;
    return un_deep(depth - 1, n) + 1;
}

PROBED void un_again(long n)
{
    counted call(again);
    std::exception_ptr kept;
    try {
        un_inner(n);
    } catch (...) {
        kept = std::current_exception();
    }
    if (kept)
        std::rethrow_exception(kept);
}

// Ends by a jump: who calls it keeps its account.
PROBED __attribute__((optimize("optimize-sibling-calls"))) void un_hops(long n)
{
    hops.calls++;
    un_inner(n);
}

PROBED void un_jump(std::jmp_buf *to, long n)
{
    __asm__ volatile("" : "+r"(n) : "r"(to) : "memory");
    jump.calls++;
    if (n & 1) {
        jump.left++;
        std::longjmp(*to, 1);
    }
    jump.returned++;
}

PROBED void *un_ends(void *unused)
{
    ends.calls++;
    ends.left++;
    pthread_exit(unused);
}

namespace
{

ucontext_t main_context, aside_context;
thread_local char aside_stack[65536];

} // namespace

// Stays open while the thread's own stack throws and catches.
PROBED void un_aside()
{
    counted call(aside);
    swapcontext(&aside_context, &main_context);
}

namespace
{

template <typename F> void try_it(F what)
{
    try {
        what();
    } catch (...) {
    }
}

void rounds_of(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        try_it([i] { un_outer(i); });
        try_it([i] { un_deep(i % 50, i); });
        try_it([i] { un_again(i); });
        try_it([i] {
            try {
                un_hops(i);
                hops.returned++;
            } catch (...) {
                hops.left++;
                throw;
            }
        });
        try_it([] { un_inner(2); });
    }
}

void *thread_of(void *rounds)
{
    std::jmp_buf here;
    const long count = (long)rounds;
    rounds_of(count);
    for (volatile long i = 0; i < count; i = i + 1)
        if (setjmp(here) == 0)
            un_jump(&here, i);
    un_jump(&here, 0); // by which it is known that the last one was left
    return nullptr;
}

void with_another_stack(long rounds)
{
    getcontext(&aside_context);
    aside_context.uc_stack.ss_sp = aside_stack;
    aside_context.uc_stack.ss_size = sizeof aside_stack;
    aside_context.uc_link = &main_context;
    makecontext(&aside_context, un_aside, 0);
    swapcontext(&main_context, &aside_context);
    rounds_of(rounds);
    swapcontext(&main_context, &aside_context);
}

void run_threads(void *(*what)(void *), void *with, long count)
{
    pthread_t threads[16];
    for (long i = 0; i < count && i < 16; i++)
        if (pthread_create(&threads[i], nullptr, what, with) != 0)
            std::abort();
    for (long i = 0; i < count && i < 16; i++)
        pthread_join(threads[i], nullptr);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const long rounds = std::atol(argv[1]), threads = std::atol(argv[2]);
    run_threads(thread_of, (void *)rounds, threads);
    for (int i = 0; i < 10; i++)
        run_threads(un_ends, nullptr, threads);
    with_another_stack(rounds);
    for (const account *one : accounts)
        std::printf("%s %ld %ld %ld\n", one->name, one->calls.load(), one->returned.load(), one->left.load());
    std::fflush(stdout);
    std::getchar(); // whoever looks sees that threads have ended
    return 0;
}
