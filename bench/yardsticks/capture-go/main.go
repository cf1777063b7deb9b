// The yardstick: a plain Go server that does the same capture work. It uses net/http, decodes JSON, and commits in groups
// with pgx CopyFrom into the same tables with the same indexes, ids and horizon. It answers after the commit.
//
//	DATABASE_URL, ADDRESS
//	LEDGER=insert  stores ids with insert … on conflict do nothing returning, the usual way
//	LEDGER=copy    stores ids with COPY as if all were new, like Sluice (without a fallback: the load has no duplicates)
//	DECODE=raw     keeps properties as the received text and reads three of them
//	DECODE=map     decodes properties to a map, as needed to transform or enrich them, and encodes them again
package main

import (
	"compress/gzip"
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	writers        = 2
	maxBatchEvents = 5000
	horizonLock    = 7163945024
)

// The projects by their keys. They are read when the server starts.
var projects = map[string]int32{}

var namespace = []byte{0x93, 0x29, 0x79, 0xb4, 0x65, 0xc3, 0x44, 0x24, 0x84, 0x67, 0x0b, 0x66, 0xec, 0x27, 0xbc, 0x22}

type wireEvent struct {
	UUID       string          `json:"uuid"`
	Event      string          `json:"event"`
	DistinctID string          `json:"distinct_id"`
	Timestamp  time.Time       `json:"timestamp"`
	Properties json.RawMessage `json:"properties"`
}

type wireBody struct {
	wireEvent
	APIKey string      `json:"api_key"`
	Batch  []wireEvent `json:"batch"`
}

type read struct {
	SessionID     *string `json:"$session_id"`
	WindowID      *string `json:"$window_id"`
	ElementsChain string  `json:"$elements_chain"`
}

type row struct {
	project  int32
	event    wireEvent
	uuid     pgtype.UUID
	read     read
	person   pgtype.UUID
	received time.Time
}

type request struct {
	rows []row
	done chan error
}

var decodeMap = os.Getenv("DECODE") == "map"
var ledgerCopy = os.Getenv("LEDGER") == "copy"

func personID(project int32, distinctID string) pgtype.UUID {
	hash := sha1.New()
	hash.Write(namespace)
	fmt.Fprintf(hash, "%d:%s", project, distinctID)
	sum := hash.Sum(nil)
	var id pgtype.UUID
	copy(id.Bytes[:], sum[:16])
	id.Bytes[6] = id.Bytes[6]&0x0f | 0x50
	id.Bytes[8] = id.Bytes[8]&0x3f | 0x80
	id.Valid = true
	return id
}

func prepare(project int32, events []wireEvent, received time.Time) ([]row, error) {
	rows := make([]row, len(events))
	for i, event := range events {
		one := row{project: project, event: event, received: received, person: personID(project, event.DistinctID)}
		if err := one.uuid.Scan(event.UUID); err != nil {
			return nil, err
		}
		if decodeMap {
			var properties map[string]any
			if err := json.Unmarshal(event.Properties, &properties); err != nil {
				return nil, err
			}
			if text, ok := properties["$session_id"].(string); ok {
				one.read.SessionID = &text
			}
			if text, ok := properties["$window_id"].(string); ok {
				one.read.WindowID = &text
			}
			encoded, err := json.Marshal(properties)
			if err != nil {
				return nil, err
			}
			one.event.Properties = encoded
		} else if err := json.Unmarshal(event.Properties, &one.read); err != nil {
			return nil, err
		}
		rows[i] = one
	}
	return rows, nil
}

var columns = []string{"project_id", "uuid", "timestamp", "created_at", "inserted_at", "historical", "event", "distinct_id",
	"properties", "session_id", "window_id", "elements_chain", "person_id", "person_mode", "person_properties"}
var emptyObject = json.RawMessage("{}")

