import java.util.*;

/** Allocates from two threads for a while, collects twice, and waits for its input to end. */
public class Churn {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[2];
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                List<byte[]> keep = new ArrayList<>();
                for (int i = 0; i < 30_000; i++) {
                    sink = new byte[20_000];
                    if (i % 10 == 0) keep.add(new byte[10_000]);
                    if (keep.size() > 1500) keep.clear();
                }
            });
            threads[t].start();
        }
        for (Thread t : threads) t.join();
        System.gc();
        for (int i = 0; i < 1000; i++) sink = new byte[10_000];
        System.gc();
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) { }
    }
}
