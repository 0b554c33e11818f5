package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

func main() {
	v := ""
	if len(os.Args) > 1 {
		v = os.Args[1]
	}
	dir := "/tmp/scratch-" + v
	os.RemoveAll(dir)
	os.MkdirAll(dir, 0o755)
	s, err := lab.StartTomcatIn(dir, lab.Tomcat{Version: v, Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}, JVMArgs: []string{"-Xlog:gc*:file=" + dir + "/logs/gc.log"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.PID, s.Addr)
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	<-c
	s.Stop()
}
