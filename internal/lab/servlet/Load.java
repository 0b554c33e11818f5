import java.io.IOException;
import java.io.OutputStream;
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
 * /slow?op=out&n=3      prints n raw lines to standard output
 */
public class Load extends HttpServlet {
    private static volatile Object sink;

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
        if ("out".equals(op)) {
            for (int i = 0; i < n; i++) {
                System.out.println("a raw line of the application, number " + i);
            }
        }
        byte[] body = "size".equals(op) ? new byte[n] : ("slept " + ms + " ms\n").getBytes("US-ASCII");
        response.setContentType("text/plain");
        response.setContentLength(body.length);
        OutputStream out = response.getOutputStream();
        out.write(body);
    }

    private static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }

    private static int number(HttpServletRequest request, String name, int otherwise) {
        String value = request.getParameter(name);
        return value == null ? otherwise : Integer.parseInt(value);
    }
}
