// SPDX-License-Identifier: Apache-2.0
// Threads of a JVM: compiled by the source launcher itself.
import java.util.Arrays;
import java.util.concurrent.Semaphore;

public class Threads {
    static void start(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        thread.start();
    }

    static int turns;

    public static void main(String[] arguments) throws Exception {
        Object lock = new Object();
        start(() -> { synchronized (lock) { try { Thread.sleep(10000000); } catch (InterruptedException e) { } } });
        Thread.sleep(200);
        start(() -> { synchronized (lock) { turns++; } });
        start(() -> new Semaphore(0).acquireUninterruptibly());
        start(() -> { for (;;) turns += Arrays.hashCode(new int[100]); });
        Thread.sleep(1000);
        System.out.println("ready");
        Thread.sleep(10000000);
    }
}
