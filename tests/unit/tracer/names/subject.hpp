// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_NAMES_SUBJECT_HPP
#define TESTS_NAMES_SUBJECT_HPP

namespace shop {

inline long twice(long value)
{
    return value * 2 + (value >> 3);
}

inline long reduce(long value)
{
    long result = value;
    while (result > 50)
        result = twice(result) % 49;
    return result;
}

} // namespace shop

#endif
