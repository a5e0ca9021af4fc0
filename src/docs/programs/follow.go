// Follows symbols of a stocktape relay. Prints each message once, and a gap where messages are missing, as NDJSON.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const heartbeat, firstRetry, longestRetry = 5 * time.Second, 500 * time.Millisecond, 30 * time.Second

type message struct {
	Type, Message string
	ID, Prev      *string
	Address       string
	Code          int
	RetryMs       int `json:"retry_ms"`
}

var (
	relay      = setting("STOCKTAPE_URL", "http://127.0.0.1:8080")
	symbols    = setting("STOCKTAPE_SYMBOLS", "AAPLc")
	stage      = setting("STOCKTAPE_STAGE", "preconfirmed") // Or sealed: only what is in a sealed block.
	file       = setting("STOCKTAPE_POSITION", "stocktape.position")
	position   = "now"
	chainStart string                   // Where the unbroken stream begins.
	lastIDs    = map[[2]string]string{} // The newest message of each address and type.
	retry      time.Duration            // What the relay asks for.
	backoff    = firstRetry
)

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// order splits a place. With stage=sealed the facts of a seal come just before it: <epoch>.<seq>.<n> before <epoch>.<seq>.
func order(place string) (epoch string, seq, n int64) {
	parts := append(strings.Split(place, "."), "", "")
	seq, _ = strconv.ParseInt(parts[1], 10, 64)
	if n, _ = strconv.ParseInt(parts[2], 10, 64); n == 0 {
		n = math.MaxInt64
	}
	return parts[0], seq, n
}

// isUpTo reports whether a place on the tape is not after another one.
func isUpTo(place, other string) bool {
	epoch, seq, n := order(place)
	otherEpoch, otherSeq, otherN := order(other)
	return epoch == otherEpoch && (seq < otherSeq || seq == otherSeq && n <= otherN)
}

// save renames, so that a crash leaves a whole position. It follows the handling: a crash repeats one message, and loses none.
func save(place string) error {
	position = place
	if err := os.WriteFile(file+".new", []byte(place), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// checkChain compares prev with the message before it of the same address and type. Otherwise that one is missing.
func checkChain(m message) {
	if stage == "sealed" {
		return // There prev proves nothing.
	}
	chain := [2]string{m.Address, m.Type}
	last, known := lastIDs[chain]
	if m.Prev != nil && *m.Prev != last && (known || !isUpTo(*m.Prev, chainStart)) {
		if !known {
			last = chainStart
		}
		gap, _ := json.Marshal(map[string]any{"type": "gap", "reason": "missed", "id": position, "after": last, "through": *m.Prev, "backfill": nil})
		fmt.Println(string(gap))
	}
	lastIDs[chain] = *m.ID
}

func handle(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	switch {
	case m.Type == "error" && m.Code != http.StatusTooManyRequests && m.Code < 500:
		log.Fatalln(m.Message)
	case m.Type == "bye":
		retry = time.Duration(m.RetryMs) * time.Millisecond
	case m.Type == "heartbeat":
		backoff = firstRetry
	case m.Type == "hello" && m.ID != nil && chainStart == "":
		chainStart = *m.ID
	case m.Type == "gap" && m.ID != nil:
		fmt.Println(string(line))
		chainStart, position = *m.ID, "now"
		lastIDs = map[[2]string]string{}
	case bytes.Contains(line, []byte(`"prev":`)) && m.ID != nil:
		if isUpTo(*m.ID, position) {
			return nil // A repetition of our own reconnect.
		}
		checkChain(m)
		fmt.Println(string(line))
	}
	if m.ID == nil {
		return nil
	}
	return save(*m.ID)
}

func listen() error {
	query := url.Values{"symbols": {symbols}, "stage": {stage}, "format": {"ndjson"}, "heartbeat": {fmt.Sprint(heartbeat.Seconds())}, "since": {position}}
	response, err := http.Get(relay + "/v1/stream?" + query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < 500 {
			log.Fatalln(string(body)) // Any other refusal would come again.
		}
		retry, _ = time.ParseDuration(response.Header.Get("Retry-After") + "s")
		return fmt.Errorf("%s", body)
	}
	// A relay that is silent for three heartbeats is gone.
	silence := time.AfterFunc(3*heartbeat, func() { response.Body.Close() })
	defer silence.Stop()
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		silence.Reset(3 * heartbeat)
		if err := handle(bytes.TrimSpace(line)); err != nil {
			return err
		}
	}
}

func main() {
	if saved, err := os.ReadFile(file); err == nil {
		position = string(saved)
	}
	for {
		log.Println(listen())
		time.Sleep(retry + time.Duration(float64(backoff)*(0.5+rand.Float64())))
		if retry, backoff = 0, 2*backoff; backoff > longestRetry {
			backoff = longestRetry
		}
	}
}
