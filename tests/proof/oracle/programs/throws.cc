// SPDX-License-Identifier: Apache-2.0
// Exceptions through frames of all kinds, caught near and far, thrown again, with destructors between.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

volatile unsigned destroyed;

struct guard {
    std::string text;
    explicit guard(int depth) : text("frame " + std::to_string(depth)) {}
    ~guard() { destroyed = destroyed + static_cast<unsigned>(text.size()); }
};

[[gnu::noinline]] int deep(int depth, int kind)
{
    guard here(depth);
    if (depth == 0) {
        if (kind == 0)
            throw std::runtime_error("deep");
        if (kind == 1)
            throw kind;
        return std::stoi("no number");
    }
    volatile char room[64] = {static_cast<char>(depth)};
    return deep(depth - 1, kind) + room[0];
}

[[gnu::noinline]] int again(int depth, int kind)
{
    try {
        return deep(depth, kind);
    } catch (const std::runtime_error &) {
        throw;
    } catch (int value) {
        throw std::logic_error(std::to_string(value));
    }
}

[[gnu::noinline]] double aligned(int depth, int kind)
{
    alignas(64) volatile double values[16] = {1.5};
    char *room = static_cast<char *>(__builtin_alloca(static_cast<size_t>(16 * (1 + depth % 5))));
    room[0] = static_cast<char>(depth);
    return values[0] + again(depth, kind) + room[0];
}

} // namespace

int main()
{
    unsigned caught[3] = {0, 0, 0};
    for (int round = 0; round < 90; round++) {
        try {
            aligned(round % 11, round % 3);
        } catch (const std::runtime_error &) {
            caught[0]++;
        } catch (const std::invalid_argument &) {
            caught[2]++;
        } catch (const std::exception &) {
            caught[1]++;
        }
    }
    std::printf("%u %u %u %u\n", caught[0], caught[1], caught[2], destroyed);
    return caught[0] + caught[1] + caught[2] == 90 ? 0 : 1;
}
