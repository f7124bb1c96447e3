// SPDX-License-Identifier: Apache-2.0
// Exceptions through frames with destructors.
#include <stdexcept>
#include <string>

extern "C" {
void storm_walk_here(void);
void storm_spin(unsigned rounds);
void storm_exceptions(unsigned round);
}

namespace
{
struct guard {
    explicit guard(int depth) : text(std::to_string(depth)) {}
    ~guard()
    {
        if (text.size() % 2)
            storm_walk_here();
    }
    std::string text;
};

__attribute__((noinline)) int throw_from(int depth)
{
    guard held(depth);
    if (depth == 0)
        throw std::runtime_error("thrown to be caught");
    return throw_from(depth - 1) + static_cast<int>(held.text.size());
}
} // namespace

void storm_exceptions(unsigned round)
{
    for (unsigned i = 0; i < 60; i++) {
        try {
            throw_from(static_cast<int>((round + i) % 12));
        } catch (const std::exception &) {
            storm_spin(2);
            storm_walk_here();
        }
    }
}
