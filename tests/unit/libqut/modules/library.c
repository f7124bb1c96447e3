// SPDX-License-Identifier: Apache-2.0
// Two libraries alike in everything but their answer.
int answer(void);
int answer(void)
{
    return ANSWER;
}
