import java.lang.management.*;
import java.util.*;

/** Allocates, collects, says what the MXBeans see, and waits for its input to end. */
public class Steady {
    static volatile Object sink;
    static final List<byte[]> keep = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 4000; i++) {
            sink = new byte[20_000];
            if (i % 10 == 0) keep.add(new byte[10_000]);
        }
        System.gc();
        for (int i = 0; i < 3000; i++) sink = new byte[10_000];
        say(); // loads the classes it needs
        System.gc();
        Thread.sleep(200); // concurrent cycles end, eden is sampled each 50 ms
        say();
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) { }
    }

    static void say() {
        StringBuilder b = new StringBuilder("BEGIN\n");
        for (MemoryPoolMXBean p : ManagementFactory.getMemoryPoolMXBeans()) {
            MemoryUsage u = p.getUsage();
            b.append("pool\t").append(p.getName()).append('\t').append(u.getUsed()).append('\t')
             .append(u.getCommitted()).append('\t').append(u.getMax()).append('\t').append(u.getInit()).append('\n');
        }
        for (GarbageCollectorMXBean g : ManagementFactory.getGarbageCollectorMXBeans())
            b.append("gc\t").append(g.getName()).append('\t').append(g.getCollectionCount()).append('\t').append(g.getCollectionTime()).append('\n');
        MemoryUsage h = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
        b.append("heap\t").append(h.getUsed()).append('\t').append(h.getCommitted()).append('\t').append(h.getMax()).append('\n');
        ThreadMXBean t = ManagementFactory.getThreadMXBean();
        b.append("threads\t").append(t.getThreadCount()).append('\t').append(t.getDaemonThreadCount()).append('\t')
         .append(t.getPeakThreadCount()).append('\t').append(t.getTotalStartedThreadCount()).append('\n');
        ClassLoadingMXBean c = ManagementFactory.getClassLoadingMXBean();
        b.append("classes\t").append(c.getLoadedClassCount()).append('\t').append(c.getTotalLoadedClassCount()).append('\t').append(c.getUnloadedClassCount()).append('\n');
        b.append("runtime\t").append(System.getProperty("java.runtime.name")).append('\t').append(System.getProperty("java.vm.vendor")).append('\t').append(System.getProperty("java.runtime.version")).append('\n');
        System.out.print(b);
    }
}
