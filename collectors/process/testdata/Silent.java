import java.io.*;
import java.net.*;
import java.util.*;

/**
 * A server that has died in one of the silent ways, or only looks like it. Its
 * threads have Tomcat's names; its port is in the first line it prints.
 *
 *   queue     accepts nothing any more; its threads are idle
 *   unread    accepts, and nobody reads; its threads are idle
 *   poller    ends its Poller thread at the first input line; it accepts and nobody reads
 *   busy      each thread has a connection and waits for something else; others wait unread
 *   body      one thread waits before it reads the rest of a request
 *   idle      nothing to do
 */
public class Silent {
    public static void main(String[] args) throws Exception {
        String mode = args[0];
        ServerSocket server = new ServerSocket();
        server.bind(new InetSocketAddress("127.0.0.1", 0), 5);
        int port = server.getLocalPort();
        Object never = new Object();
        List<Socket> kept = Collections.synchronizedList(new ArrayList<>());
        int threads = 10;
        for (int i = 1; i <= threads; i++) start("catalina-exec-" + i, never);
        Thread poller = new Thread(() -> {
            try {
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
                String line = in.readLine();
                if (!mode.equals("poller")) while (line != null) line = in.readLine();
                if (line == null) System.exit(0);
            } catch (IOException e) { }
        }, "http-nio-" + port + "-Poller");
        poller.setDaemon(true);
        poller.start();
        Thread acceptor = new Thread(() -> {
            try {
                if (mode.equals("queue")) synchronized (never) { never.wait(); }
                while (true) {
                    Socket s = server.accept();
                    kept.add(s);
                    int n = kept.size();
                    if (mode.equals("busy") && n <= threads) s.getInputStream().read(new byte[1000]);
                    if (mode.equals("body")) s.getInputStream().read(new byte[4]);
                    System.out.println("accepted " + n);
                }
            } catch (Exception e) { }
        }, "http-nio-" + port + "-Acceptor");
        acceptor.setDaemon(true);
        acceptor.start();
        System.out.println(port);
        System.out.flush();
        // Whoever watches the dead Poller ends us; a minute is the most we stay.
        Thread.sleep(60_000);
    }

    static void start(String name, Object never) {
        Thread t = new Thread(() -> {
            synchronized (never) {
                try { never.wait(); } catch (InterruptedException e) { }
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }
}
