// SPDX-License-Identifier: Apache-2.0
// What a dynamic loader takes, and what is known as an OAT file: the three symbols, a header, code between them. Two of
// them differ in their answer, and in the checksum that tells of it.
#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern const unsigned char oatdata[64];
const unsigned char oatdata[64] = {'o', 'a', 't', '\n', '1', '8', '3', 0, ANSWER, ANSWER, ANSWER, ANSWER};

EXPORTED void oatexec(void);
void oatexec(void) {}

EXPORTED int answer(void);
int answer(void)
{
    return ANSWER;
}

EXPORTED void oatlastword(void);
void oatlastword(void)
{
    __asm__ volatile("nop\n\tnop\n\tnop\n\tnop"); // four bytes of it are the last word
}
