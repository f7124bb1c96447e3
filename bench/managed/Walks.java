// SPDX-License-Identifier: Apache-2.0
// A thread with 31 compiled methods on its stack, which works: sorts, calls, allocates. Its walks are measured by
// java_walks.c. The one who runs this tells the compiler not to inline what is called.
import java.util.Arrays;

public class Walks implements Runnable {
    static final int DEPTH = 30;
    static volatile Object kept;
    static String[] texts = new String[600];

    static native void join();
    static native void measure(int seconds);

    static long descend(int left) {
        return left == 0 ? work() : descend(left - 1) + 1;
    }

    static int leaf(int a, int b) {
        return a * 31 + (b ^ a >>> 7);
    }

    static long work() {
        long sum = 0;
        for (int round = 0; round < 4; round++) {
            String[] sorted = texts.clone();
            Arrays.sort(sorted);
            for (int i = 0; i < 20000; i++)
                sum += leaf((int) sum, i);
            byte[] bytes = new byte[4000 + round];
            sum += Arrays.hashCode(bytes);
            kept = sorted;
        }
        return sum;
    }

    public void run() {
        join();
        for (;;)
            kept = descend(DEPTH);
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        for (int i = 0; i < texts.length; i++)
            texts[i] = "text " + i * 7919 % 601;
        Thread thread = new Thread(new Walks(), "subject");
        thread.setDaemon(true);
        thread.start();
        Thread.sleep(5000);
        measure(Integer.parseInt(arguments[1]));
    }
}
