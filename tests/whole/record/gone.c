// SPDX-License-Identifier: Apache-2.0
int gone_library(int n);

int main(void)
{
    return gone_library(-1);
}
