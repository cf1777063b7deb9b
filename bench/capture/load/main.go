// A load generator that takes little CPU from the servers. It builds the requests in advance, only replaces uuids and
// times in them, and reads answers without parsing them. It is a closed loop: each connection sends its next request
// when the last one is answered, or with -rate at its time if that is later. Prints one JSON object.
//
// With -kind sessions it sends what visitors of web sites do, see sessions.go. No request of these is sent twice.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	random "math/rand/v2"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type template struct {
	bytes []byte
	uuids []int
	times []int
}

const zeroUUID = "00000000-0000-0000-0000-000000000000"
const zeroTime = "2006-01-02T15:04:05.000Z"

// What the events do with persons: they belong to known ones (plain), to none (anonymous), or change theirs (set).
var asks = map[string]string{
	"plain":     "",
	"anonymous": `"$process_person_profile":false,`,
	"set":       `"$set":{"last_seen":"` + zeroTime + `","plan":"premium"},`,
}

func event(person int, kind string) string {
	who := "user-"
	if kind == "anonymous" {
		// The other kinds never create a person with this id.
		who = "visitor-"
	}
	return `{"uuid":"` + zeroUUID + `","event":"$pageview","distinct_id":"` + who + strconv.Itoa(person) + `","timestamp":"` + zeroTime + `","properties":{` + asks[kind] +
		`"$os":"Mac OS X","$os_version":"10.15.7","$browser":"Chrome","$browser_version":126,"$device_type":"Desktop",` +
		`"$current_url":"https://example.com/products/` + strconv.Itoa(person*7) + `?utm_source=newsletter","$host":"example.com",` +
		`"$pathname":"/products/` + strconv.Itoa(person*7) + `","$screen_height":1080,"$screen_width":1920,"$viewport_height":969,` +
		`"$viewport_width":1920,"$lib":"web","$lib_version":"1.434.18","$referrer":"https://www.google.com/","$referring_domain":"www.google.com",` +
		`"$device_id":"0190f3d2-7c1e-7d3a-9a51-0f7f0f7f0f7f","$session_id":"0190f3d2-7c1e-7d3a-9a51-aaaaaaaaaaaa",` +
		`"$window_id":"0190f3d2-7c1e-7d3a-9a51-bbbbbbbbbbbb","plan":"premium","items":3,"total":149.95}}`
}

func build(host, path, kind string, batch, seed int) template {
	events := make([]string, batch)
	for i := range events {
		events[i] = event((seed*batch+i*37)%10000, kind)
	}
	body := `{"api_key":"phc_bench","batch":[` + strings.Join(events, ",") + `]}`
	if batch == 1 {
		body = `{"api_key":"phc_bench",` + events[0][1:]
	}
	text := "POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body
	made := template{bytes: []byte(text)}
	made.uuids = places(text, zeroUUID)
	made.times = places(text, zeroTime)
	return made
}

func places(text, part string) []int {
	var found []int
	for at := 0; ; {
		next := strings.Index(text[at:], part)
		if next < 0 {
			return found
		}
		found = append(found, at+next)
		at += next + len(part)
	}
}

// Returns the next request and how many events it has. Nil: there are no more.
type source func(round int, now time.Time) (bytes []byte, events int)

func fromTemplates(host, path, kind string, batch, version, connection int, salt [8]byte) source {
	templates := make([]template, 4)
	for i := range templates {
		templates[i] = build(host, path, kind, batch, connection*4+i)
	}
	return func(round int, now time.Time) ([]byte, int) {
		one := templates[round%len(templates)]
		stamp := now.UTC().Format("2006-01-02T15:04:05.000Z")
		for _, at := range one.uuids {
			if version == 4 {
				writeRandomUUID(one.bytes[at : at+36])
			} else {
				writeUUID(one.bytes[at:at+36], now, salt)
			}
		}
		for _, at := range one.times {
			copy(one.bytes[at:], stamp)
		}
		return one.bytes, batch
	}
}

var counter atomic.Uint64

// Writes a uuid of version 7, as SDKs create them: the time first, then bits that are nearly random.
func writeUUID(target []byte, now time.Time, salt [8]byte) {
	var raw [16]byte
	ms := uint64(now.UnixMilli())
	n := counter.Add(1)
	x := (n * 0x9E3779B97F4A7C15)
	for i := 0; i < 6; i++ {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	raw[6] = 0x70 | byte(x>>56)&0x0f
	raw[7] = byte(x >> 48)
	raw[8] = 0x80 | byte(x>>40)&0x3f
	raw[9] = byte(x >> 32)
	raw[10] = salt[0]
	raw[11] = salt[1]
	raw[12] = byte(n >> 24)
	raw[13] = byte(n >> 16)
	raw[14] = byte(n >> 8)
	raw[15] = byte(n)
	writeText(target, raw)
}

// Writes a uuid of version 4, as half of the SDKs create them.
func writeRandomUUID(target []byte) {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], random.Uint64())
	binary.BigEndian.PutUint64(raw[8:], random.Uint64())
	raw[6] = 0x40 | raw[6]&0x0f
	raw[8] = 0x80 | raw[8]&0x3f
	writeText(target, raw)
}

