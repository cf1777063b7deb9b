package main

// Real traffic: visitors have sessions of 3 to 20 events, and half of the events are on a new page. A fifth of the visitors
// have no person. Most persons come rarely, and a few all the time. Uuids are of version 7 and 4 half and half. Browsers send
// single events and batches of 5 with gzip, servers send batches of 50 of many persons without. Two projects have 80 % of
// the persons, and a thousand small ones have the others.

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type sessionOptions struct {
	persons, events *int
	seed            *int64
	uniform         *bool
}

func sessionFlags() sessionOptions {
	return sessionOptions{
		persons: flag.Int("persons", 1_000_000, "sessions: how many persons there are"),
		events:  flag.Int("events", 400_000, "sessions: how many events to prepare"),
		seed:    flag.Int64("seed", 1, "sessions: another seed makes other events"),
		uniform: flag.Bool("uniform", false, "sessions: all persons come equally often"),
	}
}

const (
	smallProjects = 1000
	visitors      = 4000
)

// The number of the project of a person. The statement that fills the table has the same rule.
func projectOf(person int) int {
	switch digit := person % 10; {
	case digit < 4:
		return 1
	case digit < 8:
		return 2
	}
	return 3 + person/10%smallProjects
}

type session struct {
	project   int
	distinct  string
	anonymous bool
	left      int
	pages     int
	page      string
	before    string
	id        string
	width     int
	browser   int
}

type generator struct {
	random  *rand.Rand
	zipf    *rand.Zipf
	persons int
	uniform bool
	clock   time.Time
	active  []session
}

