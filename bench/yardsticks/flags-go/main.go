// The yardstick: what a careful person writes in Go. It evaluates the flags of the benchmark from the properties of the
// request, with conditions that are compiled in advance and texts that are written in advance, and answers as `/flags?v=2`
// does.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type definition struct {
	ID      int    `json:"id"`
	Key     string `json:"key"`
	Version int    `json:"version"`
	Filters struct {
		Groups []struct {
			Properties []struct {
				Key      string `json:"key"`
				Operator string `json:"operator"`
				Value    any    `json:"value"`
			} `json:"properties"`
			Rollout float64 `json:"rollout_percentage"`
		} `json:"groups"`
		Multivariate *struct {
			Variants []struct {
				Key     string  `json:"key"`
				Rollout float64 `json:"rollout_percentage"`
			} `json:"variants"`
		} `json:"multivariate"`
		Payloads map[string]string `json:"payloads"`
	} `json:"filters"`
}

type condition struct {
	tests   []func(map[string]any) bool
	rollout float64
}

type variant struct {
	end     float64
	matches [][]byte // the text for each condition
}

type flag struct {
	prefix     []byte
	conditions []condition
	variants   []variant
	matched    [][]byte // the text for each condition, without a variant
	none       [][]byte // no condition matched
	out        [][]byte // out of the rollout
}

type reason struct {
	Code        string `json:"code"`
	Index       int    `json:"condition_index"`
	Description string `json:"description"`
}

func text(one definition, enabled bool, variant string, code string, index int, description string) []byte {
	var value, payload any
	if variant != "" {
		value = variant
	}
	if enabled {
		name := variant
		if name == "" {
			name = "true"
		}
		if found, ok := one.Filters.Payloads[name]; ok {
			payload = found
		}
	}
	body, _ := json.Marshal(struct {
		Key      string         `json:"key"`
		Enabled  bool           `json:"enabled"`
		Variant  any            `json:"variant"`
		Reason   reason         `json:"reason"`
		Metadata map[string]any `json:"metadata"`
	}{one.Key, enabled, value, reason{code, index, description}, map[string]any{
		"id": one.ID, "version": one.Version, "description": nil, "payload": payload, "has_experiment": false,
	}})
	return append([]byte(strconv.Quote(one.Key)+":"), body...)
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

func asText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	b, _ := json.Marshal(value)
	return string(b)
}

func compile(one definition) *flag {
	made := &flag{prefix: []byte(one.Key + ".")}
	for index, group := range one.Filters.Groups {
		cond := condition{rollout: group.Rollout / 100}
		for _, property := range group.Properties {
			key := property.Key
			switch property.Operator {
			case "icontains":
				wanted := strings.ToLower(asText(property.Value))
				cond.tests = append(cond.tests, func(p map[string]any) bool {
					v, ok := p[key]
					return ok && strings.Contains(strings.ToLower(asText(v)), wanted)
				})
			case "exact":
				wanted := map[string]bool{}
				for _, v := range property.Value.([]any) {
					wanted[strings.ToLower(asText(v))] = true
				}
				cond.tests = append(cond.tests, func(p map[string]any) bool {
					v, ok := p[key]
					return ok && wanted[strings.ToLower(asText(v))]
				})
			case "gte":
				wanted, _ := number(property.Value)
				cond.tests = append(cond.tests, func(p map[string]any) bool {
					v, ok := p[key]
					if !ok {
						return false
					}
					f, ok := number(v)
					return ok && f >= wanted
				})
			default:
				panic(property.Operator)
			}
		}
		made.conditions = append(made.conditions, cond)
		description := "Matched condition set " + strconv.Itoa(index+1)
		made.matched = append(made.matched, text(one, true, "", "condition_match", index, description))
		made.none = append(made.none, text(one, false, "", "no_condition_match", index, "No matching condition set"))
		made.out = append(made.out, text(one, false, "", "out_of_rollout_bound", index, "Out of rollout bound"))
	}
	if one.Filters.Multivariate != nil {
		end := 0.0
		for _, v := range one.Filters.Multivariate.Variants {
			end += v.Rollout / 100
			made.variants = append(made.variants, variant{end: end})
			last := &made.variants[len(made.variants)-1]
			for index := range one.Filters.Groups {
				description := "Matched condition set " + strconv.Itoa(index+1)
				last.matches = append(last.matches, text(one, true, v.Key, "condition_match", index, description))
			}
		}
	}
	return made
}

func place(scratch []byte, parts ...[]byte) float64 {
	scratch = scratch[:0]
	for _, part := range parts {
		scratch = append(scratch, part...)
	}
	sum := sha1.Sum(scratch)
	return float64(binary.BigEndian.Uint64(sum[:8])>>4) / float64(0xfffffffffffffff)
}

var suffix = []byte("variant")

func (f *flag) decide(id []byte, properties map[string]any, scratch []byte) []byte {
	var told []byte
	isOut := false
	for index := range f.conditions {
		cond := &f.conditions[index]
		passed := true
		for _, test := range cond.tests {
			if !test(properties) {
				passed = false
				break
			}
		}
		if !passed {
			if !isOut {
				told = f.none[index]
			}
			continue
		}
		if cond.rollout < 1 && place(scratch, f.prefix, id) > cond.rollout {
			told, isOut = f.out[index], true
			continue
		}
		if len(f.variants) > 0 {
			at := place(scratch, f.prefix, id, suffix)
			for i := range f.variants {
				if at < f.variants[i].end {
					return f.variants[i].matches[index]
				}
			}
		}
		return f.matched[index]
	}
	return told
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func main() {
	file, err := os.ReadFile(os.Getenv("DEFINITIONS"))
	if err != nil {
		panic(err)
	}
	var all struct {
		Flags []definition `json:"flags"`
	}
	if err := json.Unmarshal(file, &all); err != nil {
		panic(err)
	}
	var flags []*flag
	for _, one := range all.Flags {
		flags = append(flags, compile(one))
	}
	http.HandleFunc("/flags", func(w http.ResponseWriter, r *http.Request) {
		buffer := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(buffer)
		buffer.Reset()
		if _, err := io.Copy(buffer, http.MaxBytesReader(w, r.Body, 2<<20)); err != nil {
			w.WriteHeader(413)
			return
		}
		var body struct {
			Token      string         `json:"api_key"`
			ID         string         `json:"distinct_id"`
			Properties map[string]any `json:"person_properties"`
		}
		if err := json.Unmarshal(buffer.Bytes(), &body); err != nil || body.ID == "" {
			w.WriteHeader(400)
			return
		}
		if body.Token != "phc_bench" {
			w.WriteHeader(401)
			return
		}
		var scratch [512]byte
		id := []byte(body.ID)
		buffer.Reset()
		buffer.WriteString(`{"errorsWhileComputingFlags":false,"flags":{`)
		for index, one := range flags {
			if index > 0 {
				buffer.WriteByte(',')
			}
			buffer.Write(one.decide(id, body.Properties, scratch[:]))
		}
		buffer.WriteString(`},"requestId":"`)
		buffer.WriteString(uuid())
		buffer.WriteString(`","evaluatedAt":`)
		buffer.WriteString(strconv.FormatInt(time.Now().UnixMilli(), 10))
		buffer.WriteByte('}')
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(buffer.Len()))
		w.Write(buffer.Bytes())
	})
	panic(http.ListenAndServe(os.Getenv("ADDRESS"), nil))
}
