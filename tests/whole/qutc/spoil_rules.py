#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a copy of a table in which every CFA is one word too high: sound by its checker, wrong by every reader.

Layout and checksum follow formats/qut_table.h and qut_table_check.c.
"""

import struct
import sys

CHECKSUM_OFFSET, CELLS_OFFSET, CELL_BYTES = 16, 96, 16
FORM_FRAME, FORM_LONG, LONG_CELLS, CFA_WORDS = 2, 4, 7, 12
MASK, FACTOR = (1 << 64) - 1, 0x9FB21C651E98DF25


def checksum(data):
    lanes = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    whole = len(data) // 32 * 32
    for words in struct.iter_unpack("<4Q", data[:whole]):
        for i, word in enumerate(words):
            mixed = (lanes[i] ^ word) * FACTOR & MASK
            lanes[i] = mixed ^ mixed >> 29
    total = len(data)
    for lane, word in zip(lanes, struct.unpack("<4Q", data[whole:].ljust(32, b"\0"))):
        total = (total ^ lane ^ word) * FACTOR & MASK
        total ^= total >> 32
    return total


def main():
    table = bytearray(open(sys.argv[1], "rb").read())
    start, size = struct.unpack_from("<II", table, CELLS_OFFSET)
    at = start
    while at < start + size:
        if table[at] == FORM_FRAME:
            (words,) = struct.unpack_from("<h", table, at + CFA_WORDS)
            struct.pack_into("<h", table, at + CFA_WORDS, words + 1)
        at += CELL_BYTES * (LONG_CELLS if table[at] == FORM_LONG else 1)
    struct.pack_into("<Q", table, CHECKSUM_OFFSET, checksum(bytes(table[CHECKSUM_OFFSET + 8 :])))
    open(sys.argv[2], "wb").write(table)


main()