func (g *generator) uuid(version byte) string {
	var raw [16]byte
	for i := 0; i < 16; i += 8 {
		x := g.random.Uint64()
		for j := 0; j < 8; j++ {
			raw[i+j] = byte(x >> (8 * j))
		}
	}
	if version == 7 {
		ms := uint64(g.clock.UnixMilli())
		for i := 0; i < 6; i++ {
			raw[i] = byte(ms >> (40 - 8*i))
		}
	}
	raw[6] = version<<4 | raw[6]&0x0f
	raw[8] = 0x80 | raw[8]&0x3f
	text := hex.EncodeToString(raw[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

func (g *generator) begin() session {
	person := g.random.IntN(g.persons)
	if !g.uniform && g.random.IntN(2) == 0 {
		// Half of the sessions are of persons who come often. They are spread over the table.
		person = int(g.zipf.Uint64() * 7919 % uint64(g.persons))
	}
	one := session{
		project: projectOf(person), distinct: "user-" + strconv.Itoa(person), left: 3 + g.random.IntN(18),
		id: g.uuid(7), width: 1280 + 64*g.random.IntN(20), browser: 118 + g.random.IntN(12),
		before: "https://www.google.com/", page: g.page(),
	}
	if g.random.IntN(5) == 0 {
		one.anonymous = true
		one.distinct = g.uuid(7)
	}
	return one
}

func (g *generator) page() string {
	return "/shop/" + strconv.Itoa(g.random.IntN(40)) + "/article-" + strconv.Itoa(g.random.IntN(1_000_000))
}

func (g *generator) event(one *session, out *bytes.Buffer) {
	name := "$autocapture"
	if one.pages == 0 || g.random.IntN(2) == 0 {
		if one.pages > 0 {
			one.before = "https://shop.example.com" + one.page
			one.page = g.page()
		}
		one.pages++
		name = "$pageview"
	}
	one.left--
	version := byte(4)
	if g.random.IntN(2) == 0 {
		version = 7
	}
	asks := ""
	if one.anonymous {
		asks = `"$process_person_profile":false,`
	} else if g.random.IntN(100) < 3 {
		asks = `"$set":{"last_order":` + strconv.Itoa(g.random.IntN(1_000_000)) + `},`
	}
	domain := "shop.example.com"
	if strings.HasPrefix(one.before, "https://www.google") {
		domain = "www.google.com"
	}
	fmt.Fprintf(out, `{"uuid":"%s","event":"%s","distinct_id":"%s","timestamp":"%s","properties":{%s`+
		`"$os":"Mac OS X","$os_version":"10.15.7","$browser":"Chrome","$browser_version":%d,"$device_type":"Desktop",`+
		`"$current_url":"https://shop.example.com%s?ref=menu","$host":"shop.example.com","$pathname":"%s",`+
		`"$screen_height":1080,"$screen_width":%d,"$viewport_height":%d,"$viewport_width":%d,"$lib":"web","$lib_version":"1.434.18",`+
		`"$referrer":"%s","$referring_domain":"%s",`+
		`"$raw_user_agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36",`+
		`"$device_id":"%s","$session_id":"%s","$window_id":"%s","plan":"premium","items":%d,"total":149.95}}`,
		g.uuid(version), name, one.distinct, g.clock.UTC().Format("2006-01-02T15:04:05.000Z"), asks, one.browser, one.page, one.page,
		one.width, 600+g.random.IntN(400), one.width, one.before, domain, one.browser, one.id, one.id, one.id, g.random.IntN(9))
	g.clock = g.clock.Add(20 * time.Microsecond)
}

// The next events of one visitor, as many as a batch can have and the visit still has.
func (g *generator) visit(most int, project int, out *bytes.Buffer) (events int, of int) {
	at := g.random.IntN(len(g.active))
	if project > 0 {
		for g.active[at].project != project {
			at = g.random.IntN(len(g.active))
		}
	}
	one := &g.active[at]
	of = one.project
	for events < most && one.left > 0 {
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		g.event(one, out)
		events++
	}
	if one.left == 0 {
		*one = g.begin()
	}
	return events, of
}

type prepared struct {
	bytes  []byte
	events int
}

func (g *generator) request(host string, zip *gzip.Writer) prepared {
	var batch bytes.Buffer
	path, query := "/batch/", ""
	var events, project int
	isZipped := true
	// A fifth of the events come alone, two fifths in batches of 5, two fifths in batches of 50.
	switch draw := g.random.IntN(144); {
	case draw < 100:
		events, project = g.visit(1, 0, &batch)
		path = "/i/v0/e/"
	case draw < 140:
		events, project = g.visit(5, 0, &batch)
	default:
		// A server sends for one of the large projects.
		project = 1 + g.random.IntN(2)
		for events < 50 {
			some, _ := g.visit(1, project, &batch)
			events += some
		}
		isZipped = false
	}
	key := `{"api_key":"phc_bench_` + strconv.Itoa(project) + `",`
	var body []byte
	if path == "/batch/" {
		body = append(append([]byte(key+`"batch":[`), batch.Bytes()...), "]}"...)
	} else {
		body = append([]byte(key), batch.Bytes()[1:]...)
	}
	kind := "application/json"
	if isZipped {
		var packed bytes.Buffer
		zip.Reset(&packed)
		zip.Write(body)
		zip.Close()
		body, query, kind = packed.Bytes(), "?compression=gzip-js", "text/plain"
	}
	head := "POST " + path + query + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: " + kind +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return prepared{bytes: append([]byte(head), body...), events: events}
}

func fromSessions(host string, options sessionOptions) source {
	const parts = 2
	made := make([][]prepared, parts)
	var wait sync.WaitGroup
	for part := range parts {
		wait.Add(1)
		go func() {
			defer wait.Done()
			random := rand.New(rand.NewPCG(uint64(*options.seed), uint64(part)))
			g := &generator{random: random, zipf: rand.NewZipf(random, 1.2, 50, uint64(*options.persons-1)),
				persons: *options.persons, uniform: *options.uniform, clock: time.Now()}
			g.active = make([]session, visitors)
			for i := range g.active {
				g.active[i] = g.begin()
			}
			zip, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression)
			for events := 0; events < *options.events/parts; {
				one := g.request(host, zip)
				made[part] = append(made[part], one)
				events += one.events
			}
		}()
	}
	wait.Wait()
	var all []prepared
	for i := 0; i < len(made[0]) || i < len(made[1]); i++ {
		for _, some := range made {
			if i < len(some) {
				all = append(all, some[i])
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%d requests prepared\n", len(all))
	var at atomic.Int64
	return func(int, time.Time) ([]byte, int) {
		next := at.Add(1) - 1
		if next >= int64(len(all)) {
			return nil, 0
		}
		return all[next].bytes, all[next].events
	}
}
