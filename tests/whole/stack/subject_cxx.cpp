// SPDX-License-Identifier: Apache-2.0
// Names that need to be made readable.
#include <cstdio>
#include <unistd.h>

namespace shop
{
volatile int sink;

template <typename T> struct Cart {
    __attribute__((noinline)) static T total(long weight, const char *label);
};

template <typename T> __attribute__((noinline)) T Cart<T>::total(long weight, const char *label)
{
    char bytes[64];
    std::puts(label);
    std::fflush(stdout);
    while (read(STDIN_FILENO, bytes, sizeof bytes) > 0)
        sink = static_cast<int>(weight);
    return T(weight);
}
} // namespace shop

int main()
{
    alarm(120);
    shop::sink = shop::Cart<int>::total(7, "ready");
    return 0;
}