func store(ctx context.Context, conn *pgx.Conn, rows []row) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	keys := make([]int, len(rows))
	for i := range keys {
		keys[i] = i
	}
	sort.Slice(keys, func(a, b int) bool {
		one, other := &rows[keys[a]], &rows[keys[b]]
		if one.project != other.project {
			return one.project < other.project
		}
		return string(one.uuid.Bytes[:]) < string(other.uuid.Bytes[:])
	})
	var stamp time.Time
	fresh := make(map[[16]byte]bool, len(rows))
	batch := &pgx.Batch{}
	batch.Queue("select pg_advisory_xact_lock_shared($1)", horizonLock)
	batch.Queue("select greatest(clock_timestamp(), (select closed from event_horizon) + interval '1 microsecond')")
	if !ledgerCopy {
		ofProjects := make([]int32, len(rows))
		uuids := make([]pgtype.UUID, len(rows))
		times := make([]time.Time, len(rows))
		for i, key := range keys {
			ofProjects[i], uuids[i], times[i] = rows[key].project, rows[key].uuid, rows[key].event.Timestamp
		}
		batch.Queue(`insert into event_ids (project_id, uuid, timestamp)
			select * from unnest($1::int[], $2::uuid[], $3::timestamptz[])
			on conflict do nothing returning uuid`, ofProjects, uuids, times)
	}
	results := tx.SendBatch(ctx, batch)
	if _, err := results.Exec(); err != nil {
		return err
	}
	if err := results.QueryRow().Scan(&stamp); err != nil {
		return err
	}
	if !ledgerCopy {
		inserted, err := results.Query()
		if err != nil {
			return err
		}
		for inserted.Next() {
			var id pgtype.UUID
			if err := inserted.Scan(&id); err != nil {
				return err
			}
			fresh[id.Bytes] = true
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	if ledgerCopy {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"event_ids"}, []string{"project_id", "uuid", "timestamp"},
			pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
				one := &rows[keys[i]]
				return []any{one.project, one.uuid, one.event.Timestamp}, nil
			}))
		if err != nil {
			return err
		}
	} else if len(fresh) < len(rows) {
		kept := rows[:0:0]
		for _, one := range rows {
			if fresh[one.uuid.Bytes] {
				delete(fresh, one.uuid.Bytes)
				kept = append(kept, one)
			}
		}
		rows = kept
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"events"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		one := &rows[i]
		return []any{one.project, one.uuid, one.event.Timestamp, one.received, stamp, false, one.event.Event,
			one.event.DistinctID, one.event.Properties, one.read.SessionID, one.read.WindowID, one.read.ElementsChain,
			one.person, "full", emptyObject}, nil
	}))
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func write(ctx context.Context, conn *pgx.Conn, queue chan request) {
	for first := range queue {
		requests := []request{first}
		rows := append([]row(nil), first.rows...)
	more:
		for len(rows) < maxBatchEvents {
			select {
			case next := <-queue:
				requests = append(requests, next)
				rows = append(rows, next.rows...)
			default:
				break more
			}
		}
		err := store(ctx, conn, rows)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		for _, one := range requests {
			one.done <- err
		}
	}
}

func readProjects(ctx context.Context) {
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer conn.Close(ctx)
	found, err := conn.Query(ctx, "select api_token, id from projects")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var key string
	var id int32
	if _, err := pgx.ForEachRow(found, []any{&key, &id}, func() error {
		projects[key] = id
		return nil
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	queue := make(chan request, 1024)
	for range writers {
		conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go write(ctx, conn, queue)
	}
	readProjects(ctx)
	answer := []byte(`{"status":"Ok"}`)
	capture := func(response http.ResponseWriter, http_ *http.Request) {
		var body wireBody
		var from io.Reader = http_.Body
		if http_.URL.RawQuery == "compression=gzip-js" {
			unzipped, err := gzip.NewReader(from)
			if err != nil {
				http.Error(response, err.Error(), http.StatusBadRequest)
				return
			}
			from = unzipped
		}
		if err := json.NewDecoder(from).Decode(&body); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		project, ok := projects[body.APIKey]
		if !ok {
			http.Error(response, "no project has this key", http.StatusUnauthorized)
			return
		}
		events := body.Batch
		if events == nil {
			events = []wireEvent{body.wireEvent}
		}
		rows, err := prepare(project, events, time.Now())
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		done := make(chan error, 1)
		queue <- request{rows, done}
		if err := <-done; err != nil {
			http.Error(response, err.Error(), http.StatusServiceUnavailable)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		response.Write(answer)
	}
	http.HandleFunc("POST /batch/", capture)
	http.HandleFunc("POST /i/v0/e/", capture)
	if err := http.ListenAndServe(os.Getenv("ADDRESS"), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
