// SPDX-License-Identifier: Apache-2.0
// What a program loads while it is recorded. Its frames have no frame pointer: only its table finds their callers.
__attribute__((noinline)) static void late_inner(volatile double *sum, const volatile int *numbers)
{
    volatile int more[30] = {0};
    for (int i = 0; i < 100000; i++)
        *sum += numbers[i % 40] + more[i % 30];
}

void late_burn(volatile double *sum); // found by name

void late_burn(volatile double *sum)
{
    volatile int numbers[40] = {0};
    late_inner(sum, numbers);
    *sum += numbers[7];
}
