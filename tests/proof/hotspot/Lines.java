// SPDX-License-Identifier: Apache-2.0
// Threads that end waiting deep in methods which compilers inline: each way is gone many times first, and waits a little
// now and then, so that the compiled code has the wait. What they are called inside is told by jstack.
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;

public class Lines {
    static final int ROUNDS = 30000, WAIT_EVERY = 40;
    static final long FOREVER_NS = Long.MAX_VALUE;
    static final Object monitor = new Object();
    static volatile boolean isOver;
    static int sum;

    interface Shape {
        int area(int round);
    }

    static class Square implements Shape {
        final int side;

        Square(int side) {
            this.side = side;
        }

        public int area(int round) {
            return side * side
                + pause(round);
        }
    }

    static class Circle extends Square {
        Circle(int radius) {
            super(radius);
        }

        @Override public int area(int round) { return 3 * super.area(round); }
    }

    static int pause(int round) {
        if (round % WAIT_EVERY == 0)
            LockSupport.parkNanos(isLast(round) ? FOREVER_NS : 1);
        return round;
    }

    static boolean isLast(int round) {
        return round == ROUNDS;
    }

    static int one(int round) { return two(round) + 1; } static int two(int round) {
        int a = three(round);
        int b = a * 3;
        return a + b;
    }

    static int three(int round) {
        // Lines far apart need the long form of the table's entries.
        switch (round & 3) {
        case 0:
            return
















                four(round);
        case 1: return four(round) + 1;
        default: return four(round) + round;
        }
    }

    static int four(int round) {
        int result = 0;
        for (int i = 0; i < 2; i++)
            result += i == 1 ? pause(round) : i;
        return result;
    }

    static int shapes(int round) {
        Shape shape = (round & 1) == 0 ? new Circle(round) : new Square(round);
        return shape.area(round);
    }

    static int lambda(int round) {
        IntUnaryOperator operator = value -> value + one(value);
        return operator.applyAsInt(round);
    }

    static int deep(int left, int round) {
        return left == 0 ? one(round) : deep(left - 1, round) + 1;
    }

    static int sleeping(int round) {
        try {
            if (round % WAIT_EVERY == 0)
                Thread.sleep(isLast(round) ? FOREVER_NS / 1000000 : 0, isLast(round) ? 0 : 1);
        } catch (InterruptedException e) {
            return 0;
        } finally {
            sum++;
        }
        return round;
    }

    static int waiting(int round) {
        if (round % WAIT_EVERY != 0)
            return round;
        synchronized (monitor) {
            try {
                if (isLast(round))
                    monitor.wait();
                else
                    monitor.wait(0, 1);
            } catch (InterruptedException e) {
                return 0;
            }
        }
        return round;
    }

    static synchronized int counted(int round) {
        return round + one(round);
    }

    static int caught(int round) {
        try {
            if (round % 7 == 0)
                throw new IllegalStateException("seven");
            return pause(round);
        } catch (IllegalStateException e) {
            return pause(round);
        }
    }

    // One for each way; the work of it is a method of its own, so that it is compiled by itself.
    static void go(IntUnaryOperator way, CountDownLatch warm) {
        for (int round = 1; round <= ROUNDS; round++) {
            if (round == ROUNDS)
                warm.countDown();
            sum += way.applyAsInt(round);
        }
    }

    static void spin(CountDownLatch warm) {
        warm.countDown();
        while (!isOver)
            sum += descend(12);
    }

    static int descend(int left) { return left == 0 ? work() : descend(left - 1) + 1; }

    static int work() {
        int result = 0;
        for (int i = 0; i < 2000; i++)
            result += first(i);
        return result;
    }

    static int first(int i) { return second(i) ^ 1; }

    static int second(int i) { return third(i, sum) * 5; }

    static int third(int i, int by) {
        return by == i ? i / 7 : i % 13;
    }

    static Thread start(String name, IntUnaryOperator way, CountDownLatch warm) {
        Thread thread = new Thread(way == null ? () -> spin(warm) : () -> go(way, warm), name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        IntUnaryOperator[] ways = {Lines::one, Lines::shapes, Lines::lambda, round -> deep(5, round), Lines::sleeping,
            Lines::waiting, Lines::counted, Lines::caught};
        String[] names = {"one", "shapes", "lambda", "deep", "sleeping", "waiting", "counted", "caught"};
        CountDownLatch warm = new CountDownLatch(ways.length + 1);
        for (int i = 0; i < ways.length; i++)
            start("way-" + names[i], ways[i], warm);
        start("spinner", null, warm);
        warm.await();
        Thread.sleep(500);
        System.out.println("warm");
        System.out.flush();
        Thread.sleep(Integer.parseInt(arguments[0]) * 1000L);
        isOver = true;
    }
}
