// SPDX-License-Identifier: Apache-2.0
// Code whose names are looked up: templates, functions inlined into each other over several levels and files, lambdas,
// exceptions, parts that the compiler moves elsewhere.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "subject.hpp"

namespace shop {

template <typename T> class Cart {
public:
    void add(T item, int price)
    {
        items.push_back({item, price});
        check(price);
    }

    long total(long discount) const
    {
        long sum = 0;
        for (const auto &entry : items)
            sum += apply(entry.price, discount);
        return sum;
    }

    __attribute__((noinline)) void sort()
    {
        std::sort(items.begin(), items.end(), [](const Entry &a, const Entry &b) {
            return reduce(a.price) < reduce(b.price);
        });
    }

private:
    struct Entry {
        T name;
        int price;
    };
    static long apply(int price, long discount)
    {
        return reduce(price) - discount;
    }
    void check(int price)
    {
        if (price < 0)
            throw std::invalid_argument("price " + std::to_string(price));
    }
    std::vector<Entry> items;
};

} // namespace shop

namespace {

struct Visitor {
    virtual ~Visitor() = default;
    virtual int visit(const std::string &text) = 0;
};

struct Counter : Visitor {
    std::map<std::string, int> seen;
    int visit(const std::string &text) override
    {
        return ++seen[text];
    }
};

} // namespace

extern "C" __attribute__((noinline)) long names_subject(int count)
{
    shop::Cart<std::string> cart;
    std::unique_ptr<Visitor> visitor(new Counter);
    long visits = 0;
    for (int i = 0; i < count; i++) {
        std::string name = "item" + std::to_string(i % 7);
        visits += visitor->visit(name);
        cart.add(name, i * 37 % 100);
    }
    cart.sort();
    return cart.total(1) + visits;
}

int main(int argc, char **argv)
{
    (void)argv;
    try {
        std::printf("%ld\n", names_subject(argc * 100));
    } catch (const std::exception &error) {
        std::puts(error.what());
    }
    return 0;
}