func writeText(target []byte, raw [16]byte) {
	var text [32]byte
	hex.Encode(text[:], raw[:])
	copy(target[0:8], text[0:8])
	copy(target[9:13], text[8:12])
	copy(target[14:18], text[12:16])
	copy(target[19:23], text[16:20])
	copy(target[24:36], text[20:32])
}

func main() {
	host := flag.String("host", "127.0.0.1:8000", "")
	path := flag.String("path", "/batch/", "")
	kind := flag.String("kind", "plain", "plain, anonymous, set or sessions")
	version := flag.Int("version", 7, "of the uuids: 7 or 4; sessions have both")
	batch := flag.Int("batch", 1, "")
	connections := flag.Int("connections", 64, "")
	warmup := flag.Duration("warmup", time.Second, "")
	duration := flag.Duration("duration", 5*time.Second, "")
	rate := flag.Float64("rate", 0, "requests per second of all connections; 0: as many as possible")
	mark := flag.Bool("marks", false, "print a line when measuring begins and ends")
	options := sessionFlags()
	flag.Parse()
	var salt [8]byte
	rand.Read(salt[:])

	var prebuilt source
	if *kind == "sessions" {
		prebuilt = fromSessions(*host, options)
	}
	var stop, measuring, exhausted atomic.Bool
	var total, failed, measured atomic.Int64
	latencies := make([][]float64, *connections)
	var wait sync.WaitGroup
	for c := 0; c < *connections; c++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			conn, err := net.Dial("tcp", *host)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			defer conn.Close()
			reader := bufio.NewReaderSize(conn, 4096)
			next := prebuilt
			if next == nil {
				next = fromTemplates(*host, *path, *kind, *batch, *version, c, salt)
			}
			begin := time.Now()
			for round := 0; !stop.Load(); round++ {
				if *rate > 0 {
					// The connections take turns.
					turn := (float64(round) + float64(c)/float64(*connections)) * float64(*connections) / *rate
					time.Sleep(time.Until(begin.Add(time.Duration(turn * float64(time.Second)))))
				}
				began := time.Now()
				bytes, events := next(round, began)
				if bytes == nil {
					exhausted.Store(true)
					return
				}
				if _, err := conn.Write(bytes); err != nil {
					failed.Add(1)
					return
				}
				status, err := readAnswer(reader)
				if err != nil || status != 200 {
					failed.Add(1)
					if err != nil {
						return
					}
					continue
				}
				total.Add(int64(events))
				if measuring.Load() {
					measured.Add(int64(events))
					latencies[c] = append(latencies[c], float64(time.Since(began).Microseconds())/1000)
				}
			}
		}()
	}
	time.Sleep(*warmup)
	if *mark {
		fmt.Println("begin")
	}
	measuring.Store(true)
	began := time.Now()
	time.Sleep(*duration)
	measuring.Store(false)
	seconds := time.Since(began).Seconds()
	count := measured.Load()
	if *mark {
		fmt.Println("end")
	}
	stop.Store(true)
	wait.Wait()
	var all []float64
	for _, some := range latencies {
		all = append(all, some...)
	}
	sort.Float64s(all)
	at := func(q float64) float64 {
		if len(all) == 0 {
			return 0
		}
		return all[int(q*float64(len(all)-1))]
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"requestsPerSecond": float64(len(all)) / seconds,
		"eventsPerSecond":   float64(count) / seconds,
		"measuredEvents":    count,
		"acknowledged":      total.Load(),
		"failed":            failed.Load(),
		"exhausted":         exhausted.Load(),
		"p50":               at(0.5),
		"p99":               at(0.99),
	})
}

func readAnswer(reader *bufio.Reader) (int, error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	status, _ := strconv.Atoi(string(line[9:12]))
	length := 0
	for {
		line, err = reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		if len(line) > 16 && (line[0] == 'c' || line[0] == 'C') && strings.EqualFold(string(line[:15]), "content-length:") {
			length, _ = strconv.Atoi(strings.TrimSpace(string(line[15:])))
		}
	}
	_, err = io.CopyN(io.Discard, reader, int64(length))
	return status, err
}
