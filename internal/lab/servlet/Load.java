import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import NAMESPACE.servlet.AsyncContext;
import NAMESPACE.servlet.ServletException;
import NAMESPACE.servlet.http.HttpServlet;
import NAMESPACE.servlet.http.HttpServletRequest;
import NAMESPACE.servlet.http.HttpServletResponse;

/**
 * The application of the lab's servers. NAMESPACE becomes javax or jakarta when
 * it is compiled, so that one source serves Tomcat 7 to 11 and Jetty 9.4 and 12.
 *
 * /slow?ms=200          holds a thread for 200 ms
 * /slow?op=status&code=503
 * /slow?op=size&n=65536 answers with n bytes
 * /slow?op=npe          throws a NullPointerException
 * /slow?op=ex           throws a ServletException with a root cause
 * /slow?op=soe          overflows the stack
 * /slow?op=alloc&n=8    makes n MB of garbage
 * /slow?op=leak&n=8     keeps n MB for ever
 * /slow?op=out&n=3      prints n raw lines to standard output
 * /slow?op=hold&dir=D   reads n bytes of the body (0), holds its thread while the
 *                       file D/closed is there, and reads the rest of the body;
 *                       it has a file D/held-* while it does, so that whoever
 *                       counts these knows how many threads have a request
 * /slow?op=poll&dir=D   the same without a thread, as a long poll waits
 *
 * With -Dlab.start.hold=D it is as slow to deploy as the file D/closed stays.
 */
public class Load extends HttpServlet {
    private static volatile Object sink;
    private static final java.util.Queue<Object> leaked = new java.util.concurrent.ConcurrentLinkedQueue<>();

    @Override
    public void init() throws ServletException {
        String dir = System.getProperty("lab.start.hold");
        try {
            if (dir != null) hold(dir);
        } catch (IOException e) {
            throw new ServletException(e);
        }
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response)
            throws ServletException, IOException {
        int ms = number(request, "ms", 0);
        int n = number(request, "n", 0);
        if (ms > 0) {
            try {
                Thread.sleep(ms);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        String op = request.getParameter("op");
        if ("status".equals(op)) {
            response.sendError(number(request, "code", 500));
            return;
        }
        if ("npe".equals(op)) {
            String nothing = null;
            nothing.length();
        }
        if ("ex".equals(op)) {
            throw new ServletException("test failure", new IllegalStateException("root cause"));
        }
        if ("soe".equals(op)) {
            sink = deeper(0);
        }
        if ("alloc".equals(op)) {
            for (int i = 0; i < n; i++) {
                sink = new byte[1 << 20];
            }
        }
        if ("leak".equals(op)) {
            for (int i = 0; i < n; i++) {
                leaked.add(new byte[1 << 20]);
            }
        }
        if ("out".equals(op)) {
            for (int i = 0; i < n; i++) {
                System.out.println("a raw line of the application, number " + i);
            }
        }
        if ("hold".equals(op)) {
            InputStream in = request.getInputStream();
            byte[] part = new byte[8192];
            for (int got; n > 0 && (got = in.read(part, 0, Math.min(n, part.length))) > 0; ) {
                n -= got;
            }
            hold(request.getParameter("dir"));
            while (in.read(part) > 0) { }
        }
        if ("poll".equals(op)) {
            final String dir = request.getParameter("dir");
            final AsyncContext later = request.startAsync();
            later.setTimeout(0);
            Thread answer = new Thread(() -> {
                try {
                    hold(dir);
                    later.getResponse().getWriter().println("polled");
                } catch (IOException e) {
                    // The client is gone.
                }
                later.complete();
            }, "long-poll");
            answer.setDaemon(true);
            answer.start();
            return;
        }
        byte[] body = "size".equals(op) ? new byte[n] : ("slept " + ms + " ms\n").getBytes("US-ASCII");
        response.setContentType("text/plain");
        response.setContentLength(body.length);
        OutputStream out = response.getOutputStream();
        out.write(body);
    }

    /** Waits while the file "closed" is in dir, two minutes at most. */
    private static void hold(String dir) throws IOException {
        File closed = new File(dir, "closed");
        File held = File.createTempFile("held-", "", new File(dir));
        try {
            for (int i = 0; i < 6000 && closed.exists(); i++) {
                Thread.sleep(20);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        held.delete();
    }

    private static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }

    private static int number(HttpServletRequest request, String name, int otherwise) {
        String value = request.getParameter(name);
        return value == null ? otherwise : Integer.parseInt(value);
    }
}
