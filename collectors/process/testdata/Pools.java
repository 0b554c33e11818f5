
/**
 * Threads with given names, parked, until the input ends.
 *
 *   java Pools PREFIX=COUNT...   names are PREFIX1, PREFIX2 …; COUNT 0 is
 *                                       one thread named PREFIX
 */
public class Pools {
    public static void main(String[] args) throws Exception {
        Object never = new Object();
        for (String a : args) {
            int eq = a.lastIndexOf('=');
            String prefix = a.substring(0, eq);
            int count = Integer.parseInt(a.substring(eq + 1));
            for (int i = 1; i <= Math.max(count, 1); i++) {
                Thread t = new Thread(null, () -> {
                    synchronized (never) {
                        try { never.wait(); } catch (InterruptedException e) { }
                    }
                }, count == 0 ? prefix : prefix + i, 128 << 10);
                t.setDaemon(true);
                t.start();
            }
        }
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) { }
    }
}
