# SPDX-License-Identifier: Apache-2.0
"""What ./demo records: threads that share a lock and a queue, read, compress and sort, for some two seconds."""
import queue
import random
import threading
import time
import zlib

END = time.monotonic() + 2
work, ledger, total = queue.Queue(8), threading.Lock(), 0


def read_files():
    """Reads itself again and again, and waits where the queue is full."""
    while time.monotonic() < END:
        with open(__file__, "rb") as file:
            work.put(file.read() * 50)
    for _ in range(2):
        work.put(None)


def compress_pieces():
    global total
    while (piece := work.get()) is not None:
        packed = zlib.compress(piece, 9)
        with ledger:  # held for a while: the other one waits for it
            total += len(packed)
            time.sleep(0.002)


def sort_numbers():
    source = random.Random(1)
    while time.monotonic() < END:
        sorted((source.random() for _ in range(20000)), key=lambda number: -number)


threads = [threading.Thread(target=function, name=name) for name, function in
           (("reader", read_files), ("packer-1", compress_pieces), ("packer-2", compress_pieces), ("sorter", sort_numbers))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{total} bytes")
