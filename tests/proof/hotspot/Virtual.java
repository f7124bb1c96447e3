// SPDX-License-Identifier: Apache-2.0
// A virtual thread whose calls are known. It goes down, works there, now and then sleeps for a moment, and works on: then
// the frames further out are in the heap, and what it returns to is the machine's return barrier.
public class Virtual {
    static final int DEPTH = 30;
    static volatile long sink;

    static long leaf(long value) {
        return value ^ (value >>> 7);
    }

    static long work(long value) {
        long begin = System.nanoTime();
        while (System.nanoTime() - begin < 20_000_000L)
            value = value * 31 + leaf(value);
        return value;
    }

    static long whole(int depth) {
        return depth == 0 ? work(1) : whole(depth - 1) + 1;
    }

    static long split(int depth) throws InterruptedException {
        if (depth > 0)
            return split(depth - 1) + 1;
        Thread.sleep(1);
        return work(2);
    }

    static void run() {
        try {
            for (;;)
                sink = whole(DEPTH) + split(DEPTH);
        } catch (InterruptedException exception) {
            throw new RuntimeException(exception);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread thread = Thread.ofVirtual().start(Virtual::run);
        Thread.sleep(1000L * Integer.parseInt(arguments[0]));
        System.exit(thread.isAlive() ? 0 : 1);
    }
}
