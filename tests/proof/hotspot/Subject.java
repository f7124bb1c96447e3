// SPDX-License-Identifier: Apache-2.0
// A thread whose calls are known: run, descend DEPTH + 1 times, work, and what work calls. Methods that are looked for
// are never inlined: who runs this tells the compiler so. It copies, compares, allocates, throws, calls native methods.
import java.util.Arrays;

public class Subject implements Runnable {
    static final int DEPTH = 30;
    static volatile Object kept;
    static String[] texts = new String[600];

    static long descend(int left) {
        return left == 0 ? work() : descend(left - 1) + 1;
    }

    // No call but descend's and work's gives a long: the interpreter returns to one place for each kind of result.
    static int leaf(int a, int b) {
        return a * 31 + (b ^ a >>> 7);
    }

    static int thrower(int number) {
        if (number % 50 == 0)
            throw new IllegalStateException();
        return number;
    }

    static long work() {
        long sum = 0;
        for (int round = 0; round < 4; round++) {
            String[] sorted = texts.clone();
            Arrays.sort(sorted);
            for (int i = 0; i < 20000; i++)
                sum += leaf((int) sum, i);
            for (int i = 0; i < 300; i++) {
                try {
                    sum += thrower(i);
                } catch (IllegalStateException e) {
                    sum--;
                }
            }
            byte[] bytes = new byte[4000 + round];
            System.arraycopy(bytes, 1, bytes, 0, bytes.length - 1);
            sum += Arrays.hashCode(bytes) + System.identityHashCode(bytes) + new StringBuilder().append(sum).length();
            Thread.yield();
            kept = sorted;
        }
        return sum;
    }

    public void run() {
        for (;;)
            kept = descend(DEPTH);
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < texts.length; i++)
            texts[i] = "text " + i * 7919 % 601;
        Thread thread = new Thread(new Subject(), "subject");
        thread.setDaemon(true);
        thread.start();
        Thread.sleep(Integer.parseInt(arguments[0]) * 1000L);
    }
}
