// A load generator that takes little CPU from the servers: a closed loop over requests that are built in advance. Each line
// of the file is the body of a request; without a file, all requests are the same GET. Prints one JSON object.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	host := flag.String("host", "", "address of the server")
	path := flag.String("path", "/", "path of the requests")
	file := flag.String("bodies", "", "file with one body a line")
	connections := flag.Int("connections", 64, "number of connections")
	count := flag.Int64("requests", 10_000, "number of requests")
	headers := flag.String("headers", "", "further headers, with \\n between them")
	expected := flag.Int("expect", 200, "the status that requests must get")
	flag.Parse()
	further := ""
	if *headers != "" {
		further = strings.ReplaceAll(*headers, "\\n", "\r\n") + "\r\n"
	}
	var requests [][]byte
	var bodies []string
	if *file == "" {
		requests = append(requests, []byte("GET "+*path+" HTTP/1.1\r\nHost: "+*host+"\r\n"+further+"\r\n"))
	} else {
		text, err := os.ReadFile(*file)
		if err != nil {
			panic(err)
		}
		bodies = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	for _, body := range bodies {
		head := "POST " + *path + " HTTP/1.1\r\nHost: " + *host + "\r\n" + further + "Content-Type: application/json\r\nContent-Length: "
		requests = append(requests, []byte(head+strconv.Itoa(len(body))+"\r\n\r\n"+body))
	}
	var left atomic.Int64
	left.Store(*count)
	begin := time.Now()
	var wait sync.WaitGroup
	var lock sync.Mutex
	var all []time.Duration
	var bytes int
	failed := 0
	for c := 0; c < *connections; c++ {
		wait.Add(1)
		go func(next int) {
			defer wait.Done()
			conn, err := net.Dial("tcp", *host)
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			reader := bufio.NewReaderSize(conn, 64*1024)
			var mine []time.Duration
			size, bad := 0, 0
			for left.Add(-1) >= 0 {
				sent := time.Now()
				if _, err := conn.Write(requests[next%len(requests)]); err != nil {
					panic(err)
				}
				next += 7
				status, length := 0, 0
				for {
					line, err := reader.ReadSlice('\n')
					if err != nil {
						panic(err)
					}
					if len(line) <= 2 {
						break
					}
					if status == 0 {
						status, _ = strconv.Atoi(string(line[9:12]))
					} else if len(line) > 16 && strings.EqualFold(string(line[:15]), "content-length:") {
						length, _ = strconv.Atoi(strings.TrimSpace(string(line[15:])))
					}
				}
				if _, err := io.CopyN(io.Discard, reader, int64(length)); err != nil {
					panic(err)
				}
				mine = append(mine, time.Since(sent))
				size = length
				if status != *expected {
					bad++
				}
			}
			lock.Lock()
			all = append(all, mine...)
			bytes = size
			failed += bad
			lock.Unlock()
		}(c * 13)
	}
	wait.Wait()
	took := time.Since(begin)
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(part float64) float64 {
		return float64(all[int(float64(len(all)-1)*part)].Microseconds()) / 1000
	}
	answer, _ := json.Marshal(map[string]any{
		"perSecond": float64(len(all)) / took.Seconds(), "failed": failed, "bytes": bytes,
		"p50": at(0.5), "p99": at(0.99),
	})
	fmt.Println(string(answer))
}
