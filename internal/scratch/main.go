package main

import (
	"fmt"
	"os"
	"io"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

func main() {
	s, err := lab.StartTomcatIn(os.Args[1], lab.Tomcat{
		Version: "9.0.98", Executor: &lab.Executor{MaxThreads: 200, MinSpare: 30, MaxQueueSize: 1000},
		AccessLogPattern: `%h %l %u %t "%r" %s %b %D`, Buffered: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.PID, s.URL("/slow?op=size&n=1000"))
	io.Copy(io.Discard, os.Stdin)
	s.Stop()
}
