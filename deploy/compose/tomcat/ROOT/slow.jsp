<%-- /slow.jsp?ms=500 takes that long, and holds a thread meanwhile. --%>
<%@ page contentType="text/plain" session="false" trimDirectiveWhitespaces="true" %>
<%
  String ms = request.getParameter("ms");
  long wait = 100;
  try { if (ms != null) wait = Long.parseLong(ms); } catch (NumberFormatException e) { }
  wait = Math.max(0, Math.min(wait, 10000));
  Thread.sleep(wait);
  out.println("slept " + wait + " ms");
%>
