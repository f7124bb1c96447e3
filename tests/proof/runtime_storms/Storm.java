// SPDX-License-Identifier: Apache-2.0
// A virtual machine in uproar: garbage, classes that are loaded and unloaded, code that is made and thrown away, threads
// that come and go, exceptions, native calls. Its own sums say at the end whether all of it went right.
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Storm {
    static volatile boolean ended;
    static volatile Throwable failure;

    // What each loader defines anew. Public: it is called from another loader's classes.
    public static class Victim {
        public static long work(long seed) {
            long sum = seed;
            for (int i = 0; i < 500; i++)
                sum = sum * 31 + (sum >>> 7) + i;
            return sum;
        }
    }

    static class Loader extends ClassLoader {
        final byte[] bytes;

        Loader(byte[] bytes) {
            super(Storm.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Storm$Victim") ? defineClass(name, bytes, 0, bytes.length) : super.loadClass(name, resolve);
        }
    }

    static void check(boolean holds, String what) {
        if (!holds)
            throw new IllegalStateException(what);
    }

    static void classes() throws Exception {
        byte[] bytes;
        try (InputStream in = Storm.class.getResourceAsStream("Storm$Victim.class")) {
            bytes = in.readAllBytes();
        }
        long round = 0;
        while (!ended) {
            Method work = new Loader(bytes).loadClass("Storm$Victim").getMethod("work", long.class);
            for (int i = 0; i < 400; i++) // enough for a compiler
                check((Long) work.invoke(null, round + i) == Victim.work(round + i), "a class that was loaded anew");
            if (++round % 50 == 0)
                System.gc();
        }
    }

    static void garbage() {
        long round = 0;
        while (!ended) {
            Map<String, List<Integer>> map = new HashMap<>();
            for (int i = 0; i < 3000; i++)
                map.computeIfAbsent("key" + i % 97, key -> new ArrayList<>()).add(i);
            long sum = map.values().stream().flatMap(List::stream).mapToLong(Integer::longValue).sum();
            check(sum == 3000L * 2999 / 2, "garbage round " + round++);
        }
    }

    static int deep(int depth) {
        if (depth == 0)
            throw new IllegalArgumentException("thrown");
        return deep(depth - 1) + 1;
    }

    static void exceptions() {
        int round = 0;
        while (!ended) {
            boolean caught = false;
            try {
                deep(20 + round++ % 200);
            } catch (IllegalArgumentException e) {
                caught = e.getStackTrace().length > 20;
            }
            check(caught, "an exception");
        }
    }

    static void natives() throws Exception {
        byte[] data = new byte[20000], packed = new byte[30000], back = new byte[20000];
        for (int i = 0; i < data.length; i++)
            data[i] = (byte) (i * 7 ^ i >> 5);
        while (!ended) {
            Deflater deflater = new Deflater();
            deflater.setInput(data);
            deflater.finish();
            int size = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, size);
            int got = inflater.inflate(back);
            inflater.end();
            CRC32 a = new CRC32(), b = new CRC32();
            a.update(data);
            b.update(back);
            check(got == data.length && a.getValue() == b.getValue(), "a native call");
        }
    }

    static void threads() throws Exception {
        while (!ended) {
            long[] sums = new long[4];
            Thread[] threads = new Thread[sums.length];
            for (int t = 0; t < threads.length; t++) {
                int at = t;
                threads[t] = new Thread(() -> sums[at] = Victim.work(at));
                threads[t].start();
            }
            for (int t = 0; t < threads.length; t++) {
                threads[t].join();
                check(sums[t] == Victim.work(t), "a thread");
            }
        }
    }

    interface Work {
        void run() throws Exception;
    }

    static Thread start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                failure = e;
                ended = true;
            }
        }, name);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        Thread[] all = {start("classes", Storm::classes), start("garbage", Storm::garbage), start("exceptions", Storm::exceptions),
                        start("natives", Storm::natives), start("threads", Storm::threads)};
        while (!ended && System.nanoTime() < end)
            Thread.sleep(20);
        ended = true;
        for (Thread thread : all)
            thread.join();
        if (failure != null)
            throw new Exception("the program went wrong", failure);
        System.out.println("all sums hold");
    }
}
