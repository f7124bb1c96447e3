// SPDX-License-Identifier: Apache-2.0
// Throws so many exceptions of two kinds; who catches them rethrows every fifth.
//
//     probe_throws N
//     probe_throws N again     keeps each instead, and throws what it has kept
#include <cstdlib>
#include <exception>
#include <stdexcept>

__attribute__((noinline)) void probe_throws(long n)
{
    if (n % 3 == 0)
        throw std::runtime_error("a third");
    throw n;
}

__attribute__((noinline)) void probe_swallows(long n)
{
    try {
        probe_throws(n);
    } catch (...) {
        if (n % 5 == 0)
            throw;
    }
}

__attribute__((noinline)) void probe_throws_again(long n)
{
    std::exception_ptr kept;
    try {
        probe_throws(n);
    } catch (...) {
        kept = std::current_exception();
    }
    std::rethrow_exception(kept);
}

int main(int argc, char **argv)
{
    long caught = 0;
    for (long i = 0; argc > 1 && i < std::atol(argv[1]); i++)
        try {
            argc > 2 ? probe_throws_again(i) : probe_swallows(i);
        } catch (...) {
            caught++;
        }
    return caught > 0 ? 7 : 1;
}
