import java.util.concurrent.CountDownLatch;

// Idle starts as many named threads as it is told to, says READY and waits
// until it is stopped. With "lock" two of them hold a lock that the other wants.
public class Idle {
    static void start(String name, Runnable work) {
        Thread t = new Thread(null, work, name, 1 << 18);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        CountDownLatch never = new CountDownLatch(1);
        CountDownLatch up = new CountDownLatch(n);
        for (int i = 1; i <= n; i++) {
            start("catalina-exec-" + i, () -> {
                up.countDown();
                deep(20, never);
            });
        }
        up.await();
        if (args.length > 1) {
            Object a = new Object(), b = new Object();
            CountDownLatch both = new CountDownLatch(2);
            start("left-1", () -> take(a, b, both));
            start("right-1", () -> take(b, a, both));
            both.await();
        }
        System.out.println("READY");
        never.await();
    }

    static void take(Object first, Object second, CountDownLatch both) {
        synchronized (first) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException e) {
                return;
            }
            synchronized (second) {
                System.out.println("never");
            }
        }
    }

    // deep makes a stack of some depth, as a web application's are.
    static void deep(int depth, CountDownLatch latch) {
        if (depth > 0) {
            deep(depth - 1, latch);
            return;
        }
        try {
            latch.await();
        } catch (InterruptedException e) {
            // The program ends.
        }
    }
}
